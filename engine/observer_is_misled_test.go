package engine_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// auditor compares what it is told with what is in the log.
type auditor struct {
	t      *testing.T
	w      *world
	told   map[string]int // stream → events
	called []call
}

type call struct {
	stream  string
	phase   job.Phase
	request engine.Request
	took    time.Duration
	outcome string // "ok", or the error's
}

func audited(t *testing.T, w *world) *auditor {
	a := &auditor{t: t, w: w, told: map[string]int{}}
	w.seen.listener = a
	return a
}

// Recorded demands the state and the events as the log has them.
func (a *auditor) Recorded(s job.State, events []job.Event) {
	a.t.Helper()
	stream := s.Key.Stream()
	var folded job.State
	var all []job.Event
	for r := range a.w.store.ReadStream(context.Background(), stream, 0) {
		if uint64(len(all)) == s.EventCount {
			break
		}
		e, err := job.Decode(r.Type, r.Data)
		if err != nil {
			a.t.Fatal(err)
		}
		folded, all = folded.Evolve(e, r.Time), append(all, e)
	}
	if !reflect.DeepEqual(folded, s) {
		a.t.Errorf("told of\n%+v, in the log is\n%+v", s, folded)
	}
	if n := len(all) - len(events); len(events) == 0 || n < 0 || !reflect.DeepEqual(all[n:], events) {
		a.t.Errorf("told of %v, in the log is %v", events, all)
	}
	a.told[stream] += len(events)
}

func (a *auditor) Called(s job.State, r engine.Request, took time.Duration, err *crm.Error) {
	outcome := "ok"
	if err != nil {
		outcome = err.Outcome.String()
	}
	a.called = append(a.called, call{s.Key.Stream(), s.Phase, r, took, outcome})
}

func (a *auditor) Troubled(string, error) {}

// everything demands that each event of each job was told.
func (a *auditor) everything(keys ...job.Key) {
	a.t.Helper()
	for _, key := range keys {
		if history := a.w.history(key.Stream()); a.told[key.Stream()] != len(history) {
			a.t.Errorf("%s: told of %d events, in the log are %v", key, a.told[key.Stream()], history)
		}
	}
}

func TestTheObserverIsToldWhatIsInTheLog(t *testing.T) {
	for _, class := range crm.Classes {
		t.Run(string(class), func(t *testing.T) {
			w := newWorld(class)
			a, e := audited(t, w), w.engine("a", 0)
			first, other, pressed := message(1, "hello"), message(1, "something else"), press(2, "buy")
			key := acceptAs(t, w, first, engine.Stored)
			w.time.advance(time.Second)
			acceptAs(t, w, first, engine.Repeated)
			w.time.advance(time.Second)
			variant := acceptAs(t, w, other, engine.Conflicted)
			acceptAs(t, w, other, engine.Repeated)
			one, two := acceptAs(t, w, pressed, engine.Stored), acceptAs(t, w, press(3, "buy"), engine.Stored)
			w.fail("create", limited, down, lostAfter, refused)
			w.run(t, e)
			for _, key := range []job.Key{key, variant, one, two} {
				if s := w.state(t, key); s.Human {
					mustAct(t)(e.Resolve(t.Context(), key, "", "L-77", operator))
				} else if s.Phase == job.DeadLetter {
					mustAct(t)(e.Requeue(t.Context(), key, operator))
				}
			}
			w.run(t, e)
			doubtful := acceptAs(t, w, message(4, "hello"), engine.Stored)
			if doubted, err := e.Doubt(t.Context(), doubtful.Stream(), operator); !doubted || err != nil {
				t.Fatal(doubted, err)
			}
			a.everything(key, variant, one, two, doubtful)
			if len(a.called) < 4 {
				t.Errorf("told of the calls %v", a.called)
			}
		})
	}
}

func TestTheObserverIsToldOfEachRequest(t *testing.T) {
	w := newWorld(crm.Lookup)
	a, e := audited(t, w), w.engine("a", 0)
	key := w.accept(t, message(1, "hello"))
	for range 3 {
		w.meanwhile("created", func() { w.time.advance(3 * time.Second) })
		w.meanwhile("found", func() { w.time.advance(2 * time.Second) })
	}
	w.fail("create", limited, lostBefore)
	w.fail("find", limited, down)
	w.run(t, e)
	wantPhase(t, w, key, job.Done)
	create := func(took time.Duration, outcome string) call {
		return call{key.Stream(), job.Claimed, engine.Create, took, outcome}
	}
	find := func(took time.Duration, outcome string) call {
		return call{key.Stream(), job.NeedsReconciliation, engine.Find, took, outcome}
	}
	want := []call{
		create(3*time.Second, "not applied"), create(3*time.Second, "unknown"),
		find(0, "not applied"), find(0, "unknown"), find(2*time.Second, "ok"), create(3*time.Second, "ok"),
	}
	if !slices.Equal(a.called, want) {
		t.Errorf("told of\n%v, want\n%v", a.called, want)
	}
}

