package crmtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

const (
	briefSettle   = 150 * time.Millisecond
	briefValidity = time.Second
)

// described is the connector that the file describes, and times that tests can wait for.
func described(file string) func(url string, class crm.Class) (crm.Connector, error) {
	return func(url string, class crm.Class) (crm.Connector, error) {
		d, err := restcrm.LoadShipped(file)
		if err != nil {
			return nil, err
		}
		return restcrm.New(d, restcrm.Config{BaseURL: url, Class: class, Settle: briefSettle, KeyValidity: briefValidity})
	}
}

// simulated is a CRM, with something in front of it that may lie.
func simulated(t *testing.T, config sim.Config, lie func(http.Handler) http.Handler) (*sim.Server, string) {
	t.Helper()
	server, err := sim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler = server
	if lie != nil {
		handler = lie(server)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	t.Cleanup(func() { _ = server.Close() })
	return server, web.URL
}

func certify(t *testing.T, url string, classes ...crm.Class) crmtest.Certificate {
	t.Helper()
	certificate, err := crmtest.Certify(t.Context(), crmtest.Candidate{
		Connect: described("crmsim"), URL: url, Classes: classes, Patience: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range certificate.Results {
		t.Logf("%s: %s %s", r.Class, r.Verdict, r.Why)
		for _, p := range r.Probes {
			t.Logf("    %s: %s: %s", p.Name, p.Verdict, p.Evidence)
		}
	}
	return certificate
}

// TestHonest: every simulated CRM is certified as what it is, and as nothing stronger.
func TestHonest(t *testing.T) {
	for _, class := range crm.Classes {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			server, url := simulated(t, sim.Config{Class: sim.Class(class)}, nil)
			certificate := certify(t, url, crm.Classes...)
			if got := certificate.Strongest(); got != class {
				t.Errorf("certified as %q, is %s", got, class)
			}
			for _, stronger := range crm.Classes[:slices.Index(crm.Classes, class)] {
				if certificate.Of(stronger) == crmtest.Held {
					t.Errorf("%s held", stronger)
				}
			}
			if left := server.Effects(); len(left) > 0 {
				t.Errorf("%d leads are left, the first: %+v", len(left), left[0])
			}
			for _, r := range certificate.Results {
				for _, l := range r.Leads {
					if !l.Removed && l.CRMID != "" {
						t.Errorf("%s: the lead %s is not removed", r.Class, l.CRMID)
					}
				}
			}
		})
	}
}

// probe is the evidence of a probe; "" when it was not made.
func probe(r crmtest.Result, name string) (verdict crmtest.Verdict, evidence string) {
	for _, p := range r.Probes {
		if p.Name == name {
			return p.Verdict, p.Evidence
		}
	}
	return "", ""
}

// TestEvidence: what was tried is told with figures, and neither the leads' fields nor
// a password are.
func TestEvidence(t *testing.T) {
	t.Parallel()
	server, url := simulated(t, sim.Config{Class: sim.IdempotencyKey}, nil)
	certificate := certify(t, strings.Replace(url, "http://", "http://leadonce:hunter2@", 1), crm.IdempotencyKey)
	r := certificate.Results[0]
	for name, want := range map[string]string{
		"key in the create":           "bears the operation's key as it is",
		"lookup":                      "found by the first look",
		"answer cut, create repeated": "what it says, and two repeated ones name one lead",
		"creates at once":             "24 creates reached the CRM in 3 rounds",
		"key with another body":       "is not carried out: unknown: HTTP 422",
		"end of the key's validity":   "its validity is said to be 1s; it was still known after",
		"refused create":              "HTTP 422 validation, and no lead was made",
		"leads counted":               "8 leads of 9 operations",
	} {
		if verdict, evidence := probe(r, name); verdict != crmtest.Held || !strings.Contains(evidence, want) {
			t.Errorf("%s: %s: %q, want %q in it", name, verdict, evidence, want)
		}
	}
	for _, p := range r.Probes {
		if strings.Contains(p.Evidence, "hunter2") || strings.Contains(p.Evidence, "trial of leadonce") {
			t.Errorf("%s shows what it must not: %s", p.Name, p.Evidence)
		}
	}
	creates := 0
	for _, total := range server.Totals() {
		creates += total.Creates
	}
	if creates < 30 || creates > 60 {
		t.Errorf("%d creates reached the CRM", creates)
	}
}

// TestHonestInBadWeather: a CRM whose answers get lost, and that is late, is not said
// to lie. In these seeds a create is unanswered three times in a row, or lost behind
// the answer that is cut.
func TestHonestInBadWeather(t *testing.T) {
	for _, class := range crm.Classes {
		for _, seed := range []uint64{0, 21, 22, 26, 37} {
			t.Run(fmt.Sprintf("%s %d", class, seed), func(t *testing.T) {
				t.Parallel()
				_, url := simulated(t, sim.Config{
					Class: sim.Class(class), Faults: 0.3, Seed: seed,
					Hang: 50 * time.Millisecond, IndexLag: 20 * time.Millisecond, RetryAfter: 20 * time.Millisecond,
				}, nil)
				if certificate := certify(t, url, class); certificate.Of(class) == crmtest.Broken {
					t.Errorf("%s is said to be broken: %s", class, certificate.Results[0].Why)
				}
			})
		}
	}
}
