package engine_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// acts are what an operator can do, each on a job of its own.
var acts = map[string]func(*testing.T, *engine.Engine, job.Key) (job.State, error){
	"resolve": func(t *testing.T, e *engine.Engine, k job.Key) (job.State, error) {
		return e.Resolve(t.Context(), k, "", "L-77", operator)
	},
	"resolve absent": func(t *testing.T, e *engine.Engine, k job.Key) (job.State, error) {
		return e.ResolveAbsent(t.Context(), k, "", operator)
	},
	"requeue": func(t *testing.T, e *engine.Engine, k job.Key) (job.State, error) {
		return e.Requeue(t.Context(), k, operator)
	},
	"discard": func(t *testing.T, e *engine.Engine, k job.Key) (job.State, error) {
		return e.Discard(t.Context(), k, operator)
	},
}

// in makes a job that stands in the phase.
func in(t *testing.T, w *world, phase job.Phase) job.Key {
	t.Helper()
	key, e := w.accept(t, message(1, "hello")), w.engine("maker", 0)
	switch phase {
	case job.Claimed:
		die(t, w, "dead", key, "appended JobClaimed")
	case job.NeedsReconciliation:
		w.fail("create", lostAfter)
		w.advance(t, e, key)
		settled(w)
	case job.Done:
		w.advance(t, e, key)
	case job.DeadLetter:
		w.fail("create", refused)
		w.advance(t, e, key)
	}
	wantPhase(t, w, key, phase)
	return key
}

func TestAnActThatDoesNotFitThePhase(t *testing.T) {
	allowed := map[string]map[job.Phase]job.Phase{
		"resolve":        {job.NeedsReconciliation: job.Done},
		"resolve absent": {job.NeedsReconciliation: job.Pending},
		"requeue":        {job.DeadLetter: job.Pending},
		"discard":        {job.Pending: job.DeadLetter, job.NeedsReconciliation: job.DeadLetter},
	}
	for name, act := range acts {
		for _, phase := range job.Phases[1:] {
			t.Run(name+"/"+string(phase), func(t *testing.T) {
				w := newWorld(crm.None)
				key := in(t, w, phase)
				before := len(w.history(key.Stream()))
				s, err := act(t, w.engine("console", 0), key)
				to, ok := allowed[name][phase]
				var refusal *job.NotAllowedError
				switch {
				case ok && (err != nil || s.Phase != to):
					t.Fatalf("%s, %v; want %s", s.Phase, err, to)
				case ok:
					if s.LastOperator != operator.By {
						t.Fatalf("signed by %q", s.LastOperator)
					}
					wantPhase(t, w, key, to)
				case !errors.As(err, &refusal) || len(w.history(key.Stream())) != before:
					t.Fatalf("error %v, want a refusal that changes nothing", err)
				}
			})
		}
	}
}

