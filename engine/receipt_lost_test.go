package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// expire lets the claim end and others find that out.
func expire(t *testing.T, w *world, key job.Key) {
	w.time.advance(w.policy.Lease + w.policy.ClockSkew)
	w.advance(t, w.engine("finder", 0), key)
}

// settled lets time pass until a lookup proves something.
func settled(w *world) { w.time.advance(w.policy.CallTimeout + settle + w.policy.ClockSkew) }

// TestALateReceiptIsDropped stops a worker between the CRM's answer and the
// record of it, and lets the others go on with its job.
func TestALateReceiptIsDropped(t *testing.T) {
	act := func(_ job.State, err error) {
		if err != nil {
			panic(err)
		}
	}
	cases := map[string]struct {
		class     crm.Class
		meanwhile func(*testing.T, *world, job.Key, *engine.Engine)
		history   []string // behind the claim
		phase     job.Phase
	}{
		"claim expired, nobody looked": {crm.Upsert, func(_ *testing.T, w *world, _ job.Key, _ *engine.Engine) {
			w.time.advance(time.Hour)
		}, []string{"LeadConfirmed"}, job.Done},
		"pending": {crm.UniqueCreate, func(t *testing.T, w *world, key job.Key, _ *engine.Engine) {
			expire(t, w, key)
		}, []string{"OutcomeUnknown", "LeadConfirmed"}, job.Done},
		"claimed by another": {crm.UniqueCreate, func(t *testing.T, w *world, key job.Key, b *engine.Engine) {
			expire(t, w, key)
			w.time.advance(w.policy.RetryMax)
			w.meanwhile("appended JobClaimed", func() { panic("kill -9") })
			func() {
				defer func() { _ = recover() }()
				_, _ = b.Advance(t.Context(), key.Stream())
			}()
		}, []string{"OutcomeUnknown", "JobClaimed", "LeadConfirmed"}, job.Done},
		"needs_reconciliation": {crm.Lookup, func(t *testing.T, w *world, key job.Key, _ *engine.Engine) {
			expire(t, w, key)
		}, []string{"ReconciliationNeeded", "LeadConfirmed"}, job.Done},
		"in front of a human": {crm.None, func(t *testing.T, w *world, key job.Key, _ *engine.Engine) {
			expire(t, w, key)
		}, []string{"ReconciliationNeeded", "LeadConfirmed"}, job.Done},
		"done, same id": {crm.Lookup, func(t *testing.T, w *world, key job.Key, b *engine.Engine) {
			expire(t, w, key)
			settled(w)
			w.advance(t, b, key)
		}, []string{"ReconciliationNeeded", "LeadConfirmed"}, job.Done},
		"done, another id": {crm.None, func(t *testing.T, w *world, key job.Key, b *engine.Engine) {
			expire(t, w, key)
			act(b.Resolve(t.Context(), key, "", "somebody-else", operator))
		}, []string{"ReconciliationNeeded", "LeadConfirmed", "ReceiptConflicted"}, job.Done},
		"dead_letter": {crm.None, func(t *testing.T, w *world, key job.Key, b *engine.Engine) {
			expire(t, w, key)
			act(b.Discard(t.Context(), key, operator))
		}, []string{"ReconciliationNeeded", "JobDeadLettered", "ReceiptConflicted"}, job.DeadLetter},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.class)
			key, b := w.accept(t, message(1, "hello")), w.engine("b", 0)
			w.meanwhile("created", func() { c.meanwhile(t, w, key, b) })
			w.advance(t, w.engine("a", 0), key)
			wantHistory(t, w, key, append([]string{"UpdateReceived", "JobClaimed"}, c.history...)...)
			s := wantPhase(t, w, key, c.phase)
			if late := c.history[len(c.history)-1] == "LeadConfirmed" && len(c.history) > 1 && !strings.HasPrefix(name, "done"); late && s.How != job.ByLate {
				t.Fatalf("known by %s, want %s", s.How, job.ByLate)
			}
			if s.CRMID != "L-1" && !slices.Equal(s.OtherCRMIDs, []string{"L-1"}) {
				t.Fatalf("L-1 is nowhere in %+v", s)
			}
			if ids := w.crm.effects(s.OperationID); len(ids) > 1 {
				t.Fatalf("effects %v", ids)
			}
		})
	}
}

