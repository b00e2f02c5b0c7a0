package job

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// capabilities are those of the five classes, and one that repeats within a
// validity and cannot look up.
var capabilities = map[string]Capability{
	"idempotency_key":           {Repeatable: true, Validity: time.Hour, CanFind: true, Settle: 30 * time.Second},
	"idempotency_key, no find":  {Repeatable: true, Validity: time.Hour, Settle: 30 * time.Second},
	"upsert":                    {Repeatable: true, CanFind: true, Settle: 30 * time.Second},
	"unique_create, no find":    {Repeatable: true, Settle: 30 * time.Second},
	"lookup":                    {CanFind: true, Settle: 30 * time.Second},
	"none":                      {Settle: 30 * time.Second},
	"validity, but not a class": {Validity: time.Hour, CanFind: true},
}

const fence = 7

// states are all combinations of what a decision looks at, as of now.
func states(now time.Time, yield func(State)) {
	for _, phase := range Phases[1:] {
		for _, ambiguous := range []bool{false, true} {
			for spent := range patient.MaxAttempts + 1 {
				for _, age := range []time.Duration{0, time.Minute, 58 * time.Minute, 59*time.Minute + 12*time.Second, 48 * time.Hour} {
					s := State{Phase: phase, Ambiguous: ambiguous, Spent: spent, Releases: spent % 2, Attempts: spent + 1, EventCount: 20}
					if spent > 0 || ambiguous {
						s.FirstSent = now.Add(-age)
						s.LastDeadline = s.FirstSent.Add(patient.CallTimeout)
					}
					switch phase {
					case Claimed:
						s.Claim = Claim{Fence: fence, Worker: "w", At: now.Add(-time.Second), LeaseUntil: now.Add(time.Minute), Deadline: now.Add(19 * time.Second)}
					case Done:
						s.CRMID, s.Ambiguous = "1", false
					case DeadLetter:
						s.OtherCRMIDs = []string{"3"}
					}
					yield(s)
				}
			}
		}
	}
}

var outcomes = []Outcome{
	{Class: Created, CRMID: "1", How: ByCreate}, {Class: Created, CRMID: "2", How: ByExists}, {Class: Created, CRMID: "3", How: ByUpsert},
	{Class: Created, How: ByCreate}, {Class: NotSent, Reason: "dial"}, {Class: NotApplied, Reason: "429"},
	{Class: NotApplied, Reason: "429", RetryAfter: 40 * time.Second}, {Class: NotApplied, Reason: "429", RetryAfter: 8766 * time.Hour},
	{Class: NotApplied, Reason: "429", RetryAfter: -time.Hour}, {Class: Refused, Reason: "no e-mail"}, {Class: Unknown, Reason: "cut"},
	{}, {Class: "maybe", Reason: "a class of a later release"},
}

// TestRecordAgreesWithTheReferee compares every outcome in every situation.
func TestRecordAgreesWithTheReferee(t *testing.T) {
	now := epoch
	seen := map[string]int{}
	for name, capability := range capabilities {
		r := Rules{patient, capability}
		states(now, func(s State) {
			for _, o := range outcomes {
				for _, held := range []uint64{fence, fence - 1} {
					for _, share := range []float64{0, 0.999} {
						events := s.Record(held, o, now, share, r)
						got, want := verdictOf(events), refereeRecord(s, held == fence, o, now, share, r)
						seen[got.event]++
						if got != want || len(events) > 1 {
							t.Fatalf("%s: %+v after %+v under fence %d: %+v, the referee says %+v", name, o, s, held, got, want)
						}
						if err := Allowed(s.Phase, events...); err != nil {
							t.Fatalf("%s: %+v after %+v: %v", name, o, s, err)
						}
						checkContent(t, s, o, held == fence, events)
					}
				}
			}
		})
	}
	for _, event := range []string{"", "LeadConfirmed", "ReceiptConflicted", "ClaimReleased", "AttemptNotApplied", "OutcomeUnknown", "ReconciliationNeeded", "JobDeadLettered"} {
		if seen[event] == 0 {
			t.Errorf("no outcome came to %q", event)
		}
	}
}

