package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// die lets the worker take the job and die at the point.
func die(t *testing.T, w *world, worker string, key job.Key, point string) {
	t.Helper()
	w.meanwhile(point, func() { panic("kill -9") })
	defer func() {
		if recover() == nil {
			t.Fatalf("%s lived through %s", worker, point)
		}
	}()
	_, _ = w.engine(worker, 0).Advance(t.Context(), key.Stream())
}

func TestAWorkerDiesWithItsClaim(t *testing.T) {
	for _, class := range crm.Classes {
		for point, made := range map[string]int{"appended JobClaimed": 0, "create": 0, "created": 1} {
			t.Run(string(class)+"/"+point, func(t *testing.T) {
				w := newWorld(class)
				key := w.accept(t, message(1, "hello"))
				die(t, w, "a", key, point)
				began, b := w.time.Now(), w.engine("b", 0)
				v := w.advance(t, b, key)
				if want := began.Add(w.policy.Lease + w.policy.ClockSkew); !v.At.Equal(want) {
					t.Fatalf("looked at again at %s, want %s", v.At, want)
				}
				wantPhase(t, w, key, job.Claimed)
				w.run(t, b)
				s := w.state(t, key)
				effects := len(w.crm.effects(s.OperationID))
				if class == crm.None {
					if s.Phase != job.NeedsReconciliation || !s.Human || effects != made {
						t.Fatalf("%s, %d effects", s.Phase, effects)
					}
					return
				}
				if s.Phase != job.Done || effects != 1 {
					t.Fatalf("%s, %d effects: %v", s.Phase, effects, w.history(key.Stream()))
				}
				if class == crm.Lookup && made == 1 && w.crm.requests[s.OperationID] != 1 {
					t.Fatal("sent again while ambiguous")
				}
			})
		}
	}
}

// slowly lets time pass right behind the claim, n times in a row.
func slowly(w *world, n int, d time.Duration) {
	w.meanwhile("appended JobClaimed", func() { w.time.advance(d) })
	for range n - 1 {
		w.meanwhile("appended ClaimRenewed", func() { w.time.advance(d) })
	}
}

func TestTheTimeRunsOutBeforeTheRequestLeaves(t *testing.T) {
	long := patient.CallTimeout
	for n, history := range map[int][]string{
		1: {"ClaimRenewed", "LeadConfirmed"},
		2: {"ClaimRenewed", "ClaimRenewed", "LeadConfirmed"},
		4: {"ClaimRenewed", "ClaimRenewed", "ClaimRenewed", "ClaimReleased", "JobClaimed", "LeadConfirmed"},
	} {
		w := newWorld(crm.None)
		key := w.accept(t, message(1, "hello"))
		slowly(w, n, long)
		w.run(t, w.engine("a", 0))
		wantHistory(t, w, key, append([]string{"UpdateReceived", "JobClaimed"}, history...)...)
		if s := w.state(t, key); w.crm.requests[s.OperationID] != 1 {
			t.Fatalf("%d requests", w.crm.requests[s.OperationID])
		}
	}
}

func TestHalfTheTimeIsEnoughToSend(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	slowly(w, 1, patient.CallTimeout/2)
	w.run(t, w.engine("a", 0))
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "LeadConfirmed")
}

func TestAPausedProcessSendsAfterItsDeadline(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.meanwhile("create", func() {
		w.time.advance(10 * time.Minute)
		w.advance(t, w.engine("b", 0), key)
	})
	w.advance(t, w.engine("a", 0), key)
	s := wantPhase(t, w, key, job.NeedsReconciliation)
	if w.crm.requests[s.OperationID] != 0 {
		t.Fatal("sent late")
	}
}

// TestARenewalLosesARaceWithADelivery: the request has not left, which the
// worker knows; it must not leave a claim behind that others take for ambiguous.
func TestARenewalLosesARaceWithADelivery(t *testing.T) {
	for name, point := range map[string]string{"renewal": "append ClaimRenewed", "release": "append ClaimReleased"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			u := message(1, "hello")
			key, e := w.accept(t, u), w.engine("a", 0)
			slowly(w, 4, patient.CallTimeout)
			w.meanwhile(point, func() { w.quiet(func() { w.accept(t, u) }) })
			w.advance(t, e, key)
			wantPhase(t, w, key, job.Pending)
			w.run(t, e)
			s := wantPhase(t, w, key, job.Done)
			if slices.Contains(w.history(key.Stream()), "ReconciliationNeeded") || w.crm.requests[s.OperationID] != 1 {
				t.Fatalf("%v", w.history(key.Stream()))
			}
		})
	}
}

