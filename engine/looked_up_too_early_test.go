package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// ambiguous is a job whose first request met f, which the CRM cannot repeat.
func ambiguous(t *testing.T, w *world, f fault) job.Key {
	t.Helper()
	key := w.accept(t, message(1, "hello"))
	w.fail("create", f)
	w.advance(t, w.engine("a", 0), key)
	wantPhase(t, w, key, job.NeedsReconciliation)
	return key
}

func TestALookupBeforeTheSettleTimeIsBelieved(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lateEffect), w.engine("a", 0)
	due := w.time.Now().Add(w.policy.CallTimeout + settle + w.policy.ClockSkew)
	for w.time.Now().Before(due) {
		if v := w.advance(t, e, key); !v.At.Equal(due) {
			t.Fatalf("looked at again at %s, want %s", v.At, due)
		}
		if len(w.seen.called) != 1 {
			t.Fatalf("asked at %s, before %s: %v", w.time.Now(), due, w.seen.called)
		}
		w.time.advance(time.Second)
	}
	w.advance(t, e, key)
	if s := wantPhase(t, w, key, job.Done); s.How != job.ByLookup || w.crm.requests[s.OperationID] != 1 {
		t.Fatalf("known by %s after %d requests", s.How, w.crm.requests[s.OperationID])
	}
}

func TestAFailedLookupProvesAbsence(t *testing.T) {
	for f, recorded := range map[fault]int{lostBefore: 1, unspecified: 1, down: 1, limited: 0} {
		w := newWorld(crm.Lookup)
		key, e := ambiguous(t, w, lostAfter), w.engine("a", 0)
		settled(w)
		w.fail("find", f)
		v := w.advance(t, e, key)
		s := wantPhase(t, w, key, job.NeedsReconciliation)
		again := s.NotBefore
		if v.Schedule == job.DueAt {
			again = v.At
		}
		if wait := again.Sub(w.time.Now()); s.Human || wait < 0 || wait > w.policy.RetryMax || s.Lookups != recorded {
			t.Fatalf("fault %d: looked up again in %s, state %+v", f, wait, s)
		}
		w.run(t, e)
		wantPhase(t, w, key, job.Done)
	}
}

// TestLookupsFailForEverUnseen: a search that is broken ends before a person.
func TestLookupsFailForEverUnseen(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lostAfter), w.engine("a", 0)
	w.interpose = func(point string) fault {
		if point == "find" {
			return unspecified
		}
		return none
	}
	backlog := w.run(t, e).Backlog()
	s := wantPhase(t, w, key, job.NeedsReconciliation)
	if !s.Human || backlog.Human != 1 || backlog.Open != 0 || s.Lookups != job.MaxLookups || !strings.Contains(s.LastError, "lookup failed") {
		t.Fatalf("state %+v, backlog %+v", s, backlog)
	}
}

func TestALookupThatIsLimitedRestsTheConnector(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lostAfter), w.engine("a", 0)
	other := w.accept(t, message(2, "b"))
	settled(w)
	w.crm.retryAfter = 50 * time.Second
	w.fail("find", limited)
	w.advance(t, e, key)
	until := w.time.Now().Add(w.crm.retryAfter)
	for _, k := range []job.Key{key, other} {
		if v := w.advance(t, e, k); !v.At.Equal(until) {
			t.Errorf("%s is due at %s, want %s", k, v.At, until)
		}
	}
}

func TestAbsenceAllowsMoreThanOneAttempt(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lostBefore), w.engine("a", 0)
	settled(w)
	w.advance(t, e, key)
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "ReconciliationNeeded", "LeadAbsent")
	w.fail("create", lateEffect)
	w.advance(t, e, key)
	s := wantPhase(t, w, key, job.NeedsReconciliation)
	v := w.advance(t, e, key)
	if w.crm.requests[s.OperationID] != 2 || !v.At.After(w.time.Now()) {
		t.Fatalf("%d requests, due at %s", w.crm.requests[s.OperationID], v.At)
	}
	w.run(t, e)
	wantPhase(t, w, key, job.Done)
}

