package restcrm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// tryton is a running trytond, asked over its other way to sign in.
type tryton struct{ url, password, column string }

func (s tryton) URL() string { return s.url }

func (s tryton) Leads(ctx context.Context, operationID string) ([]string, error) {
	question, err := json.Marshal(map[string]any{
		"method": "model.sale.opportunity.search",
		"params": []any{[]any{[]any{s.column, "=", operationID}}, 0, nil, nil, map[string]any{}},
	})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/", bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth("admin", s.password)
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var ids []int
	if err := json.Unmarshal(answer, &ids); err != nil {
		return nil, err
	}
	var texts []string
	for _, id := range ids {
		texts = append(texts, strconv.Itoa(id))
	}
	return texts, nil
}

// isTrytonCreate: everything is a POST to one path.
func isTrytonCreate(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte("opportunity.create"))
}

func trytonSubject(t *testing.T, name string, box tryton) crmtest.Subject {
	secrets := func(name string) (string, bool) { return box.password, name == "TRYTON_PASSWORD" }
	return crmtest.Subject{
		Connect: func(url string) (crm.Connector, error) {
			c, err := shipped(t, name, restcrm.Config{BaseURL: url + "/crm", Secrets: secrets, Settle: 2 * time.Second})
			if err == nil {
				warm(t, c)
			}
			return c, err
		},
		Sandbox:  box,
		IsCreate: isTrytonCreate,
		Fields:   map[string]string{"text": "Ada Lovelace \"of\" the\nsuite", "name": "Ada"},
		Secrets:  []string{box.password},
		Patience: 20 * time.Second,
		Short:    3 * time.Second,
		Answers: []crmtest.Answer{
			{Name: "401", Status: 401, Want: crm.NotApplied},
			{Name: "429", Status: 429, Want: crm.NotApplied},
			{Name: "somebody_elses_answer", Status: 200, Body: `{"id":1,"result":[7]}`, Applied: true, Want: crm.Unknown},
			{Name: "bare_result", Status: 200, Body: `[7]`, Applied: true, Want: crm.Unknown},
		},
		Searches: []crmtest.Search{
			{Name: "none", Status: 200, Body: func(op string) string { return `{"id":"` + op + `","result":[]}` }},
			{Name: "error", Status: 200, Body: func(op string) string { return `{"id":"` + op + `","error":["UserError",["x","",null]]}` }, Fails: true},
			{Name: "of_another", Status: 200, Body: func(op string) string { return `{"id":"x","result":[]}` }, Fails: true},
		},
	}
}

// warm opens the connector's session, so that a forged answer to a lookup is not
// taken by the login.
func warm(t *testing.T, c crm.Connector) {
	_, err := c.Find(t.Context(), "warm-up", time.Now().Add(20*time.Second))
	t.Log("warm-up:", err) // where nothing listens, it fails
}

// TestTrytonLive runs the suite on a trytond of the reader's.
func TestTrytonLive(t *testing.T) {
	url, password := os.Getenv("LEADONCE_TRYTON_URL"), os.Getenv("LEADONCE_TRYTON_PASSWORD")
	if url == "" {
		t.Skip("no Tryton: set LEADONCE_TRYTON_URL to http://host:port (the database is crm) and LEADONCE_TRYTON_PASSWORD")
	}
	for name, column := range map[string]string{"tryton": "external_id", "tryton-stock": "reference"} {
		t.Run(name, func(t *testing.T) {
			subject := trytonSubject(t, name, tryton{url + "/crm", password, column})
			subject.Sandbox = trytonRoot{subject.Sandbox.(tryton), url}
			crmtest.Run(t, subject)
		})
	}
}

// trytonRoot is reached by the suite without the database in its path.
type trytonRoot struct {
	tryton
	root string
}

func (s trytonRoot) URL() string { return s.root }
