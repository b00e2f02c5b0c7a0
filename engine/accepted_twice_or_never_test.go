package engine_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

func acceptAs(t *testing.T, w *world, u job.Update, want engine.Acceptance) job.Key {
	t.Helper()
	key, how, err := w.engine("ingress", 0).Accept(t.Context(), u)
	if err != nil || how != want {
		t.Fatalf("accepted as %q, %v; want %q", how, err, want)
	}
	switch own, variant := key == u.Key(), key == u.VariantKey(); {
	case how == engine.Stored && !own, how == engine.Conflicted && !variant, !own && !variant:
		t.Fatalf("%s under %s", how, key)
	}
	return key
}

func TestOneFirstWriterAmongTwentyAtOnce(t *testing.T) {
	w := newWorld(crm.None)
	u := message(1, "hello")
	var mu sync.Mutex
	counts := map[engine.Acceptance]int{}
	var all sync.WaitGroup
	for range 20 {
		e := w.engine("ingress", 0)
		all.Go(func() {
			_, how, err := e.Accept(t.Context(), u)
			if err != nil {
				t.Errorf("accept: %v", err)
			}
			mu.Lock()
			counts[how]++
			mu.Unlock()
		})
	}
	all.Wait()
	if counts[engine.Stored] != 1 || counts[engine.Repeated] != 19 {
		t.Fatalf("accepted as %v, want one stored and 19 duplicates", counts)
	}
	history := w.history(u.Key().Stream())
	if len(history) != 20 || history[0] != "UpdateReceived" || slices.Contains(history[1:], "UpdateReceived") {
		t.Fatalf("history %v", history)
	}
}

func TestAcceptsWhenTheAnswerOfTheLogIsLost(t *testing.T) {
	for name, faults := range map[string][]fault{
		"committed":                       {lostAfter},
		"not committed":                   {lostBefore},
		"not committed, then committed":   {lostBefore, lostAfter},
		"committed, and lost once more":   {lostAfter, lostAfter},
		"not committed, and so once more": {lostBefore, lostBefore},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			w.fail("append UpdateReceived", faults...)
			key := acceptAs(t, w, message(1, "hello"), engine.Stored)
			wantHistory(t, w, key, "UpdateReceived")
		})
	}
}

func TestAnUnknownOutcomeIsNotAcknowledged(t *testing.T) {
	for name, last := range map[string]fault{"committed": lostAfter, "not committed": lostBefore} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			w.fail("append UpdateReceived", lostBefore, lostBefore, last)
			u := message(1, "hello")
			if _, _, err := w.engine("ingress", 0).Accept(t.Context(), u); !eventlog.IsUnknown(err) {
				t.Fatalf("error %v, want an unknown outcome", err)
			}
			acceptAs(t, w, u, map[fault]engine.Acceptance{lostAfter: engine.Repeated, lostBefore: engine.Stored}[last])
		})
	}
}

// TestARefusedRepetitionHidesAnUnknownOutcome: the log is down when an append is
// repeated whose outcome is unknown. That the repetition recorded nothing does not
// say that the append did.
func TestARefusedRepetitionHidesAnUnknownOutcome(t *testing.T) {
	for first, want := range map[fault]bool{lostAfter: true, lostBefore: true, down: false} {
		w := newWorld(crm.None)
		w.fail("append UpdateReceived", first, down)
		_, _, err := w.engine("ingress", 0).Accept(t.Context(), message(1, "hello"))
		if err == nil || eventlog.IsUnknown(err) != want {
			t.Errorf("fault %d, then down: %v; unknown is %v, want %v", first, err, eventlog.IsUnknown(err), want)
		}
	}
}