// checkContent looks at what an event says beside its name and time.
func checkContent(t *testing.T, s State, o Outcome, present bool, events []Event) {
	t.Helper()
	for _, e := range events {
		switch e := e.(type) {
		case LeadConfirmed:
			how := o.How
			if s.Phase != Claimed || !present {
				how = ByLate
			}
			if want := (LeadConfirmed{CRMID: o.CRMID, How: how}); e != want || e.CRMID == "" {
				t.Fatalf("confirmed %+v, want %+v", e, want)
			}
		case ReceiptConflicted:
			if want := (ReceiptConflicted{CRMID: o.CRMID, Confirmed: s.CRMID}); e != want {
				t.Fatalf("recorded %+v, want %+v", e, want)
			}
		case JobDeadLettered:
			if !strings.Contains(e.Reason, o.Reason) || s.Ambiguous || e.By != "" {
				t.Fatalf("dead letter %+v after %+v in %+v", e, o, s)
			}
		case ReconciliationNeeded:
			if o.Class != Created && !strings.Contains(e.Reason, o.Reason) {
				t.Fatalf("the reason %q forgets %q", e.Reason, o.Reason)
			}
			if e.Human == !e.NotBefore.IsZero() {
				t.Fatalf("%+v waits for both a human and a time, or for neither", e)
			}
		}
	}
}

func TestT83_ARefusalOnARetryProvesNothingAboutTheFirst(t *testing.T) {
	r := Rules{patient, capabilities["upsert"]}
	for _, o := range []Outcome{{Class: Refused, Reason: "no"}, {Class: NotApplied, Reason: "429"}} {
		s := State{Phase: Claimed, Claim: Claim{Fence: fence}, Spent: patient.MaxAttempts - 1}
		if got := s.Record(fence, o, epoch, 0, r); verdictOf(got).event != "JobDeadLettered" {
			t.Errorf("%s with nothing ambiguous comes to %v", o.Class, got)
		}
		s.Ambiguous = true
		if got := s.Record(fence, o, epoch, 0, r); verdictOf(got).event != "ReconciliationNeeded" {
			t.Errorf("%s after an ambiguous attempt comes to %v", o.Class, got)
		}
	}
}

func TestPermitNeverLetsARequestOutliveItsKey(t *testing.T) {
	sent := map[Permission]int{}
	for name, c := range capabilities {
		r := Rules{patient, c}
		for _, ambiguous := range []bool{false, true} {
			for age := time.Duration(0); age < 61*time.Minute; age += 499 * time.Millisecond {
				for _, left := range []time.Duration{-time.Second, 0, 10*time.Second - 1, 10 * time.Second, 20 * time.Second} {
					deadline := epoch.Add(age)
					s := State{Phase: Claimed, Ambiguous: ambiguous, FirstSent: epoch, Claim: Claim{Deadline: deadline}}
					got := s.Permit(deadline.Add(-left), r)
					sent[got]++
					known := c.Repeatable && (c.Validity == 0 || age+c.Settle+patient.ClockSkew < c.Validity)
					want := MaySend
					switch {
					case ambiguous && !known:
						want = MayNever
					case left < patient.CallTimeout/2:
						want = TooLate
					}
					if got != want {
						t.Fatalf("%s, ambiguous %t, key aged %s, %s left: permission %d, want %d", name, ambiguous, age, left, got, want)
					}
				}
			}
		}
	}
	if len(sent) != 3 {
		t.Errorf("permissions given: %v", sent)
	}
}

// TestARepeatEndsWellBeforeItsKey: by the settle time and the difference of the
// clocks, to the nanosecond.
func TestARepeatEndsWellBeforeItsKey(t *testing.T) {
	c := capabilities["idempotency_key"]
	oldest := c.Validity - patient.CallTimeout - c.Settle - patient.ClockSkew
	for age, want := range map[time.Duration]string{oldest - 1: "OutcomeUnknown", oldest: "ReconciliationNeeded"} {
		s := State{Phase: Claimed, FirstSent: epoch.Add(-age), Claim: Claim{Fence: fence, At: epoch}}
		if got := verdictOf(s.Record(fence, Outcome{Class: Unknown}, epoch, 0, Rules{patient, c})).event; got != want {
			t.Errorf("first sent %s ago: %s, want %s", age, got, want)
		}
	}
}