// TestTheObserverIsToldOfTrouble: each time with the stream and what was the matter.
func TestTheObserverIsToldOfTrouble(t *testing.T) {
	for name, c := range map[string]struct {
		point  string
		faults []fault
		want   []string // each in its line
	}{
		"a delivery cannot be noted": {"append DeliveryRepeated", []fault{down}, []string{"note a delivery"}},
		"a claim cannot be kept":     {"append ClaimRenewed", []fault{down}, []string{"keep a claim"}},
		"an outcome cannot be recorded": {"append LeadConfirmed", []fault{down, down}, []string{
			"record an outcome, try 1", "record an outcome, try 2",
		}},
		"the log is down":   {"append JobClaimed", []fault{down}, []string{"append"}},
		"it cannot be read": {"read", []fault{down}, []string{"read"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			audited(t, w)
			u := message(1, "hello")
			key, e := w.accept(t, u), w.engine("a", 0)
			if strings.HasPrefix(c.point, "append ClaimRenewed") {
				slowly(w, 1, patient.CallTimeout)
			}
			if c.point == "append DeliveryRepeated" {
				w.fail(c.point, c.faults...)
				w.accept(t, u)
			} else {
				w.fail(c.point, c.faults...)
				e.Take(t.Context(), key.Stream())
			}
			if len(w.seen.troubled) != len(c.want) {
				t.Fatalf("told of %q, want %q", w.seen.troubled, c.want)
			}
			for i, said := range w.seen.troubled {
				if !strings.HasPrefix(said, key.Stream()+": ") || !strings.Contains(said, c.want[i]) {
					t.Errorf("told %q, want %q of %s", said, c.want[i], key.Stream())
				}
			}
		})
	}
}

// TestAClaimThatLosesARaceIsNoTrouble: somebody else moved the job; it is looked at
// again.
func TestAClaimThatLosesARaceIsNoTrouble(t *testing.T) {
	w := newWorld(crm.None)
	u := message(1, "hello")
	key := w.accept(t, u)
	slowly(w, 1, patient.CallTimeout)
	w.meanwhile("append ClaimRenewed", func() { w.quiet(func() { w.accept(t, u) }) })
	w.advance(t, w.engine("a", 0), key)
	if wantPhase(t, w, key, job.Pending); len(w.seen.troubled) > 0 {
		t.Errorf("told of %q", w.seen.troubled)
	}
}

// TestTheObserverIsToldWhatAJobWaitsFor: its own stream, and what cannot be read of
// the operation that it shares.
func TestTheObserverIsToldWhatAJobWaitsFor(t *testing.T) {
	for name, want := range map[string]string{
		"reservation": "its operation's reservation: operation-" + operationOf(press(1, "buy")) + " stopped at revision 1 (position 5/5)",
		"holder":      "its operation's holder: update-7-1 stopped at revision 2 (position 5/5)",
	} {
		w := newWorld(crm.None)
		first, e := w.accept(t, press(1, "buy")), w.engine("a", 0)
		die(t, w, "dead", first, "create")
		second := w.accept(t, press(2, "buy"))
		w.time.advance(40 * time.Second)
		poisoned := map[string]string{"reservation": job.OperationStream(operationOf(press(1, "buy"))), "holder": first.Stream()}[name]
		w.poison(t, poisoned)
		v := w.advance(t, e, second)
		if until := w.time.Now().Add(10 * time.Second); v.Schedule != job.DueAt || !v.At.Equal(until) {
			t.Errorf("%s: %+v, want to look again at %s", name, v, until)
		}
		wantHistory(t, w, second, "UpdateReceived")
		said := strings.Join(w.seen.troubled, "\n")
		if !strings.HasPrefix(said, second.Stream()+": "+want) || !strings.Contains(said, `"FromTheFuture.v9" is not known`) {
			t.Errorf("told %q, want %q of %s", said, want, second.Stream())
		}
	}
}
