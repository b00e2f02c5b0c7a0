package crmtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

// sameField has a unique key of its own beside ours, and says "exists" of both.
func sameField(field string) func(http.Handler) http.Handler {
	var mu sync.Mutex
	ids := map[string]string{}
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !isCreate(r) {
			return false
		}
		var l, made lead
		_ = json.Unmarshal(body, &l)
		value := l.Fields[field]
		mu.Lock()
		defer mu.Unlock()
		if id := ids[value]; id != "" && value != "" {
			say(w, 409, fmt.Sprintf(`{"error":{"code":"already_exists"},"id":%q}`, id))
			return true
		}
		answer := ask(crm, r, r.Method, r.URL.RequestURI(), body)
		_ = json.Unmarshal(answer.Body.Bytes(), &made)
		ids[value] = made.ID
		relay(w, answer)
		return true
	})
}

// TestLookAlikes: a person's second enquiry is not the first, whatever a CRM goes by.
func TestLookAlikes(t *testing.T) {
	for _, field := range []string{"phone", "email", "user_id", "contact_name", "name"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			_, url := simulated(t, sim.Config{Class: sim.UniqueCreate}, sameField(field))
			if got := certify(t, url, crm.UniqueCreate).Of(crm.UniqueCreate); got != crmtest.Broken {
				t.Errorf("unique_create: %s", got)
			}
		})
	}
}
