package job

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestStepKeysAreForEver: another key would make what is made once more. The values are
// those of another implementation of RFC 9562.
func TestStepKeysAreForEver(t *testing.T) {
	const operation = "3c4fff31-534d-5396-8a01-4f4173f2fba0"
	for step, want := range map[string]string{
		"": operation, LeadStep: operation, "contact": "6f09b61f-7c69-5e5f-b5cb-09ba6c760715", "link": "f6ceff10-171b-501b-9bcc-6346cf0674fa",
	} {
		if got := StepKey(operation, step); got != want {
			t.Errorf("the key of %q is %s, want %s", step, got, want)
		}
	}
}

var threeSteps = []string{"contact", LeadStep, "link"}

// madeTo is what steps made, one id each, up to and with the n-th.
func madeTo(n int) (made []Made) {
	for _, step := range threeSteps[:n] {
		made = append(made, Made{step, "id of " + step, ByCreate})
	}
	return made
}

func TestTheNextStepIsTheFirstThatIsNotMade(t *testing.T) {
	for _, c := range []struct {
		s        State
		steps    []string
		want     string
		finished bool
	}{
		{State{}, nil, "", false},
		{State{}, threeSteps, "contact", false},
		{State{Made: madeTo(1)}, threeSteps, LeadStep, false},
		{State{Made: madeTo(2)}, threeSteps, "link", false},
		{State{Made: madeTo(3)}, threeSteps, "", true},
		{State{Made: madeTo(1)}, nil, "", false},
		{State{Made: madeTo(2)}, nil, "", true},
		{State{Made: madeTo(1), Ambiguous: true, Step: "link"}, threeSteps, "link", false},
		{State{Made: madeTo(3), Ambiguous: true, Step: "link"}, nil, "link", false},
	} {
		if step, finished := c.s.NextStep(c.steps); step != c.want || finished != c.finished {
			t.Errorf("behind %v, of %v: %q, finished %v; want %q, %v", c.s.Made, c.steps, step, finished, c.want, c.finished)
		}
	}
	want := map[string]string{"contact": "id of contact", LeadStep: "id of lead"}
	if ids := (State{Made: madeTo(2)}).MadeIDs(); !reflect.DeepEqual(ids, want) {
		t.Errorf("made %v, want %v", ids, want)
	}
}

func TestTheEndNamesTheLeadOfSeveralSteps(t *testing.T) {
	got := State{Made: madeTo(3)}.Finish(ann)
	if want := (LeadConfirmed{CRMID: "id of lead", How: ByCreate, By: ann.By, Reason: ann.Reason}); len(got) != 1 || got[0] != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (State{Made: []Made{{LeadStep, "7", ByLookup}}}).Finish(Signature{})[0]; got != (LeadConfirmed{CRMID: "7", How: ByLookup}) {
		t.Errorf("got %v", got)
	}
}

// TestALateReceiptOfAStep is for that step alone, whatever the others made.
func TestALateReceiptOfAStep(t *testing.T) {
	for name, c := range map[string]struct {
		s    State
		step string
		id   string
		want Event
	}{
		"of one that is not made":    {State{Phase: Pending, Made: madeTo(1)}, LeadStep, "7", StepConfirmed{Step: LeadStep, CRMID: "7", How: ByLate}},
		"of one that is":             {State{Phase: Claimed, Made: madeTo(1)}, "contact", "id of contact", nil},
		"a second one":               {State{Phase: Pending, Made: madeTo(1)}, "contact", "7", ReceiptConflicted{CRMID: "7", Confirmed: "id of contact", Step: "contact"}},
		"a second one, again":        {State{Phase: Pending, Made: madeTo(1), OtherCRMIDs: []string{"contact 7"}}, "contact", "7", nil},
		"a second one of two steps":  {State{Phase: Pending, Made: madeTo(2), OtherCRMIDs: []string{"contact 7"}}, LeadStep, "7", ReceiptConflicted{CRMID: "7", Confirmed: "id of lead", Step: LeadStep}},
		"of a dead letter":           {State{Phase: DeadLetter, Made: madeTo(1)}, LeadStep, "7", ReceiptConflicted{CRMID: "7", Step: LeadStep}},
		"of one that is done":        {State{Phase: Done, Made: madeTo(3), CRMID: "id of lead"}, "contact", "id of contact", nil},
		"the lead's, of another job": {State{Phase: Done, SharedCRMID: "7"}, "", "7", nil},
		"as the lead of another job": {State{Phase: Done, SharedCRMID: "7"}, "contact", "7", ReceiptConflicted{CRMID: "7", Step: "contact"}},
	} {
		c.s.Claim.Fence = 9
		events := c.s.Record(3, Outcome{Class: Created, Step: c.step, CRMID: c.id, How: ByCreate}, epoch, 0, Rules{Policy: patient})
		if c.want == nil && len(events) > 0 || c.want != nil && (len(events) != 1 || events[0] != c.want) {
			t.Errorf("%s: %v, want %v", name, events, c.want)
		}
	}
}

