package job

import (
	"testing"
	"time"
)

// TestALateReceiptOfAnotherStep: the configuration changed between the requests, so
// receipts come for steps that the job does not stand at.
func TestALateReceiptOfAnotherStep(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	claim := func(step string) Event {
		return JobClaimed{Worker: "w", OperationID: "op", Step: step, LeaseUntil: at.Add(time.Minute), Deadline: at}
	}
	lost := []Event{ReconciliationNeeded{Reason: "expired", Human: true}, LeadAbsent{How: ByOperator, By: "me"}}
	unknown := ReconciliationNeeded{Reason: "time-out", Human: true}
	for name, c := range map[string]struct {
		first  string // the step of the request whose receipt comes late
		then   []Event
		id     string
		want   Event // nil: nothing
		phase  Phase
		doubts bool
	}{
		"while the lead is under way": {"contact", []Event{claim("")}, "C1",
			ReceiptConflicted{CRMID: "C1", Step: "contact"}, Claimed, true},
		"while the lead's outcome is unknown": {"contact", []Event{claim(""), unknown}, "C1",
			ReceiptConflicted{CRMID: "C1", Step: "contact"}, NeedsReconciliation, true},
		"before anything else is sent": {"contact", nil, "C1",
			StepConfirmed{Step: "contact", CRMID: "C1", How: ByLate}, Pending, false},
		"the lead's, while a contact is under way": {"", []Event{claim("contact")}, "L1",
			LeadConfirmed{CRMID: "L1", How: ByLate}, Done, false},
		"a second lead": {"", []Event{claim("lead"), StepConfirmed{Step: "lead", CRMID: "L1"}, claim("note")}, "L2",
			ReceiptConflicted{CRMID: "L2", Confirmed: "L1"}, Claimed, false},
		"the same lead by its other name": {"lead", []Event{claim(""), LeadConfirmed{CRMID: "L1"}}, "L1",
			nil, Done, false},
	} {
		t.Run(name, func(t *testing.T) {
			var s State
			for _, e := range append(append([]Event{UpdateReceived{Key: Key{Bot: 1, Update: 2}}, claim(c.first)}, lost...), c.then...) {
				s = s.Evolve(e, at)
			}
			got := s.Record(1, Outcome{Class: Created, Step: c.first, CRMID: c.id, How: ByCreate}, at, 0, Rules{})
			for _, e := range got {
				s = s.Evolve(e, at)
			}
			if c.want == nil && len(got) > 0 || c.want != nil && (len(got) != 1 || got[0] != c.want) {
				t.Errorf("recorded %#v, want %#v", got, c.want)
			}
			if s.Phase != c.phase || s.Ambiguous != c.doubts {
				t.Errorf("then %s, ambiguous %t; want %s, %t", s.Phase, s.Ambiguous, c.phase, c.doubts)
			}
		})
	}
}