// TestAFailedLookupWaitsLongerEachTime, until a person has to see to it.
func TestAFailedLookupWaitsLongerEachTime(t *testing.T) {
	for failed := range MaxLookups {
		got := State{Phase: NeedsReconciliation, Lookups: failed}.NotFound("cut", epoch, 0.5, patient)
		want := ReconciliationNeeded{Reason: "lookup failed: cut", NotBefore: epoch.Add(patient.Backoff(failed+1, 0.5))}
		if failed == MaxLookups-1 {
			want = ReconciliationNeeded{Reason: "20 times, the last: lookup failed: cut", Human: true}
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("after %d failures: %+v, want %+v", failed, got, want)
		}
	}
}

func TestAnUnrepeatableRequestIsLookedUpOrShownToAHuman(t *testing.T) {
	for name, c := range capabilities {
		r := Rules{patient, c}
		states(epoch, func(s State) {
			if s.Phase != Claimed {
				return
			}
			got := s.Unrepeatable(r)
			if want := refereeReconcile(s, r); verdictOf(got) != want {
				t.Fatalf("%s: %+v comes to %+v, want %+v", name, s, got, want)
			}
		})
	}
}

func TestT82_AnExpiredClaimIsAlwaysAmbiguous(t *testing.T) {
	for name, c := range capabilities {
		r := Rules{patient, c}
		states(epoch, func(s State) {
			if s.Phase != Claimed {
				return
			}
			now := s.ExpiresAt(patient)
			if want := s.Claim.LeaseUntil.Add(patient.ClockSkew); !now.Equal(want) {
				t.Fatalf("the claim expires at %s, want %s", now, want)
			}
			events := s.Expire(now, 0.5, r)
			if got, want := verdictOf(events), refereeUnknown(s, now, 0.5, r); got != want {
				t.Fatalf("%s: %+v expires as %+v, want %+v", name, s, got, want)
			}
			if after := s.Evolve(events[0], now); !after.Ambiguous || after.Spent != s.Spent+1 || after.LastDeadline.Before(s.Claim.Deadline) {
				t.Fatalf("%s: an expired claim left %+v", name, after)
			}
		})
	}
}

func TestT61_AnEmptyLookupIsNotBelievedBeforeTheSettleTime(t *testing.T) {
	r := Rules{patient, capabilities["lookup"]}
	settled := epoch.Add(31 * time.Second)
	for spent := 1; spent <= patient.MaxAttempts+1; spent++ {
		s := State{Phase: NeedsReconciliation, Ambiguous: true, Spent: spent, LastDeadline: epoch, LastError: "cut"}
		for _, early := range []time.Duration{1, time.Second, time.Hour} {
			if got := s.Found(nil, settled.Add(-early), r); got != nil {
				t.Errorf("%s before the settle time, after %d attempts: %v", early, spent, got)
			}
		}
		want := []Event{LeadAbsent{How: ByLookup}}
		if spent >= patient.MaxAttempts {
			want = append(want, JobDeadLettered{Reason: fmt.Sprintf("%d attempts, none had an effect; the last: cut", spent)})
		}
		got := s.Found([]string{}, settled, r)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("settled, after %d attempts: %v, want %v", spent, got, want)
		}
		if err := Allowed(s.Phase, got...); err != nil {
			t.Error(err)
		}
	}
}

