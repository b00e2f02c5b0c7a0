package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// inSteps is a process of a newer configuration, in which a lead takes the steps.
func (w *world) inSteps(name string, steps ...string) *engine.Engine {
	w.steps = steps
	return w.engine(name, 0)
}

// TestALeadBecomesOneOfSeveralSteps: a lead whose outcome is unknown is the lead, although
// the configuration says since that a contact comes before it. It is looked up, and never
// made without the contact.
func TestALeadBecomesOneOfSeveralSteps(t *testing.T) {
	for name, c := range map[string]struct {
		class crm.Class
		lost  fault
		want  []string // behind ReconciliationNeeded
	}{
		"made":            {crm.Lookup, lostAfter, []string{"LeadConfirmed"}},
		"not made":        {crm.Lookup, lostBefore, []string{"LeadAbsent", "JobClaimed", "StepConfirmed", "JobClaimed", "StepConfirmed", "LeadConfirmed"}},
		"and repeatable":  {crm.IdempotencyKey, lostAfter, []string{"LeadConfirmed"}},
		"neither of both": {crm.IdempotencyKey, lostBefore, []string{"LeadAbsent", "JobClaimed", "StepConfirmed", "JobClaimed", "StepConfirmed", "LeadConfirmed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.class)
			key := w.accept(t, message(1, "hello"))
			w.fail("create", c.lost)
			w.advance(t, w.engine("before", 0), key)
			w.run(t, w.inSteps("after", "contact", "lead"))
			s := wantPhase(t, w, key, job.Done)
			history := w.history(key.Stream())
			for len(history) > 0 && history[0] != "ReconciliationNeeded" {
				history = history[1:]
			}
			if got := history[min(1, len(history)):]; !slices.Equal(got, c.want) {
				t.Errorf("then %v, want %v", got, c.want)
			}
			if n := len(w.crm.effects(s.OperationID)); n != 1 {
				t.Errorf("%d leads", n)
			}
		})
	}
}

// TestAnAbsentLeadHasToSettle: a person is told to wait for the settle time, whatever the
// lead's step was called when the request left.
func TestAnAbsentLeadHasToSettle(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.fail("create", lostAfter)
	w.advance(t, w.engine("before", 0), key)
	after := w.inSteps("after", "contact", "lead")
	s := wantPhase(t, w, key, job.NeedsReconciliation)
	w.time.advance(s.LastDeadline.Add(patient.ClockSkew + time.Second).Sub(w.time.Now()))
	if _, err := after.ResolveAbsent(t.Context(), key, "", operator); err == nil {
		t.Error("taken for absent before the settle time")
	}
}

// TestAStepThatIsGoneHasToSettle too: how long its requests take, the others tell.
func TestAStepThatIsGoneHasToSettle(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.fail("create", lostAfter)
	w.advance(t, w.inSteps("before", "contact", "lead"), key)
	after := w.inSteps("after")
	s := wantPhase(t, w, key, job.NeedsReconciliation)
	w.time.advance(s.LastDeadline.Add(patient.ClockSkew + time.Second).Sub(w.time.Now()))
	if _, err := after.ResolveAbsent(t.Context(), key, "contact", operator); err == nil {
		t.Error("taken for absent before the settle time")
	}
	w.time.advance(settle)
	mustAct(t)(after.ResolveAbsent(t.Context(), key, "contact", operator))
}
