package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// newSteppedWorld is one in which a lead takes three steps.
func newSteppedWorld(class crm.Class) *world {
	w := newWorld(class)
	w.steps = []string{"contact", job.LeadStep, "link"}
	return w
}

// effectsOf is how often the CRM made what each step makes.
func (w *world) effectsOf(s job.State) (counts []int) {
	for _, step := range []string{"contact", job.LeadStep, "link"} {
		counts = append(counts, len(w.crm.effects(job.StepKey(s.OperationID, step))))
	}
	return counts
}

func wantEffects(t *testing.T, w *world, s job.State, counts ...int) {
	t.Helper()
	if got := w.effectsOf(s); !slices.Equal(got, counts) {
		t.Fatalf("contact, lead and link were made %v times, want %v: %v", got, counts, w.history(s.Key.Stream()))
	}
}

func TestT74_TheContactIsMadeAndTheLeadIsNot(t *testing.T) {
	for _, class := range crm.Classes {
		t.Run(string(class), func(t *testing.T) {
			w := newSteppedWorld(class)
			key := w.accept(t, message(1, "hello"))
			w.fail("create", none, limited, down)
			w.run(t, w.engine("a", 0))
			wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "StepConfirmed", "JobClaimed", "AttemptNotApplied",
				"JobClaimed", "ClaimReleased", "JobClaimed", "StepConfirmed", "JobClaimed", "StepConfirmed", "LeadConfirmed")
			s := wantPhase(t, w, key, job.Done)
			wantEffects(t, w, s, 1, 1, 1)
			if lead, _ := s.Has(job.LeadStep); s.CRMID != "L-2" || lead.CRMID != s.CRMID || w.crm.requests[job.StepKey(s.OperationID, "contact")] != 1 {
				t.Fatalf("lead %s, of %v; requests %v", s.CRMID, s.Made, w.crm.requests)
			}
			made := map[string]map[string]string{
				job.StepKey(s.OperationID, "contact"): {},
				s.OperationID:                         {"contact": "L-1"},
				job.StepKey(s.OperationID, "link"):    {"contact": "L-1", job.LeadStep: "L-2"},
			}
			for _, asked := range w.crm.asked {
				if want, known := made[asked.ID]; !known || !maps.Equal(asked.Made, want) || asked.Fields["text"] != "hello" {
					t.Fatalf("asked for %s with %v and %v, want %v", asked.ID, asked.Made, asked.Fields, want)
				}
			}
		})
	}
}

func TestAWorkerDiesBetweenTheSteps(t *testing.T) {
	for _, class := range crm.Classes {
		for before := range 3 { // steps that are made
			for _, point := range []string{"append JobClaimed", "appended JobClaimed", "create", "created", "append StepConfirmed", "appended StepConfirmed"} {
				t.Run(fmt.Sprintf("%s/%d/%s", class, before, point), func(t *testing.T) {
					w := newSteppedWorld(class)
					key, a := w.accept(t, message(1, "hello")), w.engine("a", 0)
					for range before {
						w.advance(t, a, key)
					}
					die(t, w, "dead", key, point)
					b := w.engine("b", 0)
					w.run(t, b)
					for s := w.state(t, key); s.Human; s = w.state(t, key) { // an honest person, once nothing can arrive
						w.time.advance(settle + patient.Lease + patient.ClockSkew)
						if ids := w.crm.effects(job.StepKey(s.OperationID, s.Step)); len(ids) > 0 {
							mustAct(t)(b.Resolve(t.Context(), key, s.Step, ids[0], operator))
						} else {
							mustAct(t)(b.ResolveAbsent(t.Context(), key, s.Step, operator))
						}
						w.run(t, b)
					}
					s := wantPhase(t, w, key, job.Done)
					wantEffects(t, w, s, 1, 1, 1)
					for _, m := range s.Made[:before] {
						if n := w.crm.requests[job.StepKey(s.OperationID, m.Step)]; n != 1 {
							t.Fatalf("%s was confirmed, and sent %d times", m.Step, n)
						}
					}
				})
			}
		}
	}
}

// TestTheLeadIsMadeAndTheLinkRefused: a person is told, and goes without it.
func TestTheLeadIsMadeAndTheLinkRefused(t *testing.T) {
	w := newSteppedWorld(crm.Lookup)
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	w.fail("create", none, none, refused)
	w.run(t, e)
	s := wantPhase(t, w, key, job.NeedsReconciliation)
	if !s.Human || !strings.Contains(s.LastError, "lead L-2 is made") || !strings.Contains(s.LastError, "link") {
		t.Fatalf("human %v: %s", s.Human, s.LastError)
	}
	mustAct(t)(e.Discard(t.Context(), key, operator))
	s = wantPhase(t, w, key, job.Done)
	if s.CRMID != "L-2" || s.LastOperator != operator.By {
		t.Fatalf("done with %s by %s", s.CRMID, s.LastOperator)
	}
	wantEffects(t, w, s, 1, 1, 0)
}

