package job

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestTheZeroStateIsANewJob(t *testing.T) {
	if s := (State{}); s.Now() != New || s.Now().Final() {
		t.Errorf("the zero state is in phase %q", s.Now())
	}
	for _, p := range Phases {
		if final := p == Done || p == DeadLetter; p.Final() != final || (State{Phase: p}).Now() != p {
			t.Errorf("phase %s: final %t", p, p.Final())
		}
	}
	if s := fold(UpdateReceived{}, DeliveryRepeated{}); s.Revision() != 1 {
		t.Errorf("two events end at revision %d", s.Revision())
	}
}

func TestEvolveKeepsWhatAnUpdateWas(t *testing.T) {
	e := UpdateReceived{Key: Key{Bot: 7, Update: 42}, Fingerprint: "f", Kind: "message", Chat: -5, User: 6, Update: "{}"}
	s := State{}.Evolve(e, epoch)
	want := State{
		Phase: Pending, Key: e.Key, Fingerprint: "f", Kind: "message", Chat: -5, User: 6, Update: "{}",
		ReceivedAt: epoch, NotBefore: epoch, EventCount: 1, LastEventAt: epoch,
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("received as %+v, want %+v", s, want)
	}
	u := Update{Bot: 7, ID: 42, Kind: "message", Chat: -5, User: 6, Fingerprint: "f", Raw: []byte("{}")}
	if got := s.AsUpdate(); !reflect.DeepEqual(got, u) {
		t.Errorf("the update is %+v, want %+v", got, u)
	}
}

// claimed is a job whose second claim is under way.
func claimed() State {
	s := State{}.Evolve(UpdateReceived{Key: Key{Bot: 7, Update: 42}}, epoch)
	s = s.Evolve(JobClaimed{Worker: "w", Attempt: 1, Action: "a", BusinessKey: "b", OperationID: "o", LeaseUntil: epoch.Add(3), Deadline: epoch.Add(2)}, epoch.Add(1))
	s = s.Evolve(OutcomeUnknown{Reason: "cut", NotBefore: epoch.Add(4)}, epoch.Add(3))
	return s.Evolve(JobClaimed{Worker: "v", Attempt: 2, Action: "a", BusinessKey: "b", OperationID: "o", LeaseUntil: epoch.Add(9), Deadline: epoch.Add(8)}, epoch.Add(5))
}

func TestEvolveKeepsAClaimUnderItsFence(t *testing.T) {
	s := claimed()
	want := Claim{Fence: 3, Worker: "v", At: epoch.Add(5), LeaseUntil: epoch.Add(9), Deadline: epoch.Add(8)}
	if s.Claim != want || s.Attempts != 2 || s.Spent != 1 || !s.NotBefore.Equal(epoch.Add(9)) || s.OperationID != "o" || s.Action != "a" || s.BusinessKey != "b" {
		t.Errorf("claimed as %+v", s)
	}
	renewed := s.Evolve(ClaimRenewed{LeaseUntil: epoch.Add(19), Deadline: epoch.Add(18)}, epoch.Add(6))
	want.LeaseUntil, want.Deadline = epoch.Add(19), epoch.Add(18)
	if renewed.Claim != want || !renewed.NotBefore.Equal(epoch.Add(19)) || renewed.Attempts != 2 {
		t.Errorf("renewed as %+v", renewed.Claim)
	}
}

// TestAReleasedClaimLeavesNoTrace: nothing left, so nothing may have happened;
// but what an earlier request may have done is as open as before.
func TestAReleasedClaimLeavesNoTrace(t *testing.T) {
	before := claimed()
	after := before.Evolve(ClaimReleased{Reason: "dial", NotBefore: epoch.Add(7)}, epoch.Add(6))
	if after.Phase != Pending || after.Spent != before.Spent || !after.Ambiguous || after.FirstSent != before.FirstSent ||
		after.LastDeadline != before.LastDeadline || after.Releases != 1 || after.Claim != (Claim{}) || after.LastError != "dial" {
		t.Errorf("released as %+v", after)
	}
	clear := before
	clear.Ambiguous, clear.FirstSent = false, time.Time{}
	if s := clear.Evolve(ClaimReleased{}, epoch); s.Ambiguous || !s.FirstSent.IsZero() {
		t.Errorf("a release made the job ambiguous: %+v", s)
	}
	if s := after.Evolve(JobClaimed{}, epoch).Evolve(AttemptNotApplied{}, epoch); s.Releases != 0 {
		t.Errorf("%d releases in a row after a request", s.Releases)
	}
}

