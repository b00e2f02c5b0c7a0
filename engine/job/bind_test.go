package job

import (
	"strings"
	"testing"
)

func TestAPlanTakesTheOperationOfAnotherJob(t *testing.T) {
	s := State{Key: Key{Bot: 7, Update: 1}}
	for _, c := range []struct {
		business string
		refused  bool
	}{
		{"telegram/7/1", false},
		{"telegram/7/2", true},
		{"telegram/8/1", true},
		{`telegram/7/album/"1"/"2"`, false},
	} {
		got := s.Bind(Plan{Effect: true, Action: CreateLead, BusinessKey: c.business})
		if refused := got.Undecodable != ""; refused != c.refused {
			t.Errorf("business key %s: plan %+v", c.business, got)
		}
		if want := "its business key is the event key of " + c.business; c.refused && got.Undecodable != want {
			t.Errorf("business key %s: the reason is %q", c.business, got.Undecodable)
		}
		// A claim of an earlier release stands, whatever it was for.
		s.OperationID, s.Action, s.BusinessKey = "o", CreateLead, c.business
		if got := s.Bind(Plan{Reason: "an edit"}); !got.Effect || got.Undecodable != "" || got.BusinessKey != c.business {
			t.Errorf("claimed under %s, and bound to %+v", c.business, got)
		}
		s.OperationID = ""
	}
}

func TestTheSharedLeadIsTakenForAnIncident(t *testing.T) {
	s := State{Phase: Claimed}.Evolve(NoEffectNeeded{ConfirmedBy: "telegram/7/1", CRMID: "L-1"}, State{}.ReceivedAt)
	if events := s.recordLate(Outcome{Class: Created, CRMID: "L-1"}); len(events) != 0 {
		t.Errorf("the lead that the other job made is recorded as %v", events)
	}
	if events := s.recordLate(Outcome{Class: Created, CRMID: "L-2"}); len(events) != 1 {
		t.Errorf("another lead is recorded as %v", events)
	}
}

// TestFieldsThatNoEventHolds: the first claim has the fields, and an event has a limit.
func TestFieldsThatNoEventHolds(t *testing.T) {
	plan := Plan{Effect: true, Action: CreateLead, BusinessKey: "b", Fields: map[string]string{"text": strings.Repeat("x", MaxFields-len(`{"text":""}`))}}
	if bound := (State{}).Bind(plan); !bound.Effect {
		t.Errorf("fields of %d bytes: %s", MaxFields, bound.Undecodable)
	}
	plan.Fields["text"] += "x"
	if bound := (State{}).Bind(plan); bound.Effect || !strings.Contains(bound.Undecodable, "its fields take 1048577 bytes") {
		t.Errorf("fields of one more: %+v", bound)
	}
}
