package crmtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// debounce has no unique key: it answers "exists" to the same key for a while, as a CRM
// does that only means to forgive a double click.
func debounce(window time.Duration) func(http.Handler) http.Handler {
	type made struct {
		id string
		at time.Time
	}
	var mu sync.Mutex
	keys := map[string]made{}
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !isCreate(r) {
			return false
		}
		var l, m lead
		_ = json.Unmarshal(body, &l)
		mu.Lock()
		defer mu.Unlock()
		if k := keys[l.ExternalID]; k.id != "" && time.Since(k.at) < window {
			say(w, 409, fmt.Sprintf(`{"error":{"code":"already_exists"},"id":%q}`, k.id))
			return true
		}
		answer := ask(crm, r, r.Method, r.URL.RequestURI(), body)
		_ = json.Unmarshal(answer.Body.Bytes(), &m)
		keys[l.ExternalID] = made{m.ID, time.Now()}
		relay(w, answer)
		return true
	})
}

func TestAKeyThatIsForgottenBehindTheSettleTime(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.Lookup}, debounce(1500*time.Millisecond))
	r := certifyOne(t, crmtest.Candidate{
		Connect: described("crmsim"), URL: url, Classes: []crm.Class{crm.UniqueCreate}, Soak: 1600 * time.Millisecond,
	})
	if verdict, evidence := probe(r, "repeated after the settle time"); r.Verdict != crmtest.Broken || verdict != crmtest.Broken {
		t.Errorf("%s: %s", verdict, evidence)
	}
}

// TestAValidityThatWasNotWaitedFor is not shown: within it, creates would be repeated.
func TestAValidityThatWasNotWaitedFor(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.IdempotencyKey}, nil)
	r := certifyOne(t, crmtest.Candidate{
		Connect: func(url string, class crm.Class) (crm.Connector, error) {
			d, err := restcrm.LoadShipped("crmsim")
			if err != nil {
				return nil, err
			}
			return restcrm.New(d, restcrm.Config{BaseURL: url, Class: class, Settle: briefSettle})
		},
		URL: url, Classes: []crm.Class{crm.IdempotencyKey},
	})
	if verdict, evidence := probe(r, "end of the key's validity"); r.Verdict != crmtest.NotShown || verdict != crmtest.NotShown {
		t.Errorf("%s: %s: %s", r.Verdict, verdict, evidence)
	}
}
