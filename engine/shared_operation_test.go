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

func operationOf(u job.Update) string {
	return job.OperationID(bot, job.CreateLead, planPressesToo(u.Key(), u).BusinessKey)
}

func mustAct(t *testing.T) func(job.State, error) {
	return func(_ job.State, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestT40_DoubleTap(t *testing.T) {
	w := newWorld(crm.None)
	first, second, e := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy")), w.engine("a", 0)
	other := w.accept(t, press(3, "sell"))
	w.run(t, e)
	a, b := wantPhase(t, w, first, job.Done), wantPhase(t, w, second, job.Done)
	if a.CRMID == "" || b.CRMID != "" || b.ConfirmedBy != first.String() || b.SharedCRMID != a.CRMID {
		t.Fatalf("first %q, second %q by %q", a.CRMID, b.CRMID, b.ConfirmedBy)
	}
	wantHistory(t, w, second, "UpdateReceived", "NoEffectNeeded")
	wantPhase(t, w, other, job.Done)
	if len(w.crm.leads) != 2 {
		t.Fatalf("leads %v", w.crm.leads)
	}
}

func TestT41_TheFirstIsStillClaimedAndEndsRefused(t *testing.T) {
	w := newWorld(crm.None)
	first, second := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy"))
	a, b := w.engine("a", 0), w.engine("b", 0)
	w.fail("create", refused)
	w.meanwhile("created", func() {
		v := w.advance(t, b, second)
		if v.Schedule != job.DueAt || !v.At.After(w.time.Now()) {
			t.Errorf("verdict %+v, want later", v)
		}
		wantHistory(t, w, second, "UpdateReceived")
	})
	w.advance(t, a, first)
	wantPhase(t, w, first, job.DeadLetter)
	w.run(t, b)
	if s := wantPhase(t, w, second, job.Done); s.CRMID == "" || len(w.crm.leads) != 1 {
		t.Fatalf("%q, leads %v", s.CRMID, w.crm.leads)
	}
	mustAct(t)(a.Requeue(t.Context(), first, operator))
	w.run(t, a)
	if s := wantPhase(t, w, first, job.Done); s.ConfirmedBy != second.String() || len(w.crm.leads) != 1 {
		t.Fatalf("the first, requeued, is confirmed by %q; leads %v", s.ConfirmedBy, w.crm.leads)
	}
}

// TestATakeoverAndARequeueMakeTwoEffects drives the race that is told at
// job.Stand in both orders, with a stop before each append of either side.
func TestATakeoverAndARequeueMakeTwoEffects(t *testing.T) {
	for _, point := range []string{"append OperationReserved", "appended OperationReserved", "append JobClaimed", "appended JobClaimed", "create", "created"} {
		for _, requeuedFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/requeued first %t", point, requeuedFirst), func(t *testing.T) {
				w := newWorld(crm.None)
				first, second := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy"))
				a, b := w.engine("a", 0), w.engine("b", 0)
				w.fail("create", refused)
				w.advance(t, a, first)
				requeue := func() { mustAct(t)(a.Requeue(t.Context(), first, operator)) }
				if requeuedFirst { // the holder is stopped, the other takes its turn
					requeue()
					w.meanwhile(point, func() { w.advance(t, b, second) })
					w.advance(t, a, first)
				} else { // the other is stopped, the holder is requeued and takes its turn
					w.meanwhile(point, func() { requeue(); w.advance(t, a, first) })
					w.advance(t, b, second)
				}
				w.run(t, a, b)
				wantPhase(t, w, first, job.Done)
				wantPhase(t, w, second, job.Done)
				if len(w.crm.leads) != 1 {
					t.Fatalf("leads %v", w.crm.leads)
				}
			})
		}
	}
}

