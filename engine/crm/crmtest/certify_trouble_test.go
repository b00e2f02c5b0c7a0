package crmtest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// changed is a connector with a part of it replaced.
type changed struct {
	crm.Connector
	describe func(crm.Description) crm.Description
	before   func(*crm.Operation)
	after    func(crm.Receipt, error) (crm.Receipt, error)
}

func (c changed) Describe() crm.Description {
	if c.describe == nil {
		return c.Connector.Describe()
	}
	return c.describe(c.Connector.Describe())
}

func (c changed) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	if c.before != nil {
		c.before(&op)
	}
	receipt, err := c.Connector.Create(ctx, op)
	if c.after != nil {
		return c.after(receipt, err)
	}
	return receipt, err
}

func candidate(url string, class crm.Class, change changed) crmtest.Candidate {
	return crmtest.Candidate{
		Connect: func(url string, class crm.Class) (c crm.Connector, err error) {
			change.Connector, err = described("crmsim")(url, class)
			return change, err
		},
		URL: url, Classes: []crm.Class{class}, Patience: 3 * time.Second,
	}
}

func certifyOne(t *testing.T, c crmtest.Candidate) crmtest.Result {
	t.Helper()
	certificate, err := crmtest.Certify(t.Context(), c)
	if err != nil || len(certificate.Results) != 1 {
		t.Fatalf("%+v, %v", certificate, err)
	}
	return certificate.Results[0]
}

// TestNoLookup: without a lookup nobody has counted the leads, and so no class that is
// about their number is shown, however alike the answers are.
func TestNoLookup(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.UniqueCreate}, nil)
	r := certifyOne(t, candidate(url, crm.UniqueCreate, changed{
		describe: func(d crm.Description) crm.Description { d.CanFind = false; return d },
	}))
	if verdict, _ := probe(r, "creates at once"); r.Verdict != crmtest.NotShown || verdict != crmtest.Held {
		t.Errorf("%+v", r)
	}
	if len(r.Leads) == 0 || r.Leads[0].Removed {
		t.Errorf("a connector that cannot remove leads: %+v", r.Leads)
	}
}

// TestACutIsNoProof: a connector that takes an answer that was cut for anything else than
// unknown is found, whatever the CRM is.
func TestACutIsNoProof(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.UniqueCreate}, nil)
	for want, mistaken := range map[string]struct {
		receipt crm.Receipt
		err     error
	}{
		"taken for done, lead L-0": {crm.Receipt{CRMID: "L-0"}, nil},
		`taken for "not applied"`:  {crm.Receipt{}, &crm.Error{Outcome: crm.NotApplied}},
		`taken for "refused"`:      {crm.Receipt{}, &crm.Error{Outcome: crm.Refused}},
	} {
		for _, class := range []crm.Class{crm.UniqueCreate, crm.Lookup} {
			t.Run(want+"/"+string(class), func(t *testing.T) {
				t.Parallel()
				r := certifyOne(t, candidate(url, class, changed{after: func(receipt crm.Receipt, err error) (crm.Receipt, error) {
					if err != nil && crm.Classify(err).Outcome == crm.Unknown {
						return mistaken.receipt, mistaken.err
					}
					return receipt, err
				}}))
				if r.Verdict != crmtest.Broken || !strings.Contains(r.Why, "a create whose answer was cut was "+want) {
					t.Errorf("%s: %s, want %s", r.Verdict, r.Why, want)
				}
			})
		}
	}
}

// TestKeyNotSent: a create that does not bear the operation's key is found by its
// request, whatever the CRM is.
func TestKeyNotSent(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.Lookup}, nil)
	r := certifyOne(t, candidate(url, crm.None, changed{before: func(op *crm.Operation) { op.ID = "always-the-same" }}))
	if verdict, _ := probe(r, "key in the create"); r.Verdict != crmtest.Broken || verdict != crmtest.Broken {
		t.Errorf("%+v", r)
	}
}

// TestKeyMadeOfTheKey: a key that is sent in another form is one all the same.
func TestKeyMadeOfTheKey(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.Lookup}, nil)
	r := certifyOne(t, candidate(url, crm.None, changed{before: func(op *crm.Operation) { op.ID = strings.ToUpper("x" + op.ID) }}))
	if verdict, evidence := probe(r, "key in the create"); verdict != crmtest.Held || !strings.Contains(evidence, "made of the key") {
		t.Errorf("%s: %s", verdict, evidence)
	}
}