func TestT70_WhatALookupFinds(t *testing.T) {
	s := State{Phase: NeedsReconciliation, Ambiguous: true, LastDeadline: epoch}
	r := Rules{patient, capabilities["lookup"]}
	many := strings.Split(strings.Repeat("4711,", 200_000), ",")
	tests := []struct {
		ids  []string
		want Event
	}{
		{[]string{"1"}, LeadConfirmed{CRMID: "1", How: ByLookup}},
		{[]string{"1", "2"}, ReconciliationNeeded{Reason: "2 leads carry this operation: 1, 2", Human: true}},
		{[]string{""}, ReconciliationNeeded{Reason: "1 leads carry this operation: ", Human: true}},
		{many, ReconciliationNeeded{Reason: "200001 leads carry this operation: " + strings.Repeat("4711, ", 9) + "4711", Human: true}},
	}
	for _, test := range tests {
		for _, asked := range []time.Time{epoch, epoch.Add(time.Hour)} { // a lead is believed at any time
			got := s.Found(test.ids, asked, r)
			if len(got) != 1 || got[0] != test.want {
				t.Errorf("%.5q comes to %.200v, want %.200v", test.ids, got, test.want)
			}
		}
	}
}

func TestDuplicatesAreNotedAHundredTimes(t *testing.T) {
	s := fold(UpdateReceived{Key: Key{Bot: 7, Update: 42}})
	for range 1000 {
		for _, e := range s.Repeat() {
			s = s.Evolve(e, epoch)
		}
	}
	if s.Repeats != MaxRepeats || s.EventCount != 1+MaxRepeats || s.Phase != Pending {
		t.Errorf("%d repeats in %d events, phase %s", s.Repeats, s.EventCount, s.Phase)
	}
}

func TestStartEndsOnlyWhatAsksForNothing(t *testing.T) {
	tests := []struct {
		plan Plan
		want Event
	}{
		{Plan{Effect: true, Action: CreateLead}, nil},
		{Plan{Reason: "an edit"}, NoEffectNeeded{Reason: "an edit"}},
		{Plan{Undecodable: "message: null"}, JobDeadLettered{Reason: "undecodable: message: null"}},
		{Plan{Effect: true, Undecodable: "text is a number"}, JobDeadLettered{Reason: "undecodable: text is a number"}},
	}
	for _, test := range tests {
		got := Start(test.plan)
		if test.want == nil && got == nil {
			continue
		}
		if len(got) != 1 || got[0] != test.want {
			t.Errorf("%+v starts with %v, want %v", test.plan, got, test.want)
		}
		if err := Allowed(Pending, got...); err != nil {
			t.Error(err)
		}
	}
}

// TestAnOperationKeepsItsIDWhenTheRulesChange: an attempt may be ambiguous
// under the old id; a retry under a new one would double it.
func TestAnOperationKeepsItsIDWhenTheRulesChange(t *testing.T) {
	key := Key{Bot: 7, Update: 42}
	s := fold(UpdateReceived{Key: key})
	before := Plan{Effect: true, Action: CreateLead, BusinessKey: key.String()}
	first := s.ClaimBy("w", before, "", epoch, patient)
	if want := OperationID(7, CreateLead, key.String()); first.OperationID != want || first.Attempt != 1 {
		t.Fatalf("claimed as %+v, want operation %s", first, want)
	}
	s = s.Evolve(first, epoch).Evolve(OutcomeUnknown{Reason: "cut", NotBefore: epoch}, epoch)
	after := Plan{Effect: true, Action: "update_deal", BusinessKey: "by phone"}
	second := s.ClaimBy("v", after, "", epoch.Add(time.Hour), patient)
	if second.OperationID != first.OperationID || second.Action != first.Action || second.BusinessKey != first.BusinessKey || second.Attempt != 2 {
		t.Errorf("the retry is %+v, the first attempt was %+v", second, first)
	}
	for _, changed := range []Plan{after, {Reason: "an edit"}, {Undecodable: "message: null"}} {
		if bound := s.Bind(changed); bound.Action != first.Action || bound.BusinessKey != first.BusinessKey || Start(bound) != nil {
			t.Errorf("%+v is bound as %+v: a job that may have had its effect is planned away", changed, bound)
		}
	}
	if fresh := fold(UpdateReceived{Key: key}).Bind(after); !reflect.DeepEqual(fresh, after) {
		t.Errorf("a job that was never claimed is bound to %+v", fresh)
	}
	if second.Worker != "v" || !second.Deadline.Equal(epoch.Add(time.Hour+patient.CallTimeout)) {
		t.Errorf("the retry is not the second worker's own: %+v", second)
	}
}