func TestALateOutcomeWithoutAReceiptDisturbsOthers(t *testing.T) {
	for name, f := range map[string]fault{"refused": refused, "429": limited, "unknown": lostBefore, "not sent": down} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.Upsert)
			key := w.accept(t, message(1, "hello"))
			b := w.engine("b", 0)
			w.fail("create", f)
			w.meanwhile("created", func() {
				expire(t, w, key)
				w.time.advance(w.policy.RetryMax)
				w.meanwhile("created", func() {}) // b's answer is not the one to stop at
				w.advance(t, b, key)
			})
			if f == down { // refused by the connector before it left: stop there instead
				w.then = map[string][]func(){"create": {func() { expire(t, w, key) }}}
			}
			w.advance(t, w.engine("a", 0), key)
			w.run(t, b)
			s := wantPhase(t, w, key, job.Done)
			if len(w.crm.effects(s.OperationID)) != 1 || slices.Contains(w.history(key.Stream()), "ReceiptConflicted") {
				t.Fatalf("effects %v: %v", w.crm.effects(s.OperationID), w.history(key.Stream()))
			}
		})
	}
}

// TestALateOutcomeIsTakenForTheOneUnderWay: a worker that did not send wakes
// while another's request is under way. Its proof is about its own request only.
func TestALateOutcomeIsTakenForTheOneUnderWay(t *testing.T) {
	for name, f := range map[string]fault{"too late to send": none, "refused": refused, "429": limited, "unknown": lostBefore} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.Lookup)
			key, a, b := w.accept(t, message(1, "hello")), w.engine("a", 0), w.engine("b", 0)
			point := map[bool]string{true: "create", false: "created"}[f == none]
			w.meanwhile(point, func() {
				expire(t, w, key)
				settled(w)
				w.advance(t, b, key)
				wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "ReconciliationNeeded", "LeadAbsent")
				w.meanwhile("created", func() { panic("b is stopped here") })
				w.fail("create", lostAfter)
				func() {
					defer func() { _ = recover() }()
					_, _ = b.Advance(t.Context(), key.Stream())
				}()
			})
			w.fail("create", f)
			w.advance(t, a, key)
			wantPhase(t, w, key, job.Claimed)
			w.run(t, b)
			s := wantPhase(t, w, key, job.Done)
			if ids := w.crm.effects(s.OperationID); len(ids) != 1 {
				t.Fatalf("effects %v: %v", ids, w.history(key.Stream()))
			}
		})
	}
}

func TestAReceiptIsForgottenWhileTheLogIsDown(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	for i := range 40 {
		w.fail("append LeadConfirmed", []fault{down, lostBefore}[i%2])
		if i%3 == 0 {
			w.fail("read", none, none, down, cut, unseen)
		}
	}
	began := w.time.Now()
	w.advance(t, w.engine("a", 0), key)
	s := wantPhase(t, w, key, job.Done)
	if s.CRMID != "L-1" || w.time.Now().Sub(began) < 2*w.policy.RetryFirst {
		t.Fatalf("confirmed %q after %s: the log was not given time", s.CRMID, w.time.Now().Sub(began))
	}
	if len(w.seen.troubled) == 0 {
		t.Fatal("nobody was told")
	}
}

func TestAConfirmationOfUnknownOutcomeIsRecordedTwice(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.fail("append LeadConfirmed", lostAfter, lostBefore, lostBefore, down)
	w.advance(t, w.engine("a", 0), key)
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "LeadConfirmed")
}

func TestAConflictThatCannotBeReadSpins(t *testing.T) {
	w := newWorld(crm.None)
	u := message(1, "hello")
	key := w.accept(t, u)
	w.meanwhile("created", func() { w.quiet(func() { w.accept(t, u) }) })
	w.fail("read", none, down, down, down, down)
	began := w.time.Now()
	w.advance(t, w.engine("a", 0), key)
	wantPhase(t, w, key, job.Done)
	if w.time.Now().Equal(began) {
		t.Fatal("asked a log that is down again and again without a pause")
	}
}

func TestAnOutcomeWithoutAReceiptIsOfferedForEver(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.fail("create", refused)
	w.fail("append JobDeadLettered", slices.Repeat([]fault{down}, 1000)...)
	if _, err := w.engine("a", 0).Advance(t.Context(), key.Stream()); err == nil {
		t.Fatal("no error")
	}
	if tried := 1000 - len(w.faults["append JobDeadLettered"]); tried != 10 {
		t.Errorf("given up after %d tries", tried)
	}
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed")
	w.faults = map[string][]fault{}
	w.time.advance(time.Hour)
	w.run(t, w.engine("b", 0))
	wantPhase(t, w, key, job.NeedsReconciliation) // what was not recorded is not known
}

func TestAReceiptForAJobThatCannotBeDecoded(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.meanwhile("created", func() { w.poison(t, key.Stream()) })
	_, err := w.engine("a", 0).Advance(t.Context(), key.Stream())
	if !engine.IsStopped(err) {
		t.Fatalf("error %v, want one that says the job is stopped", err)
	}
}

