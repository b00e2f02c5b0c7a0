package crmsim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// Find asks the CRM for the leads with the operation id. Its error is a
// *crm.Error.
func (c *Connector) Find(ctx context.Context, operationID string, deadline time.Time) ([]crm.Receipt, error) {
	if !c.description.CanFind {
		return nil, &crm.Error{Outcome: crm.NotSent, Reason: "a CRM of class none cannot be searched"}
	}
	if !isExternalID(operationID) {
		return nil, errExternalID
	}
	r := httponce.Request{Method: http.MethodGet, URL: c.base.JoinPath("leads"), Header: header(), Deadline: deadline}
	r.URL.RawQuery = url.Values{"external_id": {operationID}}.Encode()
	answer, err := c.client.Send(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.found(operationID, answer)
}

// found reads the answer to a lookup. Leads with another external id are
// neighbours of a search and not ours.
func (c *Connector) found(operationID string, answer httponce.Answer) ([]crm.Receipt, error) {
	var body struct {
		answered
		Leads *[]struct {
			ID         string `json:"id"`
			ExternalID string `json:"external_id"`
		} `json:"leads"`
	}
	err := json.Unmarshal(answer.Body, &body)
	if answer.Status != http.StatusOK || err != nil || body.Error != nil || body.Leads == nil {
		why := "HTTP 200 without a list of leads"
		if answer.Status != http.StatusOK && err == nil {
			why = reason(answer.Status, body.code())
		} else if answer.Status != http.StatusOK {
			why = reason(answer.Status, "")
		}
		return nil, &crm.Error{Outcome: crm.Unknown, Reason: why, RetryAfter: c.retryAfter(answer)}
	}
	var receipts []crm.Receipt
	for _, lead := range *body.Leads {
		if lead.ExternalID != operationID {
			continue
		}
		if !isCRMID(lead.ID) {
			return nil, &crm.Error{Outcome: crm.Unknown, Reason: "the list of leads has one without an id"}
		}
		receipt := crm.Receipt{CRMID: lead.ID, Existing: true}
		if !slices.Contains(receipts, receipt) {
			receipts = append(receipts, receipt)
		}
	}
	return receipts, nil
}

// retryAfter is how long the CRM asks to be left alone.
func (c *Connector) retryAfter(answer httponce.Answer) time.Duration {
	if answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusServiceUnavailable {
		return httponce.RetryAfter(answer.Header, c.now())
	}
	return 0
}

const maxCRMID = 200 // bytes

// isCRMID reports whether a lead can be told by the id.
func isCRMID(id string) bool {
	for _, r := range id {
		if r <= ' ' || r == 0x7f {
			return false
		}
	}
	return id != "" && len(id) <= maxCRMID
}

// codes are those of the protocol. A code that is not among them is text from
// anywhere, and kept out of reasons.
var codes = []string{
	"already_exists", "bad_request", "external_id_missing", "idempotency_key_in_use", "internal",
	"journal_failed", "look_alike", "malformed", "no_route", "not_executed", "not_found",
	"not_supported", "rate_limited", "validation",
}

// reason names an answer that is no receipt.
func reason(status int, code string) string {
	switch {
	case code == "idempotency_key_reused":
		return fmt.Sprintf("HTTP %d %s: ALARM: another request bore this operation's key", status, code)
	case code == "" && status < http.StatusMultipleChoices:
		return fmt.Sprintf("HTTP %d without the lead's id", status)
	case code == "":
		return fmt.Sprintf("HTTP %d without a code", status)
	case slices.Contains(codes, code):
		return fmt.Sprintf("HTTP %d %s", status, code)
	default:
		return fmt.Sprintf("HTTP %d with an unknown code", status)
	}
}
