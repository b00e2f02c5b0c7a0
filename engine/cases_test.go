package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// The cases from the field that are the workers'; T40 and T41 are with the
// shared operations.

func TestT80_AWorkerIsPausedInTheMiddleOfACall(t *testing.T) {
	for _, class := range crm.Classes {
		t.Run(string(class), func(t *testing.T) {
			w := newWorld(class)
			key, a, b := w.accept(t, message(1, "hello")), w.engine("a", 0), w.engine("b", 0)
			w.meanwhile("created", func() {
				end := w.time.Now().Add(10 * time.Minute)
				w.quiet(func() { w.runUntil(engine.NewAgenda(), 10*time.Minute, b) })
				w.time.advance(end.Sub(w.time.Now()))
			})
			w.advance(t, a, key)
			s := wantPhase(t, w, key, job.Done)
			if s.CRMID != "L-1" || len(w.crm.leads) != 1 {
				t.Fatalf("confirmed %q, leads %v", s.CRMID, w.crm.leads)
			}
			if class == crm.None && s.How != job.ByLate {
				t.Fatalf("known by %s", s.How)
			}
		})
	}
}

func TestT81_AClockIsHalfAMinuteAhead(t *testing.T) {
	skew := patient.ClockSkew
	for _, class := range crm.Classes {
		for _, skews := range [][2]time.Duration{{skew, 0}, {0, skew}, {-skew, 0}, {0, -skew}} {
			t.Run(fmt.Sprintf("%s/%s and %s", class, skews[0], skews[1]), func(t *testing.T) {
				w := newWorld(class)
				key, a, b := w.accept(t, message(1, "hello")), w.engine("a", skews[0]), w.engine("b", skews[1])
				w.time.advance(skew) // the one behind sees the job too
				// a's request is under way as long as a request may be; b looks all the time.
				w.fail("create", lateEffect)
				w.meanwhile("created", func() {
					for range int(patient.CallTimeout / time.Second) {
						w.time.advance(time.Second)
						w.advance(t, b, key)
					}
					wantHistory(t, w, key, "UpdateReceived", "JobClaimed")
				})
				w.advance(t, a, key)
				w.run(t, b, a)
				w.time.advance(time.Hour)
				s := w.state(t, key)
				if effects := w.crm.effects(s.OperationID); len(effects) != 1 {
					t.Fatalf("effects %v: %v", effects, w.history(key.Stream()))
				}
				if class == crm.None != (s.Phase == job.NeedsReconciliation) {
					t.Fatalf("in %s", s.Phase)
				}
			})
		}
	}
}

func TestT82_AllWorkersDieHoldingClaims(t *testing.T) {
	w := newWorld(crm.UniqueCreate)
	var keys []job.Key
	for i, point := range []string{"appended JobClaimed", "create", "created", "append LeadConfirmed"} {
		key := w.accept(t, message(i, "hello"))
		keys = append(keys, key)
		die(t, w, fmt.Sprintf("old-host-%d", i), key, point)
	}
	began := w.time.Now()
	w.run(t, w.engine("new-host", 0))
	for _, key := range keys {
		s := wantPhase(t, w, key, job.Done)
		if len(w.crm.effects(s.OperationID)) != 1 {
			t.Fatalf("%s: effects %v", key, w.crm.effects(s.OperationID))
		}
	}
	if took, most := w.time.Now().Sub(began), w.policy.Lease+w.policy.ClockSkew+w.policy.RetryMax; took > most {
		t.Fatalf("recovered after %s, want at most %s", took, most)
	}
}

func TestT83_TheLastAttemptFailsAndAnEarlierOneWasAmbiguous(t *testing.T) {
	for name, last := range map[string]fault{"429": limited, "refused": refused, "unknown": lostBefore} {
		w := newWorld(crm.Upsert)
		key := w.accept(t, message(1, "hello"))
		w.fail("create", lostAfter, limited, last)
		w.run(t, w.engine("a", 0))
		if s := wantPhase(t, w, key, job.NeedsReconciliation); s.Spent != patient.MaxAttempts || !s.Human {
			t.Fatalf("%s: %d attempts spent, human %t", name, s.Spent, s.Human)
		}
	}
}