func TestALeadThatLacksAStepIsForAPerson(t *testing.T) {
	want := ReconciliationNeeded{Reason: "lead id of lead is made, and its step link is not: refused: 422", Human: true}
	s := State{Phase: Claimed, Step: "link", Claim: Claim{Fence: 3}, Made: madeTo(2)}
	got := s.Record(3, Outcome{Class: Refused, Step: "link", Reason: "422"}, epoch, 0, Rules{patient, capabilities["lookup"]})
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %v, want %v", got, want)
	}
	s.Made, s.Step = madeTo(1), LeadStep
	got = s.Record(3, Outcome{Class: Refused, Step: LeadStep, Reason: "422"}, epoch, 0, Rules{patient, capabilities["lookup"]})
	if len(got) != 1 || got[0] != (JobDeadLettered{Reason: "refused: 422"}) {
		t.Errorf("without the lead: %v", got)
	}
}

// TestTheStepBehindADoubtedOneIsDoubted, and no other.
func TestTheStepBehindADoubtedOneIsDoubted(t *testing.T) {
	now := epoch.Add(time.Hour)
	key := Key{Bot: 7, Update: 42}
	plan := Plan{Effect: true, Action: CreateLead, BusinessKey: key.String(), Fields: map[string]string{"text": "hello"}}
	r := Rules{patient, capabilities["lookup"]}
	s := State{Phase: Pending, Key: key, Made: madeTo(1), DoubtedUntil: epoch, Attempts: 4}
	claim := s.ClaimBy("a", plan, LeadStep, now, patient)
	if claim.Worker != "a" || claim.Attempt != 5 || claim.Step != LeadStep || claim.Fields != `{"text":"hello"}` || !claim.Deadline.Equal(now.Add(patient.CallTimeout)) {
		t.Fatalf("claimed as %+v", claim)
	}
	want := []Event{claim, ReconciliationNeeded{
		Reason: "the step before was doubted, and so is lead", DoubtedUntil: epoch,
		NotBefore: r.Capability.SettledAt(claim.Deadline, patient),
	}}
	if got := s.GoOnDoubting("a", plan, LeadStep, now, r); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for name, calm := range map[string]State{
		"nothing is doubted":           {Phase: Pending, Key: key, Made: madeTo(1)},
		"nothing is made":              {Phase: Pending, Key: key, DoubtedUntil: epoch},
		"what is doubted is to settle": {Phase: Pending, Key: key, Made: madeTo(1), DoubtedUntil: epoch, Ambiguous: true},
	} {
		if got := calm.GoOnDoubting("a", plan, LeadStep, now, r); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestADoubtedRequestIsNeverRepeated: how old the first one is, nobody knows.
func TestADoubtedRequestIsNeverRepeated(t *testing.T) {
	s := State{Phase: Claimed, Ambiguous: true, FirstSent: epoch, Claim: Claim{Deadline: epoch.Add(patient.CallTimeout)}}
	r := Rules{patient, capabilities["upsert"]}
	if got := s.Permit(epoch, r); got != MaySend {
		t.Fatalf("a repetition: %v", got)
	}
	s.DoubtedUntil = epoch
	if got := s.Permit(epoch, r); got != MayNever {
		t.Errorf("behind a doubt: %v", got)
	}
}

func TestFieldsAreAnObjectOfTexts(t *testing.T) {
	for _, c := range []struct {
		fields map[string]string
		text   Fields
		wire   string
	}{
		{nil, "", "{}"},
		{map[string]string{}, "", "{}"},
		{map[string]string{"b": "2", "a": "<1>"}, `{"a":"\u003c1\u003e","b":"2"}`, `{"a":"\u003c1\u003e","b":"2"}`},
	} {
		f := NewFields(c.fields)
		wire, err := json.Marshal(f)
		if f != c.text || string(wire) != c.wire || err != nil {
			t.Errorf("%v is written as %q, %s (%v)", c.fields, f, wire, err)
		}
		if m := f.Map(); m == nil || len(m) != len(c.fields) || len(m) > 0 && !reflect.DeepEqual(m, c.fields) {
			t.Errorf("%q is read as %v", f, m)
		}
		var back Fields
		if err := json.Unmarshal(wire, &back); err != nil || back != f {
			t.Errorf("%s is read as %q (%v)", wire, back, err)
		}
	}
	var f Fields
	for _, bad := range []string{`{"a":1}`, `["a"]`, `"a"`} {
		if err := json.Unmarshal([]byte(bad), &f); err == nil || !strings.Contains(err.Error(), "want an object of texts") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := json.Unmarshal([]byte(`{ "b" : "2", "a":"1" }`), &f); err != nil || f != `{"a":"1","b":"2"}` {
		t.Errorf("another spelling is read as %q (%v)", f, err)
	}
}

func TestAnOperatorActsOnAStep(t *testing.T) {
	s := State{Phase: NeedsReconciliation, Step: "contact"}
	got, err := s.Resolve("contact", "7", ann)
	if want := (StepConfirmed{Step: "contact", CRMID: "7", How: ByOperator, By: ann.By, Reason: ann.Reason}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("resolved as %v, %v", got, err)
	}
	for n, want := range []Event{
		JobDeadLettered{Reason: "discarded: " + ann.Reason, By: ann.By}, JobDeadLettered{Reason: "discarded: " + ann.Reason, By: ann.By},
		LeadConfirmed{CRMID: "id of lead", How: ByCreate, By: ann.By, Reason: ann.Reason},
	} {
		for _, phase := range []Phase{Pending, NeedsReconciliation} {
			got, err := State{Phase: phase, Made: madeTo(n)}.Discard(ann)
			if err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("discarded in %s, with %d steps made: %v, %v", phase, n, got, err)
			}
		}
	}
}
