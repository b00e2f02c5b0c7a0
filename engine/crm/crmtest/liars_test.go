package crmtest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// liar is a CRM that is declared a class and behaves as another.
type liar struct {
	declared crm.Class
	config   sim.Config
	lie      func(http.Handler) http.Handler

	want  crmtest.Verdict
	probe string // that finds it
	saw   string // part of its evidence
}

var liars = map[string]liar{
	"a CRM that knows no keys": {declared: crm.IdempotencyKey, config: sim.Config{Class: sim.Lookup},
		want: crmtest.Broken, probe: "answer cut, create repeated", saw: "made 2 leads"},
	"a key accepted and ignored": {declared: crm.IdempotencyKey,
		config: sim.Config{Class: sim.IdempotencyKey, Rates: map[sim.Fault]float64{sim.KeyIgnored: 1}},
		want:   crmtest.Broken, probe: "answer cut, create repeated", saw: "made 2 leads"},
	"a key forgotten too early": {declared: crm.IdempotencyKey,
		config: sim.Config{Class: sim.IdempotencyKey, KeyValidity: 500 * time.Millisecond, Hang: 100 * time.Millisecond},
		want:   crmtest.Broken, probe: "end of the key's validity", saw: "a key was forgotten within"},
	"a key that counts with the body alone": {declared: crm.IdempotencyKey, config: sim.Config{Class: sim.IdempotencyKey},
		lie: keyAndBody, want: crmtest.Broken, probe: "key with another body", saw: "second lead"},
	"a key that never looks at the body": {declared: crm.IdempotencyKey, config: sim.Config{Class: sim.IdempotencyKey},
		lie: bodyIgnored, want: crmtest.Held, probe: "key with another body", saw: "is answered with its lead"},
	"an upsert that only inserts": {declared: crm.Upsert, config: sim.Config{Class: sim.Lookup},
		lie: checkThenInsert(inserts), want: crmtest.Broken, probe: "answer cut, create repeated", saw: "made 2 leads"},
	"an upsert that inserts under concurrency": {declared: crm.Upsert, config: sim.Config{Class: sim.Lookup},
		lie: checkThenInsert(updates), want: crmtest.Broken, probe: "creates at once", saw: "were answered"},
	"a CRM whose unique key is not": {declared: crm.UniqueCreate, config: sim.Config{Class: sim.Lookup},
		want: crmtest.Broken, probe: "answer cut, create repeated", saw: "made 2 leads"},
	"a unique create that races": {declared: crm.UniqueCreate, config: sim.Config{Class: sim.Lookup},
		lie: checkThenInsert(refuses), want: crmtest.Broken, probe: "creates at once", saw: "were answered"},
	"exists for a look-alike": {declared: crm.UniqueCreate, config: sim.Config{Class: sim.UniqueCreate},
		lie: lookAlike, want: crmtest.Broken, probe: "two operations", saw: "which says the same"},
	"another operation's lead in the answer": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: answersAnother, want: crmtest.Broken, probe: "leads counted", saw: "the lookup finds"},
	"a lookup without one": {declared: crm.Lookup, config: sim.Config{Class: sim.None},
		want: crmtest.NotShown, probe: "lookup", saw: "HTTP 405"},
	"a lookup that lags beyond the settle time": {declared: crm.Lookup,
		config: sim.Config{Class: sim.Lookup, IndexLag: 400 * time.Millisecond, Rates: map[sim.Fault]float64{sim.LookupLags: 1}},
		want:   crmtest.Broken, probe: "lookup", saw: "the settle time"},
	"a lookup that never finds": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: findsNothing, want: crmtest.Broken, probe: "lookup", saw: "was not found within"},
	"a lookup that never finds, of a unique key": {declared: crm.UniqueCreate, config: sim.Config{Class: sim.UniqueCreate},
		lie: findsNothing, want: crmtest.Broken, probe: "lookup", saw: "was not found within"},
	"a lookup that finds neighbours": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: findsNeighbours, want: crmtest.Broken, probe: "lookup", saw: "a key that begins like one that exists"},
	"a lookup that finds anything": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: findsAnything, want: crmtest.Broken, probe: "lookup", saw: "an operation that was never sent"},
	"a lookup that shows one of two": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: findsOne, want: crmtest.Broken, probe: "two leads with one key", saw: "the lookup finds"},
	"200 with an error inside": {declared: crm.UniqueCreate,
		config: sim.Config{Class: sim.UniqueCreate, Rates: map[sim.Fault]float64{sim.OKWithErrorAfter: 1}},
		want:   crmtest.NotShown, probe: "two operations", saw: "no create gave a receipt"},
	"200 with an error inside, and every time a lead": {declared: crm.UniqueCreate,
		config: sim.Config{Class: sim.Lookup, Rates: map[sim.Fault]float64{sim.OKWithErrorAfter: 1}},
		want:   crmtest.Broken, probe: "leads counted", saw: "more leads than creates that may make one"},
	"200 with an error inside, behind a sound lookup": {declared: crm.Lookup,
		config: sim.Config{Class: sim.Lookup, Rates: map[sim.Fault]float64{sim.OKWithErrorAfter: 1}},
		want:   crmtest.Held, probe: "answer cut, looked up", saw: "finds its lead"},
	"a lead that is lost": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: losesFourth, want: crmtest.Broken, probe: "answer cut, looked up", saw: "finds 0 leads"},
	"201 and no lead": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: phantom, want: crmtest.Broken, probe: "lookup", saw: "was not found within"},
	"a refusal after the save": {declared: crm.UniqueCreate, config: sim.Config{Class: sim.UniqueCreate},
		lie: refusesAfter("reject", 422, "validation"), want: crmtest.Broken, probe: "refused create", saw: "and yet it made"},
	"400 after every save": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: refusesAfter("", 400, "malformed"), want: crmtest.Broken, probe: "leads counted", saw: `the outcome was "refused"`},
	"not executed, and done all the same": {declared: crm.Lookup, config: sim.Config{Class: sim.Lookup},
		lie: notExecuted, want: crmtest.Broken, probe: "lookup", saw: "the create answered"},
}

