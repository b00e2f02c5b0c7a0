package engine_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// TestTheRequestIsThePlansUnderTheClaim: what leaves is the lead that the plan asks
// for, under the operation and until the deadline that the log says.
func TestTheRequestIsThePlansUnderTheClaim(t *testing.T) {
	w := newWorld(crm.Lookup)
	u := message(1, "hello")
	key := w.accept(t, u)
	w.fail("create", lostAfter)
	w.meanwhile("create", func() {
		s := w.state(t, key)
		want := crm.Operation{ID: s.OperationID, Deadline: w.time.Now().Add(patient.CallTimeout)}
		if got := w.crm.asked[0]; got.ID != want.ID || !got.Deadline.Equal(want.Deadline) || !s.Claim.Deadline.Equal(want.Deadline) {
			t.Errorf("asked for %+v under %+v, want %+v", got, s.Claim, want)
		}
		if fields := job.DefaultPlan(key, u).Fields; !maps.Equal(w.crm.asked[0].Fields, fields) || len(fields) == 0 {
			t.Errorf("the lead has %v, want %v", w.crm.asked[0].Fields, fields)
		}
		if s.Claim.Worker != "worker a" || !s.Claim.LeaseUntil.Equal(w.time.Now().Add(patient.Lease)) {
			t.Errorf("claimed as %+v", s.Claim)
		}
	})
	e := w.engine("worker a", 0)
	w.advance(t, e, key)
	settled(w)
	w.advance(t, e, key)
	s := wantPhase(t, w, key, job.Done)
	if got := w.crm.asked[1]; got.ID != s.OperationID || !got.Deadline.Equal(w.time.Now().Add(patient.CallTimeout)) {
		t.Errorf("looked up %+v", got)
	}
}

// TestALongReasonIsCut: an outcome must never be too large to be recorded.
func TestALongReasonIsCut(t *testing.T) {
	for reason, want := range map[string]string{
		"no e-mail":                     "no e-mail",
		strings.Repeat("x", 500):        strings.Repeat("x", 500),
		strings.Repeat("x", 501):        strings.Repeat("x", 500),
		"x" + strings.Repeat("é", 5000): "x" + strings.Repeat("é", 249), // 500 bytes end in the middle of one
	} {
		w := newWorld(crm.None)
		w.crm.refusal = reason
		key := w.accept(t, message(1, "hello"))
		w.fail("create", refused)
		w.advance(t, w.engine("a", 0), key)
		if s := wantPhase(t, w, key, job.DeadLetter); s.LastError != "refused: "+want {
			t.Errorf("the reason is %d bytes: %q", len(s.LastError), s.LastError)
		}
	}
}

// failing is a job in front of a step that records an event.
type failing struct {
	class  crm.Class
	before func(*testing.T, *world, *engine.Engine) job.Key
	event  string
}

var steps = map[string]failing{
	"a claim": {crm.None, func(t *testing.T, w *world, _ *engine.Engine) job.Key { return w.accept(t, message(1, "hello")) }, "JobClaimed"},
	"nothing to do": {crm.None, func(t *testing.T, w *world, _ *engine.Engine) job.Key {
		return w.accept(t, parse(`{"update_id":1,"poll":{}}`))
	}, "NoEffectNeeded"},
	"an expired claim": {crm.Upsert, func(t *testing.T, w *world, _ *engine.Engine) job.Key {
		key := w.accept(t, message(1, "hello"))
		die(t, w, "dead", key, "create")
		w.time.advance(patient.Lease + patient.ClockSkew)
		return key
	}, "OutcomeUnknown"},
	"a lookup that finds": {crm.Lookup, func(t *testing.T, w *world, _ *engine.Engine) job.Key {
		key := ambiguous(t, w, lostAfter)
		settled(w)
		return key
	}, "LeadConfirmed"},
	"a lookup that does not": {crm.Lookup, func(t *testing.T, w *world, _ *engine.Engine) job.Key {
		key := ambiguous(t, w, lostBefore)
		settled(w)
		return key
	}, "LeadAbsent"},
	"a lookup that fails": {crm.Lookup, func(t *testing.T, w *world, _ *engine.Engine) job.Key {
		key := ambiguous(t, w, lostBefore)
		settled(w)
		w.fail("find", down)
		return key
	}, "ReconciliationNeeded"},
	"a lookup that is no longer possible": {crm.None, func(t *testing.T, w *world, _ *engine.Engine) job.Key {
		key := w.accept(t, message(1, "hello"))
		w.append(t, key.Stream(), job.JobClaimed{OperationID: "o"}, job.ReconciliationNeeded{Reason: "cut"})
		return key
	}, "ReconciliationNeeded"},
	"a reservation": {crm.None, func(t *testing.T, w *world, _ *engine.Engine) job.Key { return w.accept(t, press(1, "buy")) }, "OperationReserved"},
	"the end of the second": {crm.None, func(t *testing.T, w *world, e *engine.Engine) job.Key {
		w.advance(t, e, w.accept(t, press(1, "buy")))
		return w.accept(t, press(2, "buy"))
	}, "NoEffectNeeded"},
}