func TestARenewalFailsAndLeavesTheClaim(t *testing.T) {
	for name, f := range map[string]fault{"down": down, "lost before": lostBefore, "lost after": lostAfter} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
			slowly(w, 1, patient.CallTimeout)
			w.fail("append ClaimRenewed", f, f, f)
			_, _ = e.Advance(t.Context(), key.Stream())
			w.run(t, e)
			if s := wantPhase(t, w, key, job.Done); w.crm.requests[s.OperationID] != 1 {
				t.Fatalf("%v", w.history(key.Stream()))
			}
		})
	}
}

func TestARenewalAfterTheClaimWasLost(t *testing.T) {
	w := newWorld(crm.UniqueCreate)
	key, a, b := w.accept(t, message(1, "hello")), w.engine("a", 0), w.engine("b", 0)
	w.meanwhile("appended JobClaimed", func() {
		expire(t, w, key)
		w.time.advance(w.policy.RetryMax)
		w.advance(t, b, key)
	})
	w.advance(t, a, key)
	s := wantPhase(t, w, key, job.Done)
	if w.crm.requests[s.OperationID] != 1 {
		t.Fatalf("%d requests: %v", w.crm.requests[s.OperationID], w.history(key.Stream()))
	}
}

// TestTheKeyExpiresDuringAnOutage: the key's validity ends before, during and
// after each of the steps that precede the second request.
func TestTheKeyExpiresDuringAnOutage(t *testing.T) {
	for _, point := range []string{"", "append JobClaimed", "appended JobClaimed", "create"} {
		t.Run("at "+point, func(t *testing.T) {
			w := newWorld(crm.IdempotencyKey)
			key := w.accept(t, message(1, "hello"))
			w.fail("create", lostAfter)
			w.advance(t, w.engine("a", 0), key)
			wantPhase(t, w, key, job.Pending)
			w.time.advance(time.Minute)
			if point == "" {
				w.time.advance(validity)
			} else {
				w.meanwhile(point, func() { w.time.advance(validity) })
			}
			w.run(t, w.engine("b", 0))
			s := wantPhase(t, w, key, job.Done)
			if effects := w.crm.effects(s.OperationID); len(effects) != 1 || s.How != job.ByLookup {
				t.Fatalf("effects %v, known by %s: %v", effects, s.How, w.history(key.Stream()))
			}
		})
	}
}

// TestTheLastMomentOfAKey: a request that ends, arrives and is seen by a clock
// apart from ours within the validity may leave, and no other.
func TestTheLastMomentOfAKey(t *testing.T) {
	last := validity - patient.CallTimeout - settle - patient.ClockSkew
	for _, c := range []struct {
		age      time.Duration
		requests int
	}{{last - time.Nanosecond, 2}, {last, 1}} {
		w := newWorld(crm.IdempotencyKey)
		key, sent := w.accept(t, message(1, "hello")), w.time.Now()
		w.fail("create", lostAfter)
		w.advance(t, w.engine("a", 0), key)
		w.time.advance(sent.Add(c.age).Sub(w.time.Now()))
		w.run(t, w.engine("b", 0))
		s := wantPhase(t, w, key, job.Done)
		if got := w.crm.requests[s.OperationID]; got != c.requests {
			t.Fatalf("%d requests when the key was %s old, want %d: %v", got, c.age, c.requests, w.history(key.Stream()))
		}
	}
}

func TestARequestThatMayNeverLeaveLeaves(t *testing.T) {
	for _, class := range []crm.Class{crm.None, crm.Lookup} {
		w := newWorld(class)
		key := w.accept(t, message(1, "hello"))
		w.fail("create", lostAfter)
		e := w.engine("a", 0)
		w.advance(t, e, key)
		for _, act := range []func() (job.State, error){
			func() (job.State, error) { return e.Discard(t.Context(), key, operator) },
			func() (job.State, error) { return e.Requeue(t.Context(), key, operator) },
		} {
			if _, err := act(); err != nil {
				t.Fatal(err)
			}
		}
		w.advance(t, e, key)
		s := wantPhase(t, w, key, job.NeedsReconciliation)
		if w.crm.requests[s.OperationID] != 1 {
			t.Fatalf("%s: sent again while ambiguous", class)
		}
	}
}