// TestRaceAtARate: a connector that sends one create after the other does not hide a
// race in the CRM; they are gathered on the wire.
func TestRaceAtARate(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.Lookup}, checkThenInsert(refuses))
	var turn sync.Mutex
	r := certifyOne(t, candidate(url, crm.UniqueCreate, changed{before: func(*crm.Operation) {
		turn.Lock()
		defer turn.Unlock()
		<-time.After(50 * time.Millisecond)
	}}))
	if verdict, evidence := probe(r, "creates at once"); verdict != crmtest.Broken {
		t.Errorf("%s: %s", verdict, evidence)
	}
}

// TestPathThroughTheWire: what a connector escapes reaches the CRM as it was.
func TestPathThroughTheWire(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	_, url := simulated(t, sim.Config{Class: sim.None}, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.RequestURI })
	})
	upstream, err := crmtest.NewUpstream(url+"/base/", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	in := httptest.NewRequest(http.MethodGet, "/leads/a%2Fb%20c/x?q=%2F", nil)
	if _, _, _, err := upstream.Forward(in, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := <-seen, "/base/leads/a%2Fb%20c/x?q=%2F"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

// TestInterrupted: what was made until then is removed and listed.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, url := simulated(t, sim.Config{Class: sim.UniqueCreate}, nil)
	certificate, err := crmtest.Certify(ctx, crmtest.Candidate{
		Connect: described("crmsim"), URL: url, Classes: []crm.Class{crm.UniqueCreate, crm.Lookup}, Patience: 3 * time.Second,
		Progress: func(text string) {
			if strings.Contains(text, "at once") {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || len(certificate.Results) != 1 || certificate.Of(crm.UniqueCreate) != crmtest.NotShown {
		t.Fatalf("%+v, %v", certificate, err)
	}
	if left := server.Effects(); len(left) > 0 || len(certificate.Results[0].Leads) < 3 {
		t.Errorf("left: %+v, listed: %+v", left, certificate.Results[0].Leads)
	}
}

// TestNobodyThere: a CRM that cannot be reached is told at once.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	certificate, err := crmtest.Certify(t.Context(), candidate("http://hunter2:hunter2@127.0.0.1:1", crm.UniqueCreate, changed{}))
	if err == nil || len(certificate.Results) > 0 || !strings.Contains(err.Error(), "cannot be reached") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%+v, %v", certificate, err)
	}
}

// steps is a lead that takes a contact first.
type steps struct {
	crm.Connector
	list []crm.Step
}

func (s steps) Steps() []crm.Step { return s.list }

// made keeps what the steps before had made, at every create.
type made struct {
	mu   sync.Mutex
	seen []map[string]string
}

func (m *made) note(op *crm.Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, op.Made)
}

// TestSteps: each step is certified by itself, in order, with what the steps before
// have made; the class is as good as the worst of them.
func TestSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contacts sim.Config
		lie      func(http.Handler) http.Handler
		contact  crmtest.Verdict
		lead     crmtest.Verdict
	}{
		"sound":                  {contacts: sim.Config{Class: sim.Upsert}, contact: crmtest.Held, lead: crmtest.Held},
		"the contact's lies":     {contacts: sim.Config{Class: sim.Lookup}, lie: checkThenInsert(inserts), contact: crmtest.Broken, lead: crmtest.Held},
		"no contact can be made": {contacts: sim.Config{Class: sim.None}, contact: crmtest.NotShown, lead: crmtest.NotShown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := simulated(t, sim.Config{Class: sim.UniqueCreate}, func(leads http.Handler) http.Handler {
				contacts, err := sim.New(c.contacts)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = contacts.Close() })
				var lying http.Handler = contacts
				if c.lie != nil {
					lying = c.lie(contacts)
				}
				mux := http.NewServeMux()
				mux.Handle("/", leads)
				mux.Handle("/contacts/", http.StripPrefix("/contacts", lying))
				return mux
			})
			var before made
			certificate, err := crmtest.Certify(t.Context(), crmtest.Candidate{
				Connect: func(url string, class crm.Class) (crm.Connector, error) {
					lead, err1 := described("crmsim")(url, class)
					contact, err2 := described("crmsim")(url+"/contacts", crm.Upsert)
					lead = changed{Connector: lead, before: before.note}
					return steps{lead, []crm.Step{{Name: "contact", Connector: contact}, {Name: crm.LeadStep, Connector: lead}}}, errors.Join(err1, err2)
				},
				URL: url, Classes: []crm.Class{crm.UniqueCreate}, Patience: 3 * time.Second,
			})
			if err != nil || len(certificate.Results) != 2 {
				t.Fatalf("%+v, %v", certificate, err)
			}
			contact, lead := certificate.Results[0], certificate.Results[1]
			if contact.Step != "contact" || contact.Promise != crm.Upsert || contact.Verdict != c.contact {
				t.Errorf("contact: %+v", contact)
			}
			if lead.Step != crm.LeadStep || lead.Promise != crm.UniqueCreate || lead.Verdict != c.lead {
				t.Errorf("lead: %+v", lead)
			}
			if got := certificate.Of(crm.UniqueCreate) == crmtest.Held; got != (c.contact == crmtest.Held) {
				t.Errorf("the class held: %t", got)
			}
			for _, m := range before.seen {
				if !strings.HasPrefix(m["contact"], "L-") {
					t.Errorf("a lead was asked for without its contact: %v", m)
				}
			}
		})
	}
}

