package restcrm_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

// tenant is a vendor's contacts and leads behind one address.
type tenant struct {
	contacts, leads *fake

	mu    sync.Mutex
	fault map[*fake]string // what meets the next create: cut, or the name of an answer
}

func (a *tenant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := a.leads
	if strings.Contains(r.URL.Path, "contacts") || strings.Contains(r.URL.Path, "persons") {
		f = a.contacts
	}
	a.mu.Lock()
	fault := a.fault[f]
	if f.isCreate(r) {
		delete(a.fault, f)
	}
	a.mu.Unlock()
	switch {
	case fault == "" || !f.isCreate(r):
		f.ServeHTTP(w, r)
	case fault == "cut":
		f.ServeHTTP(httptest.NewRecorder(), r)
		crmtest.HangUp(w, true)
	default:
		for _, answer := range f.answers {
			if answer.Name == fault {
				crmtest.Relay(w, answer.Status, nil, []byte(answer.Body))
			}
		}
	}
}

// takenOn is an update whose lead is made over the steps of a vendor. Each time that
// the engine looks at the job, it is another process, with a connector of its own.
type takenOn struct {
	t       *testing.T
	log     *memory.Log
	clock   *wall
	ids     counter
	connect func(*wall) crm.Connector
	key     job.Key
}

func takeOn(t *testing.T, connect func(*wall) crm.Connector) *takenOn {
	t.Helper()
	j := &takenOn{t: t, log: memory.New(), clock: &wall{}, connect: connect}
	u, err := job.ParseUpdate(7, []byte(`{"update_id":1,"message":{"chat":{"id":5,"type":"private"},"from":{"id":5,"first_name":"Ada"},"text":"Hello"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if j.key, _, err = j.process().Accept(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *takenOn) process() *engine.Engine {
	e, err := engine.New(engine.Config{
		Log: j.log, CRM: j.connect(j.clock), Clock: j.clock, IDs: &j.ids, Observer: observer{j.t},
		Plan: job.DefaultPlan, Worker: "w", Policy: patient,
	})
	if err != nil {
		j.t.Fatal(err)
	}
	return e
}

// run takes the job on until it is final, and lets time pass between the processes.
func (j *takenOn) run() job.State {
	for range 100 {
		v, err := j.process().Advance(j.t.Context(), j.key.Stream())
		if err != nil {
			j.t.Fatal(err)
		}
		switch v.Schedule {
		case job.Closed, job.Waiting:
			s, err := engine.Load(j.t.Context(), j.log, j.key.Stream())
			if err != nil {
				j.t.Fatal(err)
			}
			return s
		}
		j.clock.pass(max(time.Minute, v.At.Sub(j.clock.Now())))
	}
	j.t.Fatal("no end in sight")
	return job.State{}
}

// TestStepsGoOnWhereTheyEnded: something goes wrong in one of the steps, and each time
// another process goes on. Nothing is made a second time.
func TestStepsGoOnWhereTheyEnded(t *testing.T) {
	for _, vendors := range []struct {
		contact, lead vendor
		refers        string // in the create of a lead
		again         int    // creates of a contact whose answer was cut
	}{
		{pipedriveContact(), pipedriveLead(), `"person_id":1`, 1},
		{hubspotContact(), hubspotLead(), `"to":{"id":"1"}`, 2},
	} {
		for _, c := range []struct{ name, step, fault string }{
			{"nothing goes wrong", "lead", ""},
			{"the contact is made and its answer cut", "contact", "cut"},
			{"the contact is not applied", "contact", "429"},
			{"the contact is refused", "contact", "400_validation"},
			{"the lead is refused after the contact", "lead", "400_validation"},
			{"the lead is not applied after the contact", "lead", "429"},
			{"the lead is made and its answer cut", "lead", "cut"},
		} {
			t.Run(vendors.contact.file+" "+c.name, func(t *testing.T) {
				a := &tenant{contacts: newFake(t, vendors.contact), leads: newFake(t, vendors.lead)}
				faulty := map[string]*fake{"contact": a.contacts, "lead": a.leads}[c.step]
				a.fault = map[*fake]string{faulty: c.fault}
				web := httptest.NewServer(a)
				defer web.Close()
				j := takeOn(t, func(clock *wall) crm.Connector {
					connector, err := shipped(t, vendors.contact.file, restcrm.Config{
						BaseURL: web.URL, Vars: vendors.contact.vars, Secrets: vendorEnvironment, Now: clock.Now, Sleep: clock.Sleep,
					})
					if err != nil {
						t.Fatal(err)
					}
					return connector
				})
				s := j.run()
				if c.fault == "400_validation" {
					if s.Phase != job.DeadLetter {
						t.Fatalf("refused, and the job is %s", s.Phase)
					}
					if _, err := j.process().Requeue(t.Context(), j.key, job.Signature{By: "ann", Reason: "mended"}); err != nil {
						t.Fatal(err)
					}
					s = j.run()
				}
				asked := 1
				if c.step == "contact" && c.fault == "cut" {
					asked = vendors.again
				}
				if s.Phase != job.Done || len(a.contacts.made) != 1 || len(a.contacts.seen) != asked || len(a.leads.made) != 1 {
					t.Errorf("%s; %d contacts of %d creates, %d leads", s.Phase, len(a.contacts.made), len(a.contacts.seen), len(a.leads.made))
				}
				for _, body := range a.leads.seen {
					if !strings.Contains(body, vendors.refers) {
						t.Errorf("the lead is not of the contact: %s", body)
					}
				}
			})
		}
	}
}
