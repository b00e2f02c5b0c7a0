package restcrm_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/engine/crm/restcrm/trytontest"
)

// tryton is asked past trytond.
type tryton struct{ *trytontest.CRM }

func (s tryton) URL() string { return s.Root() }

func (s tryton) Leads(ctx context.Context, operationID string) ([]string, error) {
	leads, err := s.CRM.Leads(ctx)
	return leads[operationID], err
}

// isTrytonCreate: everything is a POST to one path.
func isTrytonCreate(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte("opportunity.create"))
}

func trytonSubject(t *testing.T, name string, box tryton) crmtest.Subject {
	secrets := func(name string) (string, bool) { return trytontest.Password, name == "TRYTON_PASSWORD" }
	return crmtest.Subject{
		Connect: func(url string) (crm.Connector, error) {
			c, err := shipped(t, name, restcrm.Config{BaseURL: url + box.Path(), Secrets: secrets, Settle: 2 * time.Second})
			if err == nil {
				warm(t, c)
			}
			return c, err
		},
		Sandbox:  box,
		IsCreate: isTrytonCreate,
		Fields:   map[string]string{"text": "Ada Lovelace \"of\" the\nsuite", "name": "Ada"},
		Secrets:  []string{trytontest.Password},
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
	if _, err := c.Find(t.Context(), "warm-up", time.Now().Add(20*time.Second)); err != nil {
		t.Log("warm-up:", err) // where nothing listens, it fails
	}
}

// TestTrytonLive runs the suite on Tryton, with the module and without.
func TestTrytonLive(t *testing.T) {
	postgres := trytontest.Open(t)
	for _, v := range []trytontest.Variant{trytontest.Unique, trytontest.Stock} {
		t.Run(v.Connector, func(t *testing.T) {
			t.Parallel()
			for _, f := range crmtest.Check(t.Context(), trytonSubject(t, v.Connector, tryton{postgres.Start(t, v)})) {
				t.Error(f)
			}
		})
	}
}
