package crmtest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

// ask sends a request to the CRM behind a liar.
func ask(crm http.Handler, r *http.Request, method, target string, body []byte) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	again := httptest.NewRequestWithContext(context.WithoutCancel(r.Context()), method, target, bytes.NewReader(body))
	again.Header = r.Header.Clone()
	crm.ServeHTTP(out, again)
	return out
}

func relay(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	crmtest.Relay(w, answer.Code, answer.Header(), answer.Body.Bytes())
}

func say(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// lying is a handler that has the request's body; false: the CRM answers.
func lying(lie func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool) func(http.Handler) http.Handler {
	return func(crm http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			if !lie(crm, w, r, body) {
				relay(w, ask(crm, r, r.Method, r.URL.RequestURI(), body))
			}
		})
	}
}

func isCreate(r *http.Request) bool { return r.Method == http.MethodPost || r.Method == http.MethodPut }

var keyAndBody = lying(func(_ http.Handler, _ http.ResponseWriter, r *http.Request, body []byte) bool {
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		r.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%x", key, sha256.Sum256(body)))
	}
	return false
})

// bodyIgnored remembers the first body of every key, and sends that.
func bodyIgnored(crm http.Handler) http.Handler {
	var mu sync.Mutex
	first := map[string][]byte{}
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
		key := r.Header.Get("Idempotency-Key")
		if key == "" {
			return false
		}
		mu.Lock()
		if first[key] == nil {
			first[key] = body
		}
		body = first[key]
		mu.Unlock()
		relay(w, ask(crm, r, r.Method, r.URL.RequestURI(), body))
		return true
	})(crm)
}

type lead struct {
	ID         string            `json:"id"`
	ExternalID string            `json:"external_id"`
	Fields     map[string]string `json:"fields,omitempty"`
}

func find(crm http.Handler, r *http.Request, externalID string) []lead {
	var answer struct{ Leads []lead }
	_ = json.Unmarshal(ask(crm, r, http.MethodGet, "/leads?external_id="+externalID, nil).Body.Bytes(), &answer)
	return answer.Leads
}

// What checkThenInsert does about a lead that it sees.
type whenThere int

const (
	inserts whenThere = iota // all the same
	updates                  // 200
	refuses                  // 409
)

// checkThenInsert is a unique key in the application instead of in the index. The
// window between its check and its insert is that of a slow page.
func checkThenInsert(then whenThere) func(http.Handler) http.Handler {
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !isCreate(r) {
			return false
		}
		var l lead
		_ = json.Unmarshal(body, &l)
		if l.ExternalID == "" {
			l.ExternalID = strings.TrimPrefix(r.URL.Path, "/leads/")
		}
		there := find(crm, r, l.ExternalID)
		<-time.After(20 * time.Millisecond)
		switch {
		case len(there) > 0 && then == updates:
			say(w, 200, fmt.Sprintf(`{"id":%q}`, there[0].ID))
		case len(there) > 0 && then == refuses:
			say(w, 409, fmt.Sprintf(`{"error":{"code":"already_exists"},"id":%q}`, there[0].ID))
		default:
			body, _ = json.Marshal(l)
			relay(w, ask(crm, r, http.MethodPost, "/leads", body))
		}
		return true
	})
}

// lookAlike finds duplicates by what a lead says, and calls that a unique key.
func lookAlike(crm http.Handler) http.Handler {
	var mu sync.Mutex
	ids := map[string]string{}
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !isCreate(r) {
			return false
		}
		var l lead
		_ = json.Unmarshal(body, &l)
		mu.Lock()
		defer mu.Unlock()
		if id := ids[l.Fields["text"]]; id != "" {
			say(w, 409, fmt.Sprintf(`{"error":{"code":"already_exists"},"id":%q}`, id))
			return true
		}
		answer := ask(crm, r, r.Method, r.URL.RequestURI(), body)
		var made lead
		_ = json.Unmarshal(answer.Body.Bytes(), &made)
		ids[l.Fields["text"]] = made.ID
		relay(w, answer)
		return true
	})(crm)
}