func TestWhatEachEndingMakesOfAnAmbiguity(t *testing.T) {
	at := epoch.Add(20)
	tests := map[string]struct {
		events []Event
		want   func(State) bool
	}{
		"confirmed": {[]Event{LeadConfirmed{CRMID: "1", How: ByCreate}}, func(s State) bool {
			return !s.Ambiguous && s.CRMID == "1" && s.How == ByCreate && !s.Human && s.Claim == (Claim{})
		}},
		"absent": {[]Event{ReconciliationNeeded{Human: true}, LeadAbsent{How: ByLookup}}, func(s State) bool {
			return !s.Ambiguous && s.FirstSent.IsZero() && !s.Human && s.Spent == 2 && s.NotBefore.Equal(at) && s.LastDeadline.Equal(epoch.Add(8))
		}},
		"absent by an operator": {[]Event{ReconciliationNeeded{}, LeadAbsent{How: ByOperator, By: "ann"}}, func(s State) bool {
			return !s.Ambiguous && s.Spent == 0 && s.LastOperator == "ann"
		}},
		"unknown": {[]Event{OutcomeUnknown{NotBefore: at}}, func(s State) bool {
			return s.Ambiguous && s.Spent == 2 && s.FirstSent.Equal(epoch.Add(1)) && s.LastDeadline.Equal(epoch.Add(8))
		}},
		"not applied": {[]Event{AttemptNotApplied{NotBefore: at}}, func(s State) bool { return s.Ambiguous && s.Spent == 2 }},
		"reconciled twice": {[]Event{ReconciliationNeeded{NotBefore: at}, ReconciliationNeeded{Human: true}}, func(s State) bool {
			return s.Ambiguous && s.Human && s.Spent == 2 && s.NotBefore.IsZero()
		}},
		"discarded": {[]Event{ReconciliationNeeded{Human: true}, JobDeadLettered{By: "ann"}}, func(s State) bool {
			return s.Ambiguous && !s.Human && s.Spent == 2 && s.LastOperator == "ann"
		}},
		"requeued": {[]Event{ReconciliationNeeded{}, JobDeadLettered{}, JobRequeued{By: "ann"}}, func(s State) bool {
			return s.Ambiguous && s.Spent == 0 && s.Requeues == 1 && s.NotBefore.Equal(at) && !s.FirstSent.IsZero()
		}},
		"receipt of a dead letter": {[]Event{ReconciliationNeeded{}, LeadAbsent{}, JobDeadLettered{}, ReceiptConflicted{CRMID: "1"}}, func(s State) bool {
			return s.Ambiguous && s.CRMID == "" && slices.Equal(s.OtherCRMIDs, []string{"1"})
		}},
		"second receipt": {[]Event{LeadConfirmed{CRMID: "1"}, ReceiptConflicted{CRMID: "2", Confirmed: "1"}}, func(s State) bool {
			return !s.Ambiguous && s.CRMID == "1" && slices.Equal(s.OtherCRMIDs, []string{"2"})
		}},
		"satisfied by another": {[]Event{AttemptNotApplied{}, NoEffectNeeded{ConfirmedBy: "telegram/7/41", CRMID: "1"}}, func(s State) bool {
			return s.Phase == Done && s.ConfirmedBy == "telegram/7/41" && s.CRMID == ""
		}},
	}
	for name, test := range tests {
		s := claimed()
		for _, e := range test.events {
			s = s.Evolve(e, at)
		}
		if !test.want(s) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestEachRoundCountsItsOwnLookups: a lookup that fails in one round takes nothing
// from the next one.
func TestEachRoundCountsItsOwnLookups(t *testing.T) {
	s := claimed().Evolve(ReconciliationNeeded{}, epoch)
	for n := range 3 {
		if s.Lookups != n || s.Spent != 2 {
			t.Errorf("%d failed lookups and %d attempts, want %d and 2", s.Lookups, s.Spent, n)
		}
		s = s.Evolve(ReconciliationNeeded{Reason: "lookup failed"}, epoch)
	}
	doubted := s.Evolve(ReconciliationNeeded{DoubtedUntil: epoch.Add(20)}, epoch)
	if doubted.Lookups != 0 || doubted.Spent != 2 || !doubted.LastDeadline.Equal(epoch.Add(20)) {
		t.Errorf("doubted while it was looked up: %+v", doubted)
	}
	s = s.Evolve(LeadAbsent{How: ByLookup}, epoch).Evolve(JobClaimed{}, epoch)
	if again := s.Evolve(ReconciliationNeeded{}, epoch); again.Lookups != 0 || again.Spent != 3 {
		t.Errorf("the next round begins with %d failed lookups and %d attempts", again.Lookups, again.Spent)
	}
	if again := s.Evolve(ReconciliationNeeded{DoubtedUntil: epoch.Add(1)}, epoch); again.Lookups != 0 || again.Spent != 2 || !again.LastDeadline.Equal(epoch.Add(20-12)) {
		t.Errorf("a doubt is no attempt, and shortens nothing: %+v", again)
	}
}

// TestAClockThatIsBehindShortensNothing: requests of an earlier claim may still
// be on their way when a process whose clock is behind claims with an earlier
// deadline.
func TestAClockThatIsBehindShortensNothing(t *testing.T) {
	s := claimed().Evolve(OutcomeUnknown{}, epoch)
	behind := JobClaimed{Deadline: epoch.Add(-time.Minute)}
	s = s.Evolve(behind, epoch.Add(-time.Hour)).Evolve(OutcomeUnknown{}, epoch)
	if !s.LastDeadline.Equal(epoch.Add(8)) || !s.FirstSent.Equal(epoch.Add(-time.Hour)) {
		t.Errorf("requests left from %s to %s", s.FirstSent, s.LastDeadline)
	}
}

// TestStatesShareNoMemory: two futures of one state do not see each other.
func TestStatesShareNoMemory(t *testing.T) {
	s := fold(UpdateReceived{}, LeadConfirmed{CRMID: "1"})
	for _, id := range []string{"2", "3", "4"} {
		s = s.Evolve(ReceiptConflicted{CRMID: id}, epoch).Evolve(KeyConflicted{Fingerprint: id, StoredAs: id}, epoch)
	}
	ids, variants := slices.Clone(s.OtherCRMIDs), maps.Clone(s.Variants)
	one := s.Evolve(ReceiptConflicted{CRMID: "one"}, epoch).Evolve(KeyConflicted{Fingerprint: "one", StoredAs: "1"}, epoch)
	two := s.Evolve(ReceiptConflicted{CRMID: "two"}, epoch).Evolve(KeyConflicted{Fingerprint: "4", StoredAs: "changed"}, epoch)
	if !slices.Equal(s.OtherCRMIDs, ids) || !maps.Equal(s.Variants, variants) {
		t.Errorf("the state changed under its successors: %v %v", s.OtherCRMIDs, s.Variants)
	}
	if one.OtherCRMIDs[3] != "one" || two.OtherCRMIDs[3] != "two" || one.Variants["4"] != "4" || two.Variants["4"] != "changed" {
		t.Errorf("two futures of one state are mixed: %v %v", one.OtherCRMIDs, two.OtherCRMIDs)
	}
}

// TestDueAgreesWithTheFold for one event of each kind.
func TestDueAgreesWithTheFold(t *testing.T) {
	later := epoch.Add(time.Hour)
	events := append(jobEvents(t),
		JobClaimed{LeaseUntil: later, Deadline: epoch}, ClaimRenewed{LeaseUntil: later, Deadline: epoch}, ClaimReleased{NotBefore: later},
		AttemptNotApplied{NotBefore: later}, OutcomeUnknown{NotBefore: later}, ReconciliationNeeded{NotBefore: later}, ReconciliationNeeded{Human: true},
	)
	seen := map[Schedule]int{}
	for _, phase := range Phases {
		for _, e := range events {
			if _, allowed := next(phase, e.Name()); !allowed {
				continue
			}
			before := State{Phase: phase, NotBefore: epoch.Add(time.Minute)}
			schedule, at := Due(e, epoch)
			after := before.Evolve(e, epoch)
			seen[schedule]++
			if !scheduled(before, after, schedule, at) {
				t.Errorf("%s in %s: Due says %d at %s, the fold %s at %s, human %t", e.Name(), phase, schedule, at, after.Phase, after.NotBefore, after.Human)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("schedules seen: %v", seen)
	}
}

// scheduled reports whether a schedule says what the fold says.
func scheduled(before, after State, schedule Schedule, at time.Time) bool {
	switch schedule {
	case DueAt:
		return !after.Phase.Final() && !after.Human && after.NotBefore.Equal(at)
	case Waiting:
		return after.Phase == NeedsReconciliation && after.Human
	case Closed:
		return after.Phase.Final() && !after.Human
	default:
		return after.Phase == before.Phase && after.NotBefore.Equal(before.NotBefore) && after.Human == before.Human
	}
}

// TestDueOfLooksIntoWhatItMust: what is most of a log is not decoded by a sweep. A
// damaged update is due, and whoever takes it finds the damage.
func TestDueOfLooksIntoWhatItMust(t *testing.T) {
	at := time.Unix(5, 0)
	broken := 0
	for _, name := range slices.Sorted(maps.Keys(wireByName)) {
		next, err := DueOf(name, []byte("no JSON"), at)
		schedule, due := next.Schedule, next.At
		if name == "UpdateReceived.v1" {
			if schedule != DueAt || !due.Equal(at) || err != nil {
				t.Errorf("a damaged update is %v at %s, error %v", schedule, due, err)
			}
			continue
		}
		if name == "DeliveryRepeated.v1" {
			if schedule != Unchanged || err != nil {
				t.Errorf("a damaged note of a delivery is %v, error %v", schedule, err)
			}
			continue
		}
		if broken++; err == nil {
			t.Errorf("a damaged %s is no error", name)
		}
	}
	if broken < 10 {
		t.Errorf("%d kinds of events were tried", broken)
	}
	for _, e := range jobEvents(t) {
		name, data, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		next, err := DueOf(name, data, at)
		schedule, due := next.Schedule, next.At
		if want, wantDue := Due(e, at); schedule != want || !due.Equal(wantDue) || err != nil {
			t.Errorf("%s is %v at %s, error %v; want %v at %s", name, schedule, due, err, want, wantDue)
		}
	}
}
