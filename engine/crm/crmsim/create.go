package crmsim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// maxLead is the size in bytes of the largest create the CRM reads.
const maxLead = 1 << 20

// Create asks the CRM for the operation's lead, with one request.
func (c *Connector) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	if !isExternalID(op.ID) {
		return crm.Receipt{}, errExternalID
	}
	request, err := c.creation(op)
	if err != nil {
		return crm.Receipt{}, &crm.Error{Outcome: crm.Refused, Reason: "the lead's fields cannot be encoded"}
	}
	if len(request.Body) > maxLead {
		return crm.Receipt{}, &crm.Error{Outcome: crm.Refused, Reason: "the lead is larger than the CRM's 1 MiB"}
	}
	answer, err := c.client.Send(ctx, request)
	if err != nil {
		return crm.Receipt{}, err
	}
	return c.judge(ctx, op, answer)
}

func (c *Connector) creation(op crm.Operation) (httponce.Request, error) {
	fields := op.Fields
	if fields == nil {
		fields = map[string]string{}
	}
	body := map[string]any{"fields": fields}
	r := httponce.Request{Method: http.MethodPost, URL: c.base.JoinPath("leads"), Header: header(), Deadline: op.Deadline}
	r.Header.Set("Content-Type", "application/json")
	if c.description.Class == crm.Upsert {
		r.Method, r.URL = http.MethodPut, r.URL.JoinPath(op.ID)
	} else {
		body["external_id"] = op.ID
	}
	if c.description.Class == crm.IdempotencyKey {
		// In no other class: to net/http, it says that a replay is welcome.
		r.Header.Set("Idempotency-Key", op.ID)
	}
	var err error
	r.Body, err = json.Marshal(body)
	return r, err
}

// answered is the body of an answer to a create. All of it is empty for a body
// that is no JSON object.
type answered struct {
	ID    string `json:"id"`
	Error *struct {
		Code string `json:"code"`
	} `json:"error"`
}

func (a answered) code() string {
	if a.Error == nil {
		return ""
	}
	return a.Error.Code
}

// judge says what an answer proves.
func (c *Connector) judge(ctx context.Context, op crm.Operation, answer httponce.Answer) (crm.Receipt, error) {
	var body answered
	if err := json.Unmarshal(answer.Body, &body); err != nil {
		body = answered{}
	}
	class, status, code := c.description.Class, answer.Status, body.code()
	updated := status == http.StatusOK && class == crm.Upsert
	switch {
	case (status == http.StatusCreated || updated) && body.Error == nil && isCRMID(body.ID):
		replayed := answer.Header.Get("Idempotency-Replayed") == "true"
		return crm.Receipt{CRMID: body.ID, Existing: updated || replayed}, nil
	case status == http.StatusConflict && code == "already_exists" && class == crm.UniqueCreate:
		return c.existing(ctx, op, body.ID)
	}
	return crm.Receipt{}, &crm.Error{
		Outcome:    proven(status, code),
		Reason:     reason(status, code),
		RetryAfter: c.retryAfter(answer),
	}
}

// proven is the outcome of a create that gave no receipt.
func proven(status int, code string) crm.Outcome {
	switch {
	case status == http.StatusTooManyRequests,
		status == http.StatusServiceUnavailable && code == "not_executed":
		return crm.NotApplied
	case status == http.StatusUnprocessableEntity && (code == "validation" || code == "external_id_missing"),
		status == http.StatusBadRequest && code == "malformed",
		status == http.StatusConflict && code == "look_alike":
		return crm.Refused
	default:
		return crm.Unknown
	}
}

// existing is the receipt for a lead that has our external id already.
func (c *Connector) existing(ctx context.Context, op crm.Operation, id string) (crm.Receipt, error) {
	if isCRMID(id) {
		return crm.Receipt{CRMID: id, Existing: true}, nil
	}
	leads, err := c.Find(ctx, op.ID, op.Deadline)
	if err != nil {
		failure := crm.Classify(err)
		return crm.Receipt{}, &crm.Error{
			Reason:     "HTTP 409 already_exists without an id, and the lookup failed: " + failure.Reason,
			RetryAfter: failure.RetryAfter,
		}
	}
	if len(leads) != 1 {
		return crm.Receipt{}, &crm.Error{
			Reason: fmt.Sprintf("HTTP 409 already_exists without an id, and the lookup found %d leads", len(leads)),
		}
	}
	return leads[0], nil
}