func TestAnActOnNothing(t *testing.T) {
	w := newWorld(crm.None)
	for name, act := range acts {
		if _, err := act(t, w.engine("console", 0), job.Key{Bot: bot, Update: 404}); !errors.Is(err, engine.ErrNoJob) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnActIsLostToADelivery(t *testing.T) {
	for name, c := range map[string]struct {
		phase job.Phase
		event string
	}{
		"resolve": {job.NeedsReconciliation, "LeadConfirmed"}, "resolve absent": {job.NeedsReconciliation, "LeadAbsent"},
		"requeue": {job.DeadLetter, "JobRequeued"}, "discard": {job.Pending, "JobDeadLettered"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			key := in(t, w, c.phase)
			for range 3 {
				w.meanwhile("append "+c.event, func() { w.quiet(func() { w.accept(t, message(1, "hello")) }) })
			}
			if _, err := acts[name](t, w.engine("console", 0), key); err != nil {
				t.Fatal(err)
			}
			history := w.history(key.Stream())
			if s := w.state(t, key); history[len(history)-1] != c.event || s.Repeats != 3 {
				t.Fatalf("%v", history)
			}
		})
	}
}

// TestAnActIsAppliedToAJobThatMoved: a worker is faster, and the act no longer
// fits.
func TestAnActIsAppliedToAJobThatMoved(t *testing.T) {
	t.Run("discard of a job that is claimed", func(t *testing.T) {
		w := newWorld(crm.None)
		key := in(t, w, job.Pending)
		w.meanwhile("append JobDeadLettered", func() { w.advance(t, w.engine("a", 0), key) })
		var refusal *job.NotAllowedError
		if _, err := w.engine("console", 0).Discard(t.Context(), key, operator); !errors.As(err, &refusal) {
			t.Fatalf("error %v", err)
		}
		wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "LeadConfirmed")
	})
	t.Run("absence, and the receipt came late", func(t *testing.T) {
		w := newWorld(crm.None)
		key := in(t, w, job.NeedsReconciliation)
		w.meanwhile("append LeadAbsent", func() { w.append(t, key.Stream(), job.LeadConfirmed{CRMID: "L-1", How: job.ByLate}) })
		if _, err := w.engine("console", 0).ResolveAbsent(t.Context(), key, "", operator); err == nil {
			t.Fatal("no error")
		}
		wantPhase(t, w, key, job.Done)
	})
	t.Run("absence, and another attempt was made", func(t *testing.T) {
		w := newWorld(crm.Lookup)
		key, a := ambiguous(t, w, lostBefore), w.engine("a", 0)
		settled(w)
		w.meanwhile("append LeadAbsent", func() { // the console is paused, and a worker finds the absence out too
			w.quiet(func() { w.advance(t, a, key) })
			w.fail("create", lostAfter)
			w.advance(t, a, key)
			settled(w)
		})
		if s, err := w.engine("console", 0).ResolveAbsent(t.Context(), key, "", operator); err == nil {
			t.Fatalf("absence is recorded of an attempt that nobody looked for: %s", s.Phase)
		}
		w.run(t, a)
		wantPhase(t, w, key, job.Done)
		if len(w.crm.leads) != 1 {
			t.Fatalf("leads %v", w.crm.leads)
		}
	})
	t.Run("a worker claims a job that was discarded", func(t *testing.T) {
		w := newWorld(crm.None)
		key := in(t, w, job.Pending)
		w.meanwhile("append JobClaimed", func() { mustAct(t)(w.engine("console", 0).Discard(t.Context(), key, operator)) })
		w.advance(t, w.engine("a", 0), key)
		wantHistory(t, w, key, "UpdateReceived", "JobDeadLettered")
		if len(w.seen.called) != 0 {
			t.Fatal("called the CRM")
		}
	})
	t.Run("a race without end", func(t *testing.T) {
		w := newWorld(crm.None)
		key := in(t, w, job.Pending)
		for range 50 {
			w.meanwhile("append JobDeadLettered", func() { w.append(t, key.Stream(), job.DeliveryRepeated{}) })
		}
		if _, err := w.engine("console", 0).Discard(t.Context(), key, operator); err == nil {
			t.Fatal("no error")
		}
	})
}

func TestAbsenceIsBelievedWhileTheRequestCanStillArrive(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lateEffect), w.engine("console", 0)
	until := w.time.Now().Add(w.policy.CallTimeout + settle + w.policy.ClockSkew)
	w.time.advance(until.Sub(w.time.Now()) - time.Nanosecond)
	if _, err := e.ResolveAbsent(t.Context(), key, "", operator); err == nil {
		t.Fatal("no error")
	}
	w.meanwhile("read", func() { settled(w) }) // the console is paused
	if _, err := e.ResolveAbsent(t.Context(), key, "", operator); err == nil {
		t.Fatal("what was told before the settle time is believed after it")
	}
	mustAct(t)(e.ResolveAbsent(t.Context(), key, "", operator))
}

func TestAnUnsignedAct(t *testing.T) {
	w := newWorld(crm.None)
	key := in(t, w, job.Pending)
	for _, by := range []job.Signature{{}, {By: "ann"}, {Reason: "why"}} {
		if _, err := w.engine("console", 0).Discard(t.Context(), key, by); err == nil {
			t.Errorf("%+v: no error", by)
		}
	}
}

// TestAnActThatFailsShowsTheJobAsItIs.
func TestAnActThatFailsShowsTheJobAsItIs(t *testing.T) {
	w := newWorld(crm.None)
	key := in(t, w, job.NeedsReconciliation)
	before, e := w.state(t, key), w.engine("console", 0)
	for name, c := range map[string]struct {
		point  string
		faults []fault
		crmID  string
		by     job.Signature
		want   error
	}{
		"not signed":      {"read", nil, "L-1", job.Signature{}, nil},
		"cannot be read":  {"read", []fault{down}, "L-1", operator, eventlog.ErrUnavailable},
		"log down":        {"append LeadConfirmed", []fault{down}, "L-1", operator, eventlog.ErrUnavailable},
		"outcome unknown": {"append LeadConfirmed", []fault{lostBefore, lostBefore, lostBefore}, "L-1", operator, errWeather},
	} {
		w.fail(c.point, c.faults...)
		s, err := e.Resolve(t.Context(), key, "", c.crmID, c.by)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
		if c.point != "read" && !reflect.DeepEqual(s, before) || c.faults == nil && s.Key != key {
			t.Errorf("%s: shows %+v", name, s)
		}
	}
	mustAct(t)(e.Resolve(t.Context(), key, "", "L-1", operator))
	w.poison(t, key.Stream())
	if s, err := e.Requeue(t.Context(), key, operator); !engine.IsStopped(err) || s.Phase != job.Done || s.Key != key {
		t.Errorf("unreadable: %v, shows %+v", err, s)
	}
}
