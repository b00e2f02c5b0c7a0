package restcrm_test

import (
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// TestABusyLookup: a CRM that has no time for a lookup says nothing of the lead, and the
// job must not come to a person for it.
func TestABusyLookup(t *testing.T) {
	d, err := restcrm.LoadShipped("crmsim")
	if err != nil {
		t.Fatal(err)
	}
	c, err := restcrm.New(d, restcrm.Config{BaseURL: "http://crm.example", Class: crm.Lookup,
		Sender: &scripted{answers: []any{answer(429, `{}`, "Retry-After", "7")}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Find(t.Context(), "op-1", soon())
	if e := wantOutcome(t, err, crm.NotApplied, "HTTP 429 rate_limited"); e.RetryAfter != 7*time.Second {
		t.Errorf("to come back after %s", e.RetryAfter)
	}
}