func TestAnOperatorKnowsWhatAStepMade(t *testing.T) {
	w := newSteppedWorld(crm.None)
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	w.fail("create", lostAfter)
	w.run(t, e)
	if s := wantPhase(t, w, key, job.NeedsReconciliation); !s.Human || s.Step != "contact" {
		t.Fatalf("human %v, at %q", s.Human, s.Step)
	}
	settled(w)
	mustAct(t)(e.Resolve(t.Context(), key, "contact", "L-1", operator))
	w.run(t, e)
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "ReconciliationNeeded", "StepConfirmed",
		"JobClaimed", "StepConfirmed", "JobClaimed", "StepConfirmed", "LeadConfirmed")
	s := wantPhase(t, w, key, job.Done)
	wantEffects(t, w, s, 1, 1, 1)
	if contact, _ := s.Has("contact"); contact.CRMID != "L-1" || contact.How != job.ByOperator || s.How != job.ByCreate {
		t.Fatalf("%v, the lead by %s", s.Made, s.How)
	}
}

// TestAnAnswerIsForTheStepThatWasSeen: while the console is slow, the job goes on to the
// next step, and comes to stand before a person there.
func TestAnAnswerIsForTheStepThatWasSeen(t *testing.T) {
	w := newSteppedWorld(crm.None)
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	w.fail("create", lostAfter)
	w.run(t, e)
	settled(w)
	w.meanwhile("append StepConfirmed", func() {
		w.quiet(func() {
			mustAct(t)(e.Resolve(t.Context(), key, "contact", "L-1", operator))
			w.fail("create", lostAfter)
			w.advance(t, e, key)
		})
	})
	const want = "telegram/7/1: cannot reconcile a job in phase needs_reconciliation: it stands at its step lead: look for what that makes, and give --step lead"
	var refusal *job.NotAllowedError
	if s, err := w.engine("console", 0).Resolve(t.Context(), key, "contact", "L-1", operator); !errors.As(err, &refusal) || err.Error() != want || s.Step != job.LeadStep {
		t.Fatalf("at %q: error %v", s.Step, err)
	}
	if s := wantPhase(t, w, key, job.NeedsReconciliation); len(s.Made) != 1 || s.Step != job.LeadStep {
		t.Fatalf("at %s, made %v", s.Step, s.Made)
	}
}

// TestAnAnswerLosesARaceToADelivery: the job has not gone on.
func TestAnAnswerLosesARaceToADelivery(t *testing.T) {
	w := newSteppedWorld(crm.None)
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	w.fail("create", lostAfter)
	w.run(t, e)
	w.meanwhile("append StepConfirmed", func() { w.quiet(func() { w.accept(t, message(1, "hello")) }) })
	mustAct(t)(e.Resolve(t.Context(), key, "contact", "L-1", operator))
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "ReconciliationNeeded", "DeliveryRepeated", "StepConfirmed")
}

// TestEachStepOfADoubtedJobIsLookedUp: the restored log has lost that the contact was
// made, and the lead.
func TestEachStepOfADoubtedJobIsLookedUp(t *testing.T) {
	for _, class := range []crm.Class{crm.Lookup, crm.IdempotencyKey, crm.None} {
		for made := range 4 {
			t.Run(fmt.Sprintf("%s/%d", class, made), func(t *testing.T) {
				w := newSteppedWorld(class)
				u := message(1, "hello")
				operation := operationOf(u)
				for i, step := range w.steps[:made] {
					w.crm.leads = append(w.crm.leads, lead{fmt.Sprintf("L-%d", i+1), job.StepKey(operation, step), w.time.Now()})
				}
				w.time.advance(2 * validity) // a key is forgotten
				key, e := w.accept(t, u), w.engine("a", 0)
				if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); !doubted || err != nil {
					t.Fatalf("doubted %v, %v", doubted, err)
				}
				w.run(t, e)
				for s := w.state(t, key); s.Human; s = w.state(t, key) {
					if n := w.crm.requests[job.StepKey(operation, s.Step)]; n != 0 {
						t.Fatalf("%s is sent before a person has spoken", s.Step)
					}
					w.time.advance(settle + patient.Lease + patient.ClockSkew)
					if ids := w.crm.effects(job.StepKey(operation, s.Step)); len(ids) > 0 {
						mustAct(t)(e.Resolve(t.Context(), key, s.Step, ids[0], operator))
					} else {
						mustAct(t)(e.ResolveAbsent(t.Context(), key, s.Step, operator))
					}
					w.run(t, e)
				}
				s := wantPhase(t, w, key, job.Done)
				wantEffects(t, w, s, 1, 1, 1)
				if sent := len(w.crm.requests); sent != 3-made {
					t.Fatalf("%d steps are sent, and %d were made", sent, made)
				}
			})
		}
	}
}