const twoSteps = `
name: two
base_url:
steps:
  - name: contact
    class: lookup
    settle: 150ms
    create:
      path: /contacts/leads
      body: {external_id: '${key}', fields: {text: '${op.text}'}}
      outcome: [{when: status == 201, is: created, id: body.id}]
    lookup:
      path: /contacts/leads
      query: {external_id: '${key}'}
      outcome: [{when: status == 200, is: found}]
      items: body.leads
      match: item.external_id == key
      item_id: item.id
    remove: {path: '/contacts/leads/${id}'}
  - name: lead
    class: unique_create
    settle: 150ms
    create:
      path: /leads
      body: {external_id: '${key}', fields: {text: '${op.text}', contact: '${steps.contact}'}}
      outcome:
        - {when: status == 201, is: created, id: body.id}
        - {when: status == 409, is: exists, id: body.id}
    lookup:
      path: /leads
      query: {external_id: '${key}'}
      outcome: [{when: status == 200, is: found}]
      items: body.leads
      match: item.external_id == key
      item_id: item.id
    remove: {path: '/leads/${id}'}
`

// TestDescribedSteps: a description of several steps is certified as it stands, and
// what both made is removed.
func TestDescribedSteps(t *testing.T) {
	t.Parallel()
	contacts, err := sim.New(sim.Config{Class: sim.Lookup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = contacts.Close() })
	leads, url := simulated(t, sim.Config{Class: sim.UniqueCreate}, func(leads http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/", leads)
		mux.Handle("/contacts/", http.StripPrefix("/contacts", contacts))
		return mux
	})
	certificate, err := crmtest.Certify(t.Context(), crmtest.Candidate{
		Connect: func(url string, class crm.Class) (crm.Connector, error) {
			d, err := restcrm.Load("two.yaml", []byte(twoSteps))
			if err != nil {
				return nil, err
			}
			return restcrm.New(d, restcrm.Config{BaseURL: url, Class: class})
		},
		URL: url, Classes: []crm.Class{crm.UniqueCreate}, Patience: 3 * time.Second,
	})
	if err != nil || certificate.Of(crm.UniqueCreate) != crmtest.Held || len(certificate.Results) != 2 || certificate.Results[0].Promise != crm.Lookup {
		t.Fatalf("%+v, %v", certificate, err)
	}
	if left := append(leads.Effects(), contacts.Effects()...); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	if len(certificate.Results[0].Leads) < 5 || len(certificate.Results[1].Leads) < 5 {
		t.Errorf("listed: %+v", certificate.Results)
	}
}

// TestAssociation: what joins a contact to a lead is the same for every operation
// about the two, and no lie. Nothing counts it without a lookup.
func TestAssociation(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, sim.Config{Class: sim.UniqueCreate}, func(leads http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/", leads)
		mux.HandleFunc("/joins/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		return mux
	})
	_, lead, _ := strings.Cut(twoSteps, "  - name: lead")
	document := "name: two\nbase_url:\nsteps:\n  - name: lead" + strings.Replace(lead, ", contact: '${steps.contact}'", "", 1) + `
  - name: join
    class: upsert
    create:
      method: PUT
      path: /joins/${steps.lead}
      headers: {X-Correlation-Id: '${key}'}
      outcome: [{when: status == 204, is: created, id: 'steps.lead + "-x"'}]
`
	certificate, err := crmtest.Certify(t.Context(), crmtest.Candidate{
		Connect: func(url string, class crm.Class) (crm.Connector, error) {
			d, err := restcrm.Load("joined.yaml", []byte(document))
			if err != nil {
				return nil, err
			}
			return restcrm.New(d, restcrm.Config{BaseURL: url, Class: class})
		},
		URL: url, Classes: []crm.Class{crm.UniqueCreate}, Patience: 3 * time.Second,
	})
	if err != nil || len(certificate.Results) != 2 {
		t.Fatalf("%+v, %v", certificate, err)
	}
	if r := certificate.Results[1]; r.Verdict != crmtest.NotShown || !strings.Contains(r.Why, "no lookup") {
		t.Errorf("%s: %s", r.Verdict, r.Why)
	}
	if verdict, _ := probe(certificate.Results[1], "creates at once"); verdict != crmtest.Held {
		t.Errorf("the rest was not tried: %+v", certificate.Results[1].Probes)
	}
}
