package crmtest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// shop is a description with mistakes to put in. Its circuit opens early, as that of a
// careful person may.
const shop = `name: shop
class: unique_create
classes: [unique_create, lookup, none]
settle: 100ms
auth:
  type: session
  value: Bearer ${session.body.token}
  login: {path: /login, granted: status == 200}
create:
  path: /leads
  body: {external_id: '${key}', fields: {text: '${op.text}', reject: {$: optional(op.reject)}}}
  outcome:
    - {when: status == 201, is: created, id: body.id}
    - {when: status == 409, is: exists, id: body.id}
    - {when: status == 401, is: unauthorized}
    - {when: status == 422, is: refused}
lookup:
  path: /leads
  query: {external_id: '${key}'}
  outcome: [{when: status == 200, is: found}]
  items: body.leads
  match: item.external_id == key
  item_id: item.id
limits: {break_after: 2, break_for: 1m}
`

// shopOf certifies a description of the shop in two classes.
func shopOf(t *testing.T, text, url string, classes ...crm.Class) crmtest.Certificate {
	t.Helper()
	d, err := restcrm.Load("shop.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := crmtest.Certify(t.Context(), crmtest.Candidate{
		Connect: func(url string, class crm.Class) (crm.Connector, error) {
			return restcrm.New(d, restcrm.Config{BaseURL: url, Class: class})
		},
		URL: url, Classes: classes, Patience: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// wantProbe checks the first evidence of a probe.
func wantProbe(t *testing.T, r crmtest.Result, name string, verdict crmtest.Verdict, words ...string) {
	t.Helper()
	got, evidence := probe(r, name)
	for _, word := range words {
		if got != verdict || !strings.Contains(evidence, word) {
			t.Errorf("class %s, %s: %s, %s; want %s and %q", r.Class, name, got, evidence, verdict, word)
		}
	}
}

// TestNobodyIsLetIn: a CRM that refuses every login, or every create with its session,
// is asked a few times in all, for some lock the account then.
func TestNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, words string
		login       int
		text        string
	}{
		{"login", "the login was not granted: HTTP 401", http.StatusUnauthorized, strings.Replace(shop, "break_after: 2", "break_after: 5", 1)},
		{"create", "HTTP 401 unauthorized", http.StatusOK, strings.Replace(shop, "break_after: 2", "break_after: 5", 1)},
		// The circuit that opens on it is told, and what opened it too.
		{"circuit", "the login was not granted: HTTP 401; then not sent: the circuit is open", http.StatusUnauthorized, shop},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var logins atomic.Int64
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/login" {
					logins.Add(1)
					w.WriteHeader(c.login)
					_, _ = w.Write([]byte(`{"token": "canary"}`))
					return
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			defer web.Close()
			certificate := shopOf(t, c.text, web.URL, crm.UniqueCreate, crm.Lookup)
			if len(certificate.Results) != 2 {
				t.Fatalf("%+v", certificate)
			}
			wantProbe(t, certificate.Results[0], "two operations", crmtest.NotShown, "no create gave a receipt", c.words)
			wantProbe(t, certificate.Results[0], "two operations", crmtest.NotShown, "look at auth in the description")
			wantProbe(t, certificate.Results[1], "two operations", crmtest.NotShown, "not tried")
			if n := logins.Load(); n > 3 {
				t.Errorf("%d logins, want at most 3", n)
			}
		})
	}
}

// TestNoIDIsRead: a description whose id is not in the answer is told which rule that
// is, and not that its circuit is open; and no lead is called one too many for it.
func TestNoIDIsRead(t *testing.T) {
	t.Parallel()
	server, url := simulated(t, sim.Config{Class: sim.UniqueCreate}, func(crmsim http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/login" {
				_, _ = w.Write([]byte(`{"token": "canary"}`))
				return
			}
			crmsim.ServeHTTP(w, r)
		})
	})
	text := strings.Replace(shop, "is: created, id: body.id", "is: created, id: body.identity", 1)
	certificate := shopOf(t, text, url, crm.UniqueCreate, crm.Lookup, crm.None)
	const which = "HTTP 201, and the rule in line 13 gives no id"
	wantProbe(t, certificate.Results[0], "two operations", crmtest.NotShown, which, "look at id and is under create.outcome")
	wantProbe(t, certificate.Results[1], "two operations", crmtest.Seen, which)
	wantProbe(t, certificate.Results[2], "two operations", crmtest.NotShown, which)
	for _, r := range certificate.Results {
		if r.Verdict == crmtest.Broken {
			t.Errorf("class %s: the CRM is accused: %s", r.Class, r.Why)
		}
	}
	if n := len(server.Effects()); n > 10 {
		t.Errorf("%d leads were made", n)
	}
}