// TestAbsenceIsRecordedOverALateReceipt: the lookup is under way when the
// receipt comes after all.
func TestAbsenceIsRecordedOverALateReceipt(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lostBefore), w.engine("a", 0)
	settled(w)
	w.meanwhile("found", func() { w.append(t, key.Stream(), job.LeadConfirmed{CRMID: "L-9", How: job.ByLate}) })
	v := w.advance(t, e, key)
	if v.Schedule != job.DueAt || v.At.After(w.time.Now()) {
		t.Fatalf("verdict %+v, want due now", v)
	}
	if v := w.advance(t, e, key); v.Schedule != job.Closed {
		t.Fatalf("verdict %+v, want closed", v)
	}
	wantPhase(t, w, key, job.Done)
}

func TestOneOfSeveralLeadsIsChosen(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lostAfter), w.engine("a", 0)
	s := w.state(t, key)
	w.crm.leads = append(w.crm.leads, lead{"L-2", s.OperationID, w.time.Now()}) // by somebody's hand
	settled(w)
	w.advance(t, e, key)
	if s := wantPhase(t, w, key, job.NeedsReconciliation); !s.Human || s.LastError != "2 leads carry this operation: L-1, L-2" {
		t.Fatalf("human %t: %s", s.Human, s.LastError)
	}
	if v := w.advance(t, e, key); v.Schedule != job.Waiting {
		t.Fatalf("verdict %+v, want waiting", v)
	}
	b := w.run(t, e).Backlog()
	if b.Human != 1 || b.Open != 0 || w.crm.requests[s.OperationID] != 1 {
		t.Fatalf("backlog %+v", b)
	}
}

// TestALookupThatSaysNothingIsRepeatedInTime: a quarter of the job's age later, and
// nothing is recorded.
func TestALookupThatSaysNothingIsRepeatedInTime(t *testing.T) {
	for _, f := range []fault{limited, unsent} {
		w := newWorld(crm.Lookup)
		w.crm.retryAfter = 0
		key, e := ambiguous(t, w, lostAfter), w.engine("a", 0)
		received := noon
		settled(w)
		w.fail("find", f)
		want := w.time.Now().Add(w.time.Now().Sub(received) / 4)
		if v := w.advance(t, e, key); v.Schedule != job.DueAt || !v.At.Equal(want) {
			t.Errorf("fault %d: %+v, want %s", f, v, want)
		}
		wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "ReconciliationNeeded")
		if until := w.time.Now(); f == unsent { // and the connector rests
			other := w.accept(t, message(2, "b"))
			if v := w.advance(t, e, other); !v.At.After(until) {
				t.Errorf("the next request leaves at once: %+v", v)
			}
		}
	}
}

func TestALeadWithoutAnIDIsTakenForNone(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lostAfter), w.engine("a", 0)
	s := w.state(t, key)
	w.crm.leads = append(w.crm.leads, lead{"", s.OperationID, w.time.Now()})
	settled(w)
	w.advance(t, e, key)
	if s := wantPhase(t, w, key, job.NeedsReconciliation); s.Human || !s.NotBefore.After(w.time.Now()) {
		t.Fatalf("looked up again at %s", s.NotBefore)
	}
}

func TestTheConnectorIsAnotherOneThen(t *testing.T) {
	w := newWorld(crm.Lookup)
	key := ambiguous(t, w, lostAfter)
	settled(w)
	w.crm.description = crm.Description{Name: "poor", Class: crm.None}
	e := w.engine("b", 0)
	w.advance(t, e, key)
	if s := wantPhase(t, w, key, job.NeedsReconciliation); !s.Human {
		t.Fatal("nobody looks at it")
	}
	if w.run(t, e).Backlog().Human != 1 {
		t.Fatal("the agenda does not know")
	}
}