func TestTheHolderIsDiscardedWhileAmbiguous(t *testing.T) {
	w := newWorld(crm.None)
	first, second, e := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy")), w.engine("a", 0)
	w.fail("create", lostAfter)
	w.advance(t, e, first)
	wantPhase(t, w, first, job.NeedsReconciliation)
	w.time.advance(time.Hour)
	w.advance(t, e, second)
	wantHistory(t, w, second, "UpdateReceived")
	mustAct(t)(e.Discard(t.Context(), first, operator))
	w.advance(t, e, second)
	if s := wantPhase(t, w, second, job.DeadLetter); !strings.Contains(s.LastError, first.String()) {
		t.Fatalf("the reason %q does not name %s", s.LastError, first)
	}
	if len(w.crm.leads) != 1 {
		t.Fatalf("leads %v", w.crm.leads)
	}
	// The first is found out after all; the second can be requeued, and learns it.
	mustAct(t)(e.Requeue(t.Context(), first, operator))
	w.advance(t, e, first)
	mustAct(t)(e.Resolve(t.Context(), first, "", "L-1", operator))
	mustAct(t)(e.Requeue(t.Context(), second, operator))
	w.advance(t, e, second)
	if s := wantPhase(t, w, second, job.Done); s.ConfirmedBy != first.String() {
		t.Fatalf("confirmed by %q", s.ConfirmedBy)
	}
}

// TestARequeuedAndDiscardedHolderBlocksTheOthersForEver: the holder is final
// and has not reserved since it was requeued; another may take over.
func TestARequeuedAndDiscardedHolderBlocksTheOthersForEver(t *testing.T) {
	w := newWorld(crm.None)
	first, second, e := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy")), w.engine("a", 0)
	w.fail("create", refused)
	w.advance(t, e, first)
	mustAct(t)(e.Requeue(t.Context(), first, operator))
	mustAct(t)(e.Discard(t.Context(), first, operator))
	if !w.runUntil(engine.NewAgenda(), 24*time.Hour, e) {
		t.Fatalf("%s still waits: %v", second, w.history(second.Stream()))
	}
	wantPhase(t, w, second, job.Done)
}

// TestAStaleHolderReservesOverItself: a worker was stopped before it read the
// reservation, and knows nothing of a requeue that made a newer one.
func TestAStaleHolderReservesOverItself(t *testing.T) {
	w := newWorld(crm.None)
	first, second := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy"))
	a, b := w.engine("a", 0), w.engine("b", 0)
	w.fail("create", limited)
	w.advance(t, a, first)
	w.time.advance(time.Minute)
	w.meanwhile("now", func() { // a has read the job, and stops
		mustAct(t)(b.Discard(t.Context(), first, operator))
		mustAct(t)(b.Requeue(t.Context(), first, operator))
		w.fail("create", refused)
		w.advance(t, b, first)
	})
	w.advance(t, a, first)
	wantPhase(t, w, first, job.DeadLetter)
	if !w.runUntil(engine.NewAgenda(), 24*time.Hour, b) {
		t.Fatalf("%s still waits: %v", second, w.history(second.Stream()))
	}
	if s := wantPhase(t, w, second, job.Done); s.CRMID == "" || len(w.crm.leads) != 1 {
		t.Fatalf("leads %v", w.crm.leads)
	}
}

func TestTheHolderEndsWithoutEffect(t *testing.T) {
	w := newWorld(crm.None)
	first, second, e := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy")), w.engine("a", 0)
	die(t, w, "a", first, "appended OperationReserved")
	w.plan = func(k job.Key, u job.Update) job.Plan { // a new release asks for no effect of the first
		if k == first {
			return job.Plan{Reason: "no rule"}
		}
		return planPressesToo(k, u)
	}
	w.run(t, e)
	wantHistory(t, w, first, "UpdateReceived", "NoEffectNeeded")
	if s := wantPhase(t, w, second, job.Done); s.CRMID == "" {
		t.Fatal("no effect at all")
	}
}