func TestARefusalIsNotOfferedBeyondTheLease(t *testing.T) {
	w := newWorld(crm.Lookup)
	key := w.accept(t, message(1, "hello"))
	w.fail("create", refused)
	offers := 0
	for range 10 { // of a log that takes its time to say no
		w.meanwhile("append JobDeadLettered", func() {
			offers++
			w.time.advance(w.policy.Lease / 3)
		})
	}
	w.fail("append JobDeadLettered", slices.Repeat([]fault{down}, 10)...)
	if _, err := w.engine("worker", 0).Advance(t.Context(), key.Stream()); err == nil {
		t.Fatal("an outcome is recorded in a log that is down")
	}
	if offers != 3 {
		t.Errorf("offered %d times, a third of the lease each, want 3", offers)
	}
}

func TestAReceiptIsOfferedAfterShutdownForEver(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	ctx, stop := context.WithCancel(t.Context())
	w.meanwhile("created", stop)
	w.fail("append LeadConfirmed", slices.Repeat([]fault{down}, 1000)...)
	if _, err := w.engine("a", 0).Advance(ctx, key.Stream()); err == nil {
		t.Fatal("no error, but nothing is recorded")
	}
	if tried := 1000 - len(w.faults["append LeadConfirmed"]); tried != 10 {
		t.Fatalf("given up after %d tries", tried)
	}
}

// TestAReceiptThatTheLogRefusesIsOfferedForEver: no later try can end better.
func TestAReceiptThatTheLogRefusesIsOfferedForEver(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.fail("append LeadConfirmed", slices.Repeat([]fault{invalid}, 1000)...)
	_, err := w.engine("a", 0).Advance(t.Context(), key.Stream())
	if !errors.Is(err, eventlog.ErrInvalid) || !strings.Contains(err.Error(), "L-1") {
		t.Fatalf("error %v, want one that says why, and names the lead", err)
	}
	if tried := 1000 - len(w.faults["append LeadConfirmed"]); tried != 10 {
		t.Fatalf("given up after %d tries", tried)
	}
}

// TestWhatIsRecordedIsNotReadAgain, nor is what a conflict voids a trouble.
func TestWhatIsRecordedIsNotReadAgain(t *testing.T) {
	w := newWorld(crm.None)
	u := message(1, "hello")
	key := w.accept(t, u)
	w.fail("read", none, down)
	w.advance(t, w.engine("a", 0), key)
	if left := len(w.faults["read"]); left != 1 || len(w.seen.troubled) > 0 {
		t.Errorf("read again, told of %q", w.seen.troubled)
	}
	w = newWorld(crm.None)
	w.accept(t, u)
	began := w.time.Now()
	w.meanwhile("append LeadConfirmed", func() { w.quiet(func() { w.accept(t, u) }) })
	w.advance(t, w.engine("a", 0), key)
	if wantPhase(t, w, key, job.Done); !w.time.Now().Equal(began) || len(w.seen.troubled) > 0 {
		t.Errorf("waited until %s, told of %q", w.time.Now(), w.seen.troubled)
	}
}

// TestTheWaitsForTheLogGrow until they are a tenth of what the lease leaves.
func TestTheWaitsForTheLogGrow(t *testing.T) {
	w := newWorld(crm.None)
	w.policy.RetryFirst = 10 * time.Millisecond
	key, began := w.accept(t, message(1, "hello")), w.time.Now()
	w.fail("append LeadConfirmed", slices.Repeat([]fault{down}, 40)...)
	w.advance(t, w.engine("a", 0), key)
	most := 40 * patient.LeaseMargin() / 10
	if took := w.time.Now().Sub(began); took <= 40*w.policy.RetryFirst || took < most/3 || took > most {
		t.Errorf("40 waits took %s, want up to %s", took, most)
	}
}

func TestAReceiptComesLongAfterTheLogIsBack(t *testing.T) {
	w := newWorld(crm.None)
	w.policy.RetryMax = time.Hour
	key, back := w.accept(t, message(1, "hello")), w.time.Now().Add(20*time.Minute)
	w.interpose = func(point string) fault {
		if point == "append LeadConfirmed" && w.time.Now().Before(back) {
			return down
		}
		return none
	}
	w.advance(t, w.engine("a", 0), key)
	s := wantPhase(t, w, key, job.Done)
	if waited := s.LastEventAt.Sub(back); waited < 0 || waited > w.policy.LeaseMargin() {
		t.Fatalf("recorded %s after the log was back", waited)
	}
}
