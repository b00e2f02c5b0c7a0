package restcrm_test

import (
	"slices"
	"testing"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
)

// ambiguous: the fault leaves open what became of the create; one lead all the
// same.
func ambiguous(t *testing.T, lastError string, faults ...sim.Fault) {
	for _, fault := range faults {
		t.Run(string(fault), func(t *testing.T) {
			forEveryClass(t, func(t *testing.T, class crm.Class) {
				w := newWorld(t, setup{class: class})
				w.script([]sim.Fault{fault})
				key, _ := w.deliver(1)
				w.advance(key)
				s := w.state(key)
				if s.CRMID != "" || !s.Ambiguous || s.LastError != lastError {
					t.Fatalf("%s with lead %q, ambiguous %t, last error %q, want %q", s.Phase, s.CRMID, s.Ambiguous, s.LastError, lastError)
				}
				w.run()
				w.wantOne(class, key)
			})
		})
	}
}

func TestT62_SuccessWithoutID(t *testing.T) {
	ambiguous(t, "HTTP 200 meets no rule", sim.OKWithoutID, sim.OKHTMLAfter, sim.OKHTMLBefore)
	ambiguous(t, "HTTP 202 meets no rule", sim.AcceptedLater)
}

func TestT63_SuccessWithErrorInside(t *testing.T) {
	ambiguous(t, "HTTP 200 meets no rule", sim.OKWithErrorBefore, sim.OKWithErrorAfter)
}

func TestT64_RefusedAfterSave(t *testing.T) {
	ambiguous(t, "HTTP 400 meets no rule", sim.BadRequestAfter)
}

func TestT65_BareUnavailable(t *testing.T) {
	ambiguous(t, "HTTP 503 meets no rule", sim.UnavailableBefore, sim.UnavailableAfter)
}

// TestT65_NotExecuted: a 503 whose code says that nothing was executed is sent
// again in every class, and nobody has to reconcile anything.
func TestT65_NotExecuted(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		w := newWorld(t, setup{class: class})
		w.script([]sim.Fault{sim.NotExecuted, sim.NotExecuted})
		key, _ := w.deliver(1)
		w.run()
		w.wantDone(key)
		w.wantCounts(key, 3, 0)
		want := []string{"UpdateReceived", "JobClaimed", "AttemptNotApplied", "JobClaimed", "AttemptNotApplied", "JobClaimed", "LeadConfirmed"}
		if got := w.events(key); !slices.Equal(got, want) {
			t.Fatalf("events %v, want %v", got, want)
		}
	})
}

// TestT72_RedirectToLogin: the redirect is the answer; nobody follows it.
func TestT72_RedirectToLogin(t *testing.T) {
	ambiguous(t, "HTTP 302 meets no rule", sim.LoginRedirect)
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		w := newWorld(t, setup{class: class})
		w.script([]sim.Fault{sim.LoginRedirect}, sim.LoginRedirect)
		key, _ := w.deliver(1)
		w.run()
		w.wantOne(class, key)
		if n := w.crm.Stats().LoginVisits; n != 0 {
			t.Fatalf("%d visits to the login page", n)
		}
	})
}