// TestALostRaceIsKnownBehindAnUnknownOutcome: the repetition of an append meets
// another process's event. That is the answer, whatever became of the first try.
func TestALostRaceIsKnownBehindAnUnknownOutcome(t *testing.T) {
	w := newWorld(crm.None)
	u := message(1, "hello")
	w.fail("append UpdateReceived", lostBefore)
	tries := 0
	other := func() {
		if tries++; tries == 2 {
			w.quiet(func() { w.accept(t, u) })
		}
	}
	w.meanwhile("append UpdateReceived", other)
	w.meanwhile("append UpdateReceived", other)
	_, how, err := w.engine("ingress", 0).Accept(t.Context(), u)
	if how != engine.Repeated || err != nil {
		t.Errorf("accepted as %q, error %v, want %q", how, err, engine.Repeated)
	}
}

func TestNothingIsStoredAndNothingAcknowledgedWhileTheLogIsDown(t *testing.T) {
	w := newWorld(crm.None)
	w.fail("append UpdateReceived", down)
	u := message(1, "hello")
	if _, _, err := w.engine("ingress", 0).Accept(t.Context(), u); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Fatalf("error %v, want unavailable", err)
	}
	if got := w.history(u.Key().Stream()); len(got) != 0 {
		t.Fatalf("stored %v", got)
	}
	acceptAs(t, w, u, engine.Stored)
}

func TestAConflictWhoseWinnerCannotBeReadYet(t *testing.T) {
	w := newWorld(crm.None)
	u := message(1, "hello")
	w.accept(t, u)
	t.Run("and then can", func(t *testing.T) {
		w.fail("read", unseen, unseen)
		acceptAs(t, w, u, engine.Repeated)
	})
	t.Run("and never can", func(t *testing.T) {
		w.fail("read", unseen, unseen, unseen)
		if _, _, err := w.engine("ingress", 0).Accept(t.Context(), u); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Fatalf("error %v, want unavailable: the key is taken, but by whom?", err)
		}
	})
	t.Run("and the read fails in the middle", func(t *testing.T) {
		w.fail("read", cut)
		if _, how, err := w.engine("ingress", 0).Accept(t.Context(), u); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Fatalf("accepted as %q, %v, want unavailable", how, err)
		}
	})
}

func TestAnotherUpdateUnderATakenKeyIsLost(t *testing.T) {
	w := newWorld(crm.UniqueCreate)
	first, other := message(1, "hello"), message(1, "something else")
	w.accept(t, first)
	variant := acceptAs(t, w, other, engine.Conflicted)
	if variant != other.VariantKey() {
		t.Fatalf("stored as %s, want %s", variant, other.VariantKey())
	}
	acceptAs(t, w, other, engine.Repeated)
	acceptAs(t, w, other, engine.Repeated)
	wantHistory(t, w, first.Key(), "UpdateReceived", "KeyConflicted")
	wantHistory(t, w, variant, "UpdateReceived", "DeliveryRepeated", "DeliveryRepeated")
	if s := w.state(t, first.Key()); len(s.Variants) != 1 || s.Variants[other.Fingerprint] != variant.String() {
		t.Fatalf("the other update is noted as %v, want %s", s.Variants, variant)
	}
	third := acceptAs(t, w, message(1, "a third"), engine.Conflicted)
	wantHistory(t, w, first.Key(), "UpdateReceived", "KeyConflicted", "KeyConflicted")

	w.run(t, w.engine("a", 0))
	for _, key := range []job.Key{first.Key(), variant, third} {
		if s := wantPhase(t, w, key, job.Done); len(w.crm.effects(s.OperationID)) != 1 {
			t.Fatalf("%s has effects %v", key, w.crm.effects(s.OperationID))
		}
	}
}

// TestAVariantThatMayBeStored is not acknowledged, and not taken for a third update.
func TestAVariantThatMayBeStored(t *testing.T) {
	w := newWorld(crm.None)
	first, other := message(1, "hello"), message(1, "something else")
	w.accept(t, first)
	w.fail("append UpdateReceived", none, lostBefore, lostBefore, lostAfter)
	if key, _, err := w.engine("ingress", 0).Accept(t.Context(), other); !eventlog.IsUnknown(err) || key != other.VariantKey() {
		t.Fatalf("%s: %v, want an unknown outcome", key, err)
	}
	wantHistory(t, w, first.Key(), "UpdateReceived")
	acceptAs(t, w, other, engine.Repeated)
	wantHistory(t, w, first.Key(), "UpdateReceived", "KeyConflicted")
}