func TestTheReservationIsOfUnknownOutcome(t *testing.T) {
	for name, f := range map[string]fault{"down": down, "lost before": lostBefore, "lost after": lostAfter} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			first, second, e := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy")), w.engine("a", 0)
			w.fail("append OperationReserved", map[fault][]fault{down: {f}}[f]...)
			if f != down {
				w.fail("append OperationReserved", f, f, f)
			}
			if _, err := e.Advance(t.Context(), first.Stream()); err == nil {
				t.Fatal("no error")
			}
			if len(w.seen.called) != 0 {
				t.Fatal("called without a reservation")
			}
			w.advance(t, e, second)
			w.run(t, e)
			if len(w.crm.leads) != 1 {
				t.Fatalf("leads %v", w.crm.leads)
			}
			wantPhase(t, w, first, job.Done)
			wantPhase(t, w, second, job.Done)
		})
	}
}

func TestTheHolderOrTheReservationCannotBeDecoded(t *testing.T) {
	t.Run("holder", func(t *testing.T) {
		w := newWorld(crm.None)
		first, second, e := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy")), w.engine("a", 0)
		die(t, w, "a", first, "appended OperationReserved")
		w.poison(t, first.Stream())
		if v := w.advance(t, e, second); v.Schedule != job.DueAt || !v.At.After(w.time.Now()) {
			t.Fatalf("verdict %+v, want later", v)
		}
		if len(w.seen.troubled) != 1 || len(w.crm.leads) != 0 {
			t.Fatalf("told %v, leads %v", w.seen.troubled, w.crm.leads)
		}
	})
	t.Run("reservation", func(t *testing.T) {
		w := newWorld(crm.None)
		first, e := w.accept(t, press(1, "buy")), w.engine("a", 0)
		stream := job.OperationStream(operationOf(press(1, "buy")))
		w.poison(t, stream)
		waits(t, w, e, first, stream)
	})
	t.Run("something else in its place", func(t *testing.T) {
		w := newWorld(crm.None)
		first, e := w.accept(t, press(1, "buy")), w.engine("a", 0)
		w.append(t, job.OperationStream(operationOf(press(1, "buy"))), job.DeliveryRepeated{})
		waits(t, w, e, first, "not a reservation")
	})
	t.Run("read fails", func(t *testing.T) {
		w := newWorld(crm.None)
		w.accept(t, press(1, "buy"))
		second, e := w.accept(t, press(2, "buy")), w.engine("a", 0)
		w.run(t, w.engine("b", 0))
		w.append(t, second.Stream(), job.JobRequeued{})
		for n, what := range []string{"the reservation", "its holder"} {
			w.fail("read", append(make([]fault, n+1), cut)...)
			if _, err := e.Advance(t.Context(), second.Stream()); err == nil || w.state(t, second).Phase != job.Pending {
				t.Fatalf("%s could not be read to its end, and yet: %v", what, w.history(second.Stream()))
			}
		}
		if len(w.crm.leads) != 1 {
			t.Fatalf("leads %v", w.crm.leads)
		}
	})
}

func TestBothJobsReserveFirst(t *testing.T) {
	for _, point := range []string{"append OperationReserved", "read"} {
		w := newWorld(crm.None)
		first, second := w.accept(t, press(1, "buy")), w.accept(t, press(2, "buy"))
		w.meanwhile(point, func() { w.advance(t, w.engine("b", 0), second) })
		w.advance(t, w.engine("a", 0), first)
		if len(w.crm.leads) != 1 {
			t.Fatalf("leads %v", w.crm.leads)
		}
		w.run(t, w.engine("a", 0))
		if s := wantPhase(t, w, first, job.Done); s.ConfirmedBy != second.String() {
			t.Fatalf("the first is confirmed by %q", s.ConfirmedBy)
		}
	}
}