// answersAnother makes the lead and, from the third on, answers the id of the one
// before.
func answersAnother(crm http.Handler) http.Handler {
	var mu sync.Mutex
	n, before := 0, ""
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !isCreate(r) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		var made lead
		_ = json.Unmarshal(ask(crm, r, r.Method, r.URL.RequestURI(), body).Body.Bytes(), &made)
		said := made.ID
		if n++; n > 2 {
			said = before
		}
		before = made.ID
		say(w, 201, fmt.Sprintf(`{"id":%q}`, said))
		return true
	})(crm)
}

var findsNothing = lying(func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ []byte) bool {
	if r.Method != http.MethodGet {
		return false
	}
	say(w, 200, `{"leads":[]}`)
	return true
})

// finding answers lookups with leads that it chooses of all, as if they were ours.
func finding(choose func(asked string, all []lead) []lead) func(http.Handler) http.Handler {
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method != http.MethodGet {
			return false
		}
		asked := r.URL.Query().Get("external_id")
		var effects []struct {
			ExternalID string `json:"external_id"`
			CRMID      string `json:"crm_id"`
		}
		_ = json.Unmarshal(ask(crm, r, http.MethodGet, "/oracle/effects", nil).Body.Bytes(), &effects)
		var all []lead
		for _, e := range effects {
			all = append(all, lead{ID: e.CRMID, ExternalID: e.ExternalID})
		}
		chosen := []lead{}
		for _, l := range choose(asked, all) {
			chosen = append(chosen, lead{ID: l.ID, ExternalID: asked})
		}
		body, _ := json.Marshal(map[string]any{"leads": chosen})
		say(w, 200, string(body))
		return true
	})
}

var findsAnything = finding(func(_ string, all []lead) []lead {
	return append(all, lead{ID: "L-000000"})
})

var findsNeighbours = finding(func(asked string, all []lead) (chosen []lead) {
	for _, l := range all {
		if strings.HasPrefix(l.ExternalID, asked) {
			chosen = append(chosen, l)
		}
	}
	return chosen
})

var findsOne = finding(func(asked string, all []lead) (chosen []lead) {
	for _, l := range all {
		if l.ExternalID == asked {
			return []lead{l}
		}
	}
	return nil
})

var phantom = lying(func(_ http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
	if !isCreate(r) {
		return false
	}
	say(w, 201, fmt.Sprintf(`{"id":"L-%x"}`, sha256.Sum256(body)))
	return true
})

// losesFourth answers the fourth create, whose answer is cut, and makes nothing.
func losesFourth(crm http.Handler) http.Handler {
	var n atomic.Int64
	return lying(func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if !isCreate(r) || n.Add(1) != 4 {
			return false
		}
		say(w, 201, `{"id":"L-999999"}`)
		return true
	})(crm)
}

// refusesAfter refuses what has the field, or everything, once it is saved.
func refusesAfter(field string, status int, code string) func(http.Handler) http.Handler {
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
		var l lead
		if !isCreate(r) || json.Unmarshal(body, &l) != nil || field != "" && l.Fields[field] == "" {
			return false
		}
		delete(l.Fields, field)
		body, _ = json.Marshal(l)
		ask(crm, r, r.Method, r.URL.RequestURI(), body)
		say(w, status, fmt.Sprintf(`{"error":{"code":%q}}`, code))
		return true
	})
}

// notExecuted says so of every other create, which it has carried out.
func notExecuted(crm http.Handler) http.Handler {
	var mu sync.Mutex
	n := 0
	return lying(func(crm http.Handler, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !isCreate(r) {
			return false
		}
		mu.Lock()
		n++
		odd := n%2 == 1
		mu.Unlock()
		if !odd {
			return false
		}
		ask(crm, r, r.Method, r.URL.RequestURI(), body)
		say(w, 503, `{"error":{"code":"not_executed"}}`)
		return true
	})(crm)
}