// TestAStepThatCannotBeRecordedIsTold: each step in front of a log that is down
// fails, leaves the job as it is, and is the same when the log is back.
func TestAStepThatCannotBeRecordedIsTold(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			w := newWorld(step.class)
			e := w.engine("a", 0)
			key := step.before(t, w, e)
			before := w.history(key.Stream())
			w.fail("append "+step.event, down)
			v, err := e.Advance(t.Context(), key.Stream())
			if !errors.Is(err, eventlog.ErrUnavailable) || v.Schedule != job.Unchanged {
				t.Fatalf("verdict %+v, %v, want unavailable", v, err)
			}
			wantHistory(t, w, key, before...)
			turn := e.Failed(key.Stream())
			if want := (engine.Verdict{Schedule: job.DueAt, At: w.time.Now().Add(engine.TroublePause), Revision: 1<<64 - 1}); turn.Verdict != want {
				t.Errorf("to be tried again as %+v, want %+v", turn.Verdict, want)
			}
			w.faults = map[string][]fault{}
			w.advance(t, e, key)
			if step.event != "OperationReserved" && name != "a lookup that fails" && w.history(key.Stream())[len(before)] != step.event {
				t.Errorf("the log is back: %v", w.history(key.Stream())[len(before):])
			}
		})
	}
}

// waitsAfter is how long a job is told to wait after its first step, with the jitter
// that was drawn.
func waitsAfter(t *testing.T, class crm.Class, point string, f fault) time.Duration {
	w := newWorld(class)
	w.crm.retryAfter = 0
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	w.fail(point, f)
	w.advance(t, e, key)
	return w.state(t, key).NotBefore.Sub(w.time.Now())
}

func TestAWaitIsDrawnFromTheWholeRange(t *testing.T) {
	for name, wait := range map[string]time.Duration{
		"not applied": waitsAfter(t, crm.None, "create", limited), "not sent": waitsAfter(t, crm.None, "create", down),
		"unknown": waitsAfter(t, crm.Upsert, "create", lostBefore),
	} {
		if wait <= 0 || wait > patient.RetryFirst {
			t.Errorf("%s: waits %s, want something up to %s", name, wait, patient.RetryFirst)
		}
	}
	w := newWorld(crm.Upsert)
	key := w.accept(t, message(1, "hello"))
	die(t, w, "dead", key, "create")
	expire(t, w, key)
	if wait := w.state(t, key).NotBefore.Sub(w.time.Now()); wait <= 0 || wait > patient.RetryFirst {
		t.Errorf("expired: waits %s", wait)
	}
	w = newWorld(crm.Lookup)
	key = ambiguous(t, w, lostBefore)
	settled(w)
	w.fail("find", down)
	w.advance(t, w.engine("a", 0), key)
	if wait := w.state(t, key).NotBefore.Sub(w.time.Now()); wait <= 0 || wait > patient.RetryFirst {
		t.Errorf("a lookup failed: waits %s", wait)
	}
}

// TestPatienceGrowsWithTheJobsAge: a job that waits for another one looks again
// after a quarter of its age, within bounds.
func TestPatienceGrowsWithTheJobsAge(t *testing.T) {
	w := newWorld(crm.None)
	one, two := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy"))
	die(t, w, "dead", one, "create")
	began, e := w.time.Now(), w.engine("a", 0)
	for age, want := range map[time.Duration]time.Duration{
		0: time.Second, 3 * time.Second: time.Second, 40 * time.Second: 10 * time.Second, 200 * time.Second: 50 * time.Second,
		240 * time.Second: time.Minute, time.Hour: time.Minute,
	} {
		w.time.now = began.Add(age)
		if v := w.advance(t, e, two); v.Schedule != job.DueAt || !v.At.Equal(w.time.Now().Add(want)) || v.Revision != 0 {
			t.Errorf("aged %s: %+v, want to wait %s", age, v, want)
		}
	}
	wantHistory(t, w, two, "UpdateReceived")
}

// TestAClaimThatIsGivenUpWaitsItsTurn: the time ran out before the request left.
func TestAClaimThatIsGivenUpWaitsItsTurn(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	slowly(w, 4, patient.CallTimeout)
	w.advance(t, w.engine("a", 0), key)
	s := wantPhase(t, w, key, job.Pending)
	if !s.NotBefore.Equal(w.time.Now().Add(patient.RetryFirst)) || s.Spent != 0 || s.LastError != "the claim's time ran out before the request could leave" {
		t.Errorf("given up as %+v at %s", s, w.time.Now())
	}
}

// TestARequestThatMayNeverLeaveAndCannotBeSaidSo: the job was requeued with its
// outcome unknown, and the log is down when that has to be recorded.
func TestARequestThatMayNeverLeaveAndCannotBeSaidSo(t *testing.T) {
	w := newWorld(crm.None)
	key, e := ambiguous(t, w, lostBefore), w.engine("a", 0)
	mustAct(t)(e.Discard(t.Context(), key, operator))
	mustAct(t)(e.Requeue(t.Context(), key, operator))
	requests := len(w.crm.asked)
	w.fail("append ReconciliationNeeded", down)
	w.advance(t, e, key)
	if s := wantPhase(t, w, key, job.Pending); s.LastError != "the claim could not be kept until the request" || !s.Ambiguous {
		t.Errorf("%+v", s)
	}
	w.run(t, e)
	wantPhase(t, w, key, job.NeedsReconciliation)
	if len(w.crm.asked) != requests {
		t.Errorf("asked for %v", w.crm.asked[requests:])
	}
}

// TestAClaimThatCanNeitherBeKeptNorGivenBack: the log is down from the claim on.
func TestAClaimThatCanNeitherBeKeptNorGivenBack(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	slowly(w, 1, patient.CallTimeout)
	w.fail("append ClaimRenewed", down)
	w.fail("append ClaimReleased", slices.Repeat([]fault{down}, 100)...)
	if _, err := w.engine("a", 0).Advance(t.Context(), key.Stream()); !errors.Is(err, eventlog.ErrUnavailable) || !strings.Contains(err.Error(), "not sent") {
		t.Errorf("error %v", err)
	}
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed")
	if len(w.crm.asked) > 0 {
		t.Errorf("asked for %v", w.crm.asked)
	}
}