func TestARequeuedHolderReservesBeforeEveryAttempt(t *testing.T) {
	w := newWorld(crm.None)
	key, e := w.accept(t, press(1, "buy")), w.engine("a", 0)
	w.fail("create", refused, limited, limited)
	w.advance(t, e, key)
	mustAct(t)(e.Requeue(t.Context(), key, operator))
	w.run(t, e)
	wantPhase(t, w, key, job.Done)
	if got := w.history(job.OperationStream(operationOf(press(1, "buy")))); len(got) != 2 {
		t.Fatalf("%d reservations, want one for each round", len(got))
	}
}

// TestT44_AnAlbumOfFive is one lead, by the member that has the words, wherever that
// stands and though it is four seconds late; without any it does not wait for ever.
func TestT44_AnAlbumOfFive(t *testing.T) {
	for _, words := range []int{0, 2, 4, -1} {
		for _, late := range []int{-1, 0, 2, 4} {
			t.Run(fmt.Sprintf("caption on %d, late is %d", words, late), func(t *testing.T) { albumOfFive(t, words, late) })
		}
	}
}

func albumOfFive(t *testing.T, words, late int) {
	w := newWorld(crm.None)
	keys := make([]job.Key, 5)
	arrives := func(i int) {
		caption := ""
		if i == words {
			caption = "look"
		}
		keys[i] = w.accept(t, parse(fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"chat":{"id":5},"media_group_id":"g","photo":[{"file_id":"f"}],"caption":%q}}`, i, i, caption)))
	}
	for i := range keys {
		if i != late {
			arrives(i)
		}
	}
	w.runUntil(engine.NewAgenda(), 4*time.Second, w.engine("a", 0)) // and is gone
	if late >= 0 {
		arrives(late)
	}
	b := w.run(t, w.engine("b", 0), w.engine("c", 0)).Backlog()
	if len(w.crm.leads) != 1 || b != (engine.Backlog{}) {
		t.Fatalf("leads %v, backlog %+v", w.crm.leads, b)
	}
	if words >= 0 && w.state(t, keys[words]).CRMID == "" {
		t.Errorf("the lead is by another member than number %d, which has the caption", words)
	}
}

func TestTwentyJobsOfOneOperation(t *testing.T) {
	for _, class := range crm.Classes {
		w := newWorld(class)
		var keys []job.Key
		for i := range 20 {
			keys = append(keys, w.accept(t, press(i, "buy")))
		}
		w.fail("create", refused, limited, down, refused, refused)
		engines := []*engine.Engine{w.engine("a", 0), w.engine("b", 0), w.engine("c", 0), w.engine("d", 0)}
		for round := range keys { // each is stopped at another point, in favour of the next
			w.meanwhile([]string{"append OperationReserved", "append JobClaimed", "created"}[round%3], func() {
				_, _ = engines[(round+1)%4].Advance(t.Context(), keys[(round+7)%20].Stream())
			})
			_, _ = engines[round%4].Advance(t.Context(), keys[round].Stream())
		}
		w.run(t, engines...)
		done := 0
		for _, key := range keys {
			if s := w.state(t, key); s.Phase == job.Done {
				done++
			} else if s.Phase != job.DeadLetter {
				t.Errorf("%s: %s is in %s", class, key, s.Phase)
			}
		}
		if len(w.crm.leads) != 1 || done != 17 {
			t.Fatalf("%s: leads %v, %d done", class, w.crm.leads, done)
		}
	}
}

// waits advances a job that depends on something unreadable: it stays due, and
// the trouble is told.
func waits(t *testing.T, w *world, e *engine.Engine, key job.Key, trouble string) {
	t.Helper()
	if v := w.advance(t, e, key); v.Schedule != job.DueAt || !v.At.After(w.time.Now()) {
		t.Fatalf("verdict %+v, want later", v)
	}
	if len(w.seen.troubled) != 1 || !strings.Contains(w.seen.troubled[0], trouble) || len(w.crm.leads) != 0 {
		t.Fatalf("told %v, leads %v", w.seen.troubled, w.crm.leads)
	}
}
