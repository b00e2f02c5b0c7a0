package job

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var ann = Signature{By: "ann", Reason: "seen in the CRM"}

// acts are what an operator can do, and in which phases.
var acts = map[string]struct {
	do     func(State, Signature) ([]Event, error)
	phases []Phase
	want   Event
}{
	"resolve": {
		func(s State, g Signature) ([]Event, error) { return s.Resolve("", "4711", g) },
		[]Phase{NeedsReconciliation}, LeadConfirmed{CRMID: "4711", How: ByOperator, By: "ann", Reason: ann.Reason},
	},
	"resolve absent": {
		func(s State, g Signature) ([]Event, error) {
			return s.ResolveAbsent("", epoch.Add(time.Hour), g, Rules{patient, capabilities["none"]})
		},
		[]Phase{NeedsReconciliation}, LeadAbsent{How: ByOperator, By: "ann", Reason: ann.Reason},
	},
	"requeue": {
		State.Requeue, []Phase{DeadLetter}, JobRequeued{By: "ann", Reason: ann.Reason},
	},
	"discard": {
		State.Discard, []Phase{Pending, NeedsReconciliation}, JobDeadLettered{Reason: "discarded: " + ann.Reason, By: "ann"},
	},
}

func TestOperatorsActsByPhase(t *testing.T) {
	for name, act := range acts {
		for _, phase := range append([]Phase{""}, Phases...) {
			s := State{Phase: phase, Key: Key{Bot: 7, Update: 42}, Ambiguous: true, LastDeadline: epoch}
			events, err := act.do(s, ann)
			allowed := false
			for _, p := range act.phases {
				allowed = allowed || p == phase
			}
			if !allowed {
				var refused *NotAllowedError
				if !errors.As(err, &refused) || events != nil {
					t.Errorf("%s in phase %q: %v, %v, want NotAllowedError", name, phase, events, err)
				} else if refused.Now != s.Now() || refused.Hint == "" || !strings.Contains(err.Error(), "telegram/7/42") || !strings.Contains(err.Error(), string(s.Now())) {
					t.Errorf("%s in phase %q: the error %q does not help", name, phase, err)
				}
				continue
			}
			if err != nil || len(events) != 1 || events[0] != act.want {
				t.Errorf("%s in phase %s: %v, %v, want %v", name, phase, events, err, act.want)
			}
			if err := Allowed(phase, events...); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestARefusedDiscardSaysWhy(t *testing.T) {
	for phase, hint := range map[Phase]string{New: "no events", Claimed: "a worker is calling", Done: "it is final", DeadLetter: "it is final"} {
		if _, err := (State{Phase: phase}).Discard(ann); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("discarding a job in phase %s: %v, want %q", phase, err, hint)
		}
	}
}

func TestAnUnsignedActIsRefused(t *testing.T) {
	for name, act := range acts {
		for _, g := range []Signature{{}, {By: "ann"}, {Reason: "why"}} {
			events, err := act.do(State{Phase: act.phases[0], LastDeadline: epoch}, g)
			if err == nil || events != nil || !strings.Contains(err.Error(), "--by and --reason") {
				t.Errorf("%s signed %+v: %v, %v", name, g, events, err)
			}
		}
	}
}

func TestResolvingNeedsTheLeadsID(t *testing.T) {
	events, err := State{Phase: NeedsReconciliation}.Resolve("", "", ann)
	if err == nil || events != nil || !strings.Contains(err.Error(), "--crm-id") {
		t.Errorf("resolved as %v, %v", events, err)
	}
}

func TestAnOperatorsAbsentIsRefusedWhileARequestCanStillArrive(t *testing.T) {
	s := State{Phase: NeedsReconciliation, Ambiguous: true, Human: true, LastDeadline: epoch}
	r := Rules{patient, capabilities["none"]}
	settled := epoch.Add(31 * time.Second)
	events, err := s.ResolveAbsent("", settled.Add(-1), ann, r)
	var refused *NotAllowedError
	if !errors.As(err, &refused) || events != nil || !strings.Contains(err.Error(), "2026-07-01T12:00:31Z") {
		t.Errorf("too early: %v, %v", events, err)
	}
	if events, err := s.ResolveAbsent("", settled, ann, r); err != nil || len(events) != 1 {
		t.Errorf("settled: %v, %v", events, err)
	}
}

// TestT84_ARequeuedJobStaysOneOperation, and an ambiguity that was discarded
// comes back with it.
func TestT84_ARequeuedJobStaysOneOperation(t *testing.T) {
	key := Key{Bot: 7, Update: 42}
	plan := Plan{Effect: true, Action: CreateLead, BusinessKey: key.String()}
	s := fold(UpdateReceived{Key: key})
	first := s.ClaimBy("w", plan, "", epoch, patient)
	s = s.Evolve(first, epoch).Evolve(ReconciliationNeeded{Reason: "cut", Human: true}, epoch)
	for _, act := range []func(Signature) ([]Event, error){s.Discard, s.Evolve(JobDeadLettered{}, epoch).Requeue} {
		events, err := act(ann)
		if err != nil {
			t.Fatal(err)
		}
		s = s.Evolve(events[0], epoch)
	}
	if s.Phase != Pending || s.Requeues != 1 || s.Spent != 0 || s.LastOperator != "ann" || !s.Ambiguous || s.Human {
		t.Errorf("requeued as %+v", s)
	}
	again := s.ClaimBy("w", plan, "", epoch, patient)
	if again.OperationID != first.OperationID {
		t.Errorf("the operation changed from %s to %s", first.OperationID, again.OperationID)
	}
	s = s.Evolve(again, epoch)
	if got := s.Permit(epoch, Rules{patient, capabilities["none"]}); got != MayNever {
		t.Errorf("a requeued ambiguity may be sent: permission %d", got)
	}
}

func TestADoubtIsReconciledBeforeAnythingIsSent(t *testing.T) {
	plan := Plan{Effect: true, Action: CreateLead, BusinessKey: "telegram/7/42"}
	for name, c := range map[string]struct {
		can   string
		human bool // already before one
		want  ReconciliationNeeded
	}{
		"can be searched":         {"lookup", false, ReconciliationNeeded{NotBefore: epoch.Add(31 * time.Second)}},
		"cannot be searched":      {"none", false, ReconciliationNeeded{Human: true}},
		"waits for a person":      {"lookup", true, ReconciliationNeeded{Human: true}},
		"waits, and not searched": {"none", true, ReconciliationNeeded{Human: true}},
	} {
		c.want.Reason, c.want.DoubtedUntil = "doubted by ann: seen in the CRM", epoch
		for _, phase := range append([]Phase{""}, Phases...) {
			s := State{Phase: phase, Key: Key{Bot: 7, Update: 42}, Human: c.human, Attempts: 1}
			got, err := s.Doubt(plan, "", epoch, ann, Rules{patient, capabilities[c.can]})
			want := []Event{c.want}
			switch phase {
			case Pending:
				want = []Event{JobClaimed{
					Worker: "operator ann", Attempt: 2, Action: CreateLead, BusinessKey: "telegram/7/42",
					OperationID: OperationID(7, CreateLead, "telegram/7/42"), LeaseUntil: epoch.Add(time.Minute), Deadline: epoch.Add(20 * time.Second),
				}, c.want}
			case Claimed, NeedsReconciliation:
			default:
				var refused *NotAllowedError
				if !errors.As(err, &refused) || refused.Act != "doubt" || got != nil {
					t.Errorf("%s, in %q: %v, %v, want NotAllowedError", name, phase, got, err)
				}
				continue
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, in %s:\n%+v, %v, want\n%+v", name, phase, got, err, want)
			}
			if _, err := s.Doubt(plan, "", epoch, Signature{By: "ann"}, Rules{patient, capabilities[c.can]}); err == nil {
				t.Errorf("in %s: doubted without a reason", phase)
			}
		}
	}
}

// TestAnAnswerIsAboutTheStep that the job stands at: who looked for the lead says
// nothing about its contact.
func TestAnAnswerIsAboutTheStep(t *testing.T) {
	later := epoch.Add(time.Hour)
	rules := Rules{patient, Capability{CanFind: true}}
	for stands, right := range map[string][]string{"": {"", "lead"}, "lead": {"", "lead"}, "contact": {"contact"}} {
		s := State{Phase: NeedsReconciliation, OperationID: "o", Step: stands, EventCount: 3}
		for _, step := range []string{"", "lead", "contact", "link"} {
			_, exists := s.Resolve(step, "1", ann)
			_, absent := s.ResolveAbsent(step, later, ann, rules)
			if want := slices.Contains(right, step); (exists == nil) != want || (absent == nil) != want {
				t.Errorf("a job that stands at %q is answered about %q: %v, %v", stands, step, exists, absent)
			}
			if exists != nil && !strings.Contains(exists.Error(), "give --step "+stands) {
				t.Errorf("%v", exists)
			}
		}
	}
}