func TestACrashBetweenTheVariantAndItsConflictHidesTheConflict(t *testing.T) {
	w := newWorld(crm.None)
	first, other := message(1, "hello"), message(1, "something else")
	w.accept(t, first)
	w.meanwhile("append KeyConflicted", func() { panic("kill -9") })
	func() {
		defer func() { _ = recover() }()
		_, _, _ = w.engine("ingress", 0).Accept(t.Context(), other)
	}()
	wantHistory(t, w, first.Key(), "UpdateReceived")
	acceptAs(t, w, other, engine.Repeated)
	acceptAs(t, w, other, engine.Repeated)
	wantHistory(t, w, first.Key(), "UpdateReceived", "KeyConflicted")
}

func TestAnUpdateUnderAKeyThatCannotBeDecoded(t *testing.T) {
	u := message(1, "hello")
	t.Run("first event", func(t *testing.T) { // it may be this very update
		w := newWorld(crm.None)
		w.poison(t, u.Key().Stream())
		refuse(t, w, u)
		wantHistory(t, w, u.Key(), "FromTheFuture")
		wantHistory(t, w, u.VariantKey())
	})
	t.Run("later event", func(t *testing.T) {
		w := newWorld(crm.None)
		w.accept(t, u)
		w.poison(t, u.Key().Stream())
		acceptAs(t, w, u, engine.Repeated)
		wantHistory(t, w, u.Key(), "UpdateReceived", "FromTheFuture", "DeliveryRepeated")
	})
	t.Run("first event of the variant", func(t *testing.T) {
		w := newWorld(crm.None)
		w.accept(t, message(1, "another"))
		w.poison(t, u.VariantKey().Stream())
		refuse(t, w, u)
		wantHistory(t, w, u.VariantKey(), "FromTheFuture")
	})
}

// refuse delivers an update of which it must not be said that it is stored.
func refuse(t *testing.T, w *world, u job.Update) {
	t.Helper()
	key, how, err := w.engine("ingress", 0).Accept(t.Context(), u)
	if err == nil || how != "" || key != u.Key() && key != u.VariantKey() {
		t.Fatalf("answered %q for %s: %v", how, key, err)
	}
}

func TestDeliveriesFillTheStream(t *testing.T) {
	w := newWorld(crm.None)
	u := message(1, "hello")
	w.accept(t, u)
	for range job.MaxRepeats + 20 {
		acceptAs(t, w, u, engine.Repeated)
	}
	if s := w.state(t, u.Key()); s.Repeats != job.MaxRepeats || s.EventCount != job.MaxRepeats+1 {
		t.Fatalf("%d repeats noted in %d events", s.Repeats, s.EventCount)
	}
}

func TestADeliveryIsRefusedBecauseItCannotBeNoted(t *testing.T) {
	for name, fault := range map[string]fault{"down": down, "lost": lostBefore} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			u, other := message(1, "hello"), message(1, "something else")
			w.accept(t, u)
			w.fail("append DeliveryRepeated", fault, fault, fault)
			acceptAs(t, w, u, engine.Repeated)
			w.fail("append KeyConflicted", fault, fault, fault)
			acceptAs(t, w, other, engine.Conflicted)
			if len(w.seen.troubled) != 2 {
				t.Fatalf("told of %v, want two troubles", w.seen.troubled)
			}
			wantHistory(t, w, u.Key(), "UpdateReceived")
		})
	}
}

func TestATwinOfTheVariantKeyIsTakenForADuplicate(t *testing.T) {
	w := newWorld(crm.None)
	w.accept(t, message(1, "first"))
	u := message(1, "second")
	third := job.Receive(message(1, "third"), u.VariantKey()) // 64 bits of a fingerprint can agree
	w.append(t, u.VariantKey().Stream(), third)
	refuse(t, w, u)
}
