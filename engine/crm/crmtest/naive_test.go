package crmtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// naive is a connector as one writes it on the first day, with net/http's own
// client. It takes every lead that a search shows for its own, and quotes
// answers in its errors.
type naive struct {
	fresh     bool // a connection of its own for every request
	redirects bool // follows redirects
	trusts200 bool // takes every 2xx for success
	trustsIDs bool // takes every id for that of its lead

	base        string
	client      *http.Client
	description crm.Description
}

func (n naive) at(t *testing.T, base string, d crm.Description) *naive {
	transport := &http.Transport{DisableKeepAlives: n.fresh}
	t.Cleanup(transport.CloseIdleConnections)
	n.base, n.description, n.client = base, d, &http.Client{Transport: transport}
	if !n.redirects {
		n.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &n
}

func (n *naive) Describe() crm.Description { return n.description }

func (n *naive) do(ctx context.Context, deadline time.Time, method, path string, body []byte, key string) (int, []byte, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, n.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := n.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, text, err
}

func (n *naive) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	body, err := json.Marshal(map[string]any{"external_id": op.ID, "fields": op.Fields})
	if err != nil {
		return crm.Receipt{}, err
	}
	status, text, err := n.do(ctx, op.Deadline, http.MethodPost, "/leads", body, op.ID)
	if err != nil {
		return crm.Receipt{}, &crm.Error{Reason: "no answer"}
	}
	var answer struct{ ID string }
	_ = json.Unmarshal(text, &answer)
	switch {
	case status < 300 && answer.ID == "" && n.trusts200:
		return crm.Receipt{CRMID: op.ID}, nil
	case answer.ID != "" && (status == http.StatusCreated || n.trustsIDs):
		return crm.Receipt{CRMID: answer.ID}, nil
	}
	return crm.Receipt{}, &crm.Error{Reason: fmt.Sprintf("HTTP %d: %s", status, text)}
}

func (n *naive) Find(ctx context.Context, id string, deadline time.Time) ([]crm.Receipt, error) {
	status, text, err := n.do(ctx, deadline, http.MethodGet, "/leads?external_id="+url.QueryEscape(id), nil, "")
	if err != nil {
		return nil, err
	}
	var answer struct{ Leads *[]struct{ ID string } }
	if err := json.Unmarshal(text, &answer); err != nil || status != http.StatusOK || answer.Leads == nil {
		return nil, fmt.Errorf("HTTP %d: %s", status, text)
	}
	var receipts []crm.Receipt
	for _, lead := range *answer.Leads {
		receipts = append(receipts, crm.Receipt{CRMID: lead.ID})
	}
	return receipts, nil
}