func TestT84_AnOperatorRequeuesADeadLetter(t *testing.T) {
	w := newWorld(crm.None)
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	w.fail("create", limited, limited, limited)
	w.run(t, e)
	before := wantPhase(t, w, key, job.DeadLetter)
	mustAct(t)(e.Requeue(t.Context(), key, operator))
	if s := wantPhase(t, w, key, job.Pending); s.Spent != 0 || s.Requeues != 1 {
		t.Fatalf("%+v", s)
	}
	w.fail("create", limited, limited) // a whole round of attempts
	w.run(t, e)
	if s := wantPhase(t, w, key, job.Done); s.OperationID != before.OperationID || len(w.crm.leads) != 1 {
		t.Fatalf("operation %s, was %s", s.OperationID, before.OperationID)
	}
	for r := range w.store.ReadStream(t.Context(), key.Stream(), before.EventCount) {
		if !strings.Contains(string(r.Data), operator.By) || !strings.Contains(string(r.Data), operator.Reason) {
			t.Fatalf("%s: %s does not tell who and why", r.Type, r.Data)
		}
		break
	}
}

const manyJobs = 10_000

// crowd is a world of many jobs, in all phases.
func crowd(t *testing.T) *world {
	t.Helper()
	w := newWorld(crm.None)
	w.crm.retryAfter = 0 // a rest of the connector would only cost steps
	e := w.engine("a", 0)
	for i := range manyJobs {
		key := w.accept(t, message(i, "hello"))
		if i%4 == 0 {
			w.fail("create", []fault{none, refused, limited, lostAfter}[i/4%4])
			w.advance(t, e, key)
		}
	}
	return w
}

func TestT85_TheReadModelIsDeletedOrAnHourBehind(t *testing.T) {
	w := crowd(t)
	e, behind := w.engine("a", 0), engine.NewAgenda()
	sweep(t, w, behind)
	key := w.accept(t, message(manyJobs, "the one"))
	// A reader that is behind hands out jobs that are long done: nothing comes of it.
	for range 3_000 {
		stream, ok := behind.Next(w.time.Now().Add(time.Hour))
		if !ok {
			break
		}
		s, err := engine.Load(t.Context(), w.store, stream)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := e.Advance(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.crm.requests[s.OperationID]; n > 1 {
			t.Fatalf("%s: %d requests", stream, n)
		}
	}
	b := w.run(t, e).Backlog() // and one that was deleted reads the log
	if want := manyJobs/16 + 0; b.Human != want || b.Open != 0 {
		t.Fatalf("backlog %+v, want %d for a human", b, want)
	}
	wantPhase(t, w, key, job.Done)
	seen := map[string]bool{}
	for _, l := range w.crm.leads {
		if seen[l.operation] {
			t.Fatalf("operation %s has two leads", l.operation)
		}
		seen[l.operation] = true
	}
	if want := manyJobs + 1 - manyJobs/16; len(seen) != want { // all but the refused ones
		t.Fatalf("%d leads, want %d", len(seen), want)
	}
}

func TestT86_APoisonEventInOneStream(t *testing.T) {
	w := crowd(t)
	poisoned := []job.Key{w.accept(t, message(manyJobs, "a")), w.accept(t, message(manyJobs+1, "b")), {Bot: bot, Update: 1}}
	for _, key := range poisoned {
		w.poison(t, key.Stream())
	}
	b := w.run(t, w.engine("a", 0)).Backlog()
	if b != (engine.Backlog{Human: manyJobs / 16, Stopped: len(poisoned)}) {
		t.Fatalf("backlog %+v", b)
	}
	for _, key := range poisoned {
		wantHistory(t, w, key, "UpdateReceived", "FromTheFuture")
	}
	if want := manyJobs - manyJobs/16 - 1; len(w.crm.leads) != want {
		t.Fatalf("%d leads, want %d", len(w.crm.leads), want)
	}
}