// TestLiars: every lie is found, by the probe that is there for it.
func TestLiars(t *testing.T) {
	for name, l := range liars {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, url := simulated(t, l.config, l.lie)
			certificate := certify(t, url, l.declared)
			r := certificate.Results[0]
			if r.Verdict != l.want {
				t.Errorf("%s: %s, want %s", r.Class, r.Verdict, l.want)
			}
			verdict, evidence := probe(r, l.probe)
			if verdict != l.want || !strings.Contains(evidence, l.saw) {
				t.Errorf("%s: %s: %q, want %s with %q", l.probe, verdict, evidence, l.want, l.saw)
			}
			if l.want == crmtest.Held {
				judge(t, server)
			}
		})
	}
}

// TestKeyForgottenSoon: a key whose validity is too long to wait for is tried again
// after the settle time at least.
func TestKeyForgottenSoon(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.IdempotencyKey, KeyValidity: 400 * time.Millisecond, Hang: 100 * time.Millisecond}, nil)
	r := certifyOne(t, crmtest.Candidate{
		Connect: func(url string, class crm.Class) (crm.Connector, error) {
			d, err := restcrm.LoadShipped("crmsim")
			if err != nil {
				return nil, err
			}
			return restcrm.New(d, restcrm.Config{BaseURL: url, Class: class, Settle: 600 * time.Millisecond})
		},
		URL: url, Classes: []crm.Class{crm.IdempotencyKey},
	})
	if verdict, evidence := probe(r, "repeated after the settle time"); r.Verdict != crmtest.Broken || verdict != crmtest.Broken {
		t.Errorf("%s: %s", verdict, evidence)
	}
}

// judge asks the CRM's own journal: what was made is gone.
func judge(t *testing.T, server *sim.Server) {
	t.Helper()
	if left := server.Effects(); len(left) > 0 {
		t.Errorf("%d leads are left: %+v", len(left), left)
	}
}