// TestADoubtOutlivesADiscard: a doubted job that is given up and started again is looked
// up all the same, also where a repetition would be safe if the first request were ours.
func TestADoubtOutlivesADiscard(t *testing.T) {
	for _, class := range []crm.Class{crm.IdempotencyKey, crm.Upsert, crm.None} {
		w := newWorld(class)
		key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
		if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); !doubted || err != nil {
			t.Fatalf("%s: doubted %v, %v", class, doubted, err)
		}
		mustAct(t)(e.Discard(t.Context(), key, operator))
		mustAct(t)(e.Requeue(t.Context(), key, operator))
		w.advance(t, e, key)
		wantPhase(t, w, key, job.NeedsReconciliation)
		if len(w.crm.requests) != 0 {
			t.Fatalf("%s: sent %v", class, w.crm.requests)
		}
	}
}

// TestTheConnectorChangesWhileAJobIsOpen, from one that takes several steps to one that
// makes the lead by itself, and back.
func TestTheConnectorChangesWhileAJobIsOpen(t *testing.T) {
	three := []string{"contact", job.LeadStep, "link"}
	for name, c := range map[string]struct {
		class      crm.Class
		first      []string
		fails      []fault
		advances   int
		then       []string
		human      bool   // the outcome of a step that there is no more is for a person
		crmID      string // of the lead, then
		made, sent int    // steps, and requests for the lead, in the end
	}{
		"the contact is made, and then one effect":  {crm.Lookup, three, nil, 1, nil, false, "L-2", 1, 1},
		"the lead is made, and then one effect":     {crm.Lookup, three, nil, 2, nil, false, "L-2", 2, 1},
		"the lead is repeated as the one effect":    {crm.Upsert, three, []fault{none, lostAfter}, 2, nil, false, "L-2", 2, 2},
		"the lead is looked up as the one effect":   {crm.Lookup, three, []fault{none, lostAfter}, 2, nil, false, "L-2", 2, 1},
		"a contact is ambiguous, and then no step":  {crm.Lookup, three, []fault{lostAfter}, 1, nil, true, "L-1", 1, 1},
		"a link is ambiguous, and then no step":     {crm.Lookup, three, []fault{none, none, lostAfter}, 3, nil, true, "L-3", 3, 1},
		"nothing is made, and then several steps":   {crm.Lookup, nil, []fault{limited}, 1, three, false, "L-2", 3, 2},
		"the effect is ambiguous, and then a step":  {crm.Upsert, nil, []fault{lostAfter}, 1, three, true, "L-1", 0, 1},
		"the lead comes first, and nothing changes": {crm.Lookup, three[1:], []fault{lostAfter}, 1, three[1:], false, "L-1", 2, 1},
		"the contact is made, and a step is before": {crm.Lookup, three, nil, 1, []string{"company", "contact", job.LeadStep}, false, "L-3", 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.class)
			w.steps = c.first
			key := w.accept(t, message(1, "hello"))
			w.fail("create", c.fails...)
			for a := range c.advances {
				w.advance(t, w.engine(fmt.Sprint("a", a), 0), key)
			}
			w.steps = c.then
			b := w.engine("b", 0)
			w.run(t, b)
			if s := w.state(t, key); s.Human != c.human {
				t.Fatalf("human %v: %s", s.Human, s.LastError)
			}
			if c.human {
				settled(w)
				mustAct(t)(b.Resolve(t.Context(), key, w.state(t, key).Step, c.crmID, operator))
				w.run(t, b)
			}
			s := wantPhase(t, w, key, job.Done)
			if len(s.Made) != c.made || w.crm.requests[s.OperationID] != c.sent {
				t.Fatalf("made %v, the lead sent %d times: %v", s.Made, w.crm.requests[s.OperationID], w.history(key.Stream()))
			}
			for operation := range w.crm.requests {
				if n := len(w.crm.effects(operation)); n != 1 {
					t.Fatalf("%d effects of %s: %v", n, operation, w.history(key.Stream()))
				}
			}
		})
	}
}
