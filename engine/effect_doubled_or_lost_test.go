package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// fate is what becomes of a job whose first request met a fault.
type fate struct {
	next     string // the event that follows the claim
	phase    job.Phase
	requests int // that reached the CRM
	effects  int
	human    bool
}

func fateOf(class crm.Class, f fault) fate {
	repeatable := class.Repeatable()
	switch f {
	case none:
		return fate{"LeadConfirmed", job.Done, 1, 1, false}
	case down:
		return fate{"ClaimReleased", job.Done, 1, 1, false}
	case limited:
		return fate{"AttemptNotApplied", job.Done, 2, 1, false}
	case refused:
		return fate{"JobDeadLettered", job.DeadLetter, 1, 0, false}
	}
	made := map[fault]int{lostAfter: 1, lateEffect: 1, withoutID: 1}[f]
	switch {
	case repeatable:
		return fate{"OutcomeUnknown", job.Done, 2, 1, false}
	case class == crm.Lookup:
		return fate{"ReconciliationNeeded", job.Done, 2 - made, 1, false}
	default:
		return fate{"ReconciliationNeeded", job.NeedsReconciliation, 1, made, true}
	}
}

func TestEveryClassAndEveryOutcome(t *testing.T) {
	for _, class := range crm.Classes {
		for name, f := range map[string]fault{
			"ok": none, "not sent": down, "429": limited, "refused": refused, "lost before": lostBefore,
			"lost after": lostAfter, "late": lateEffect, "without id": withoutID, "unclassified": unspecified,
		} {
			t.Run(string(class)+"/"+name, func(t *testing.T) {
				w, want := newWorld(class), fateOf(class, f)
				key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
				w.fail("create", f)
				w.advance(t, e, key)
				wantHistory(t, w, key, "UpdateReceived", "JobClaimed", want.next)
				w.run(t, e, w.engine("b", 0))
				s := wantPhase(t, w, key, want.phase)
				w.time.advance(time.Hour)
				effects := w.crm.effects(job.OperationID(bot, job.CreateLead, key.String()))
				if len(effects) != want.effects || w.crm.requests[s.OperationID] != want.requests || s.Human != want.human {
					t.Fatalf("%d requests, effects %v, human %t; want %+v: %v",
						w.crm.requests[s.OperationID], effects, s.Human, want, w.history(key.Stream()))
				}
				if s.Phase == job.Done && s.CRMID != effects[0] {
					t.Fatalf("done with %s, but the lead is %s", s.CRMID, effects[0])
				}
			})
		}
	}
}

func TestAJobIsTakenBeforeItsTime(t *testing.T) {
	w := newWorld(crm.None)
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	w.fail("create", limited)
	w.advance(t, e, key)
	due := w.state(t, key).NotBefore
	for w.time.Now().Before(due) {
		if v := w.advance(t, w.engine("b", 0), key); v.Schedule != job.DueAt || !v.At.Equal(due) {
			t.Fatalf("verdict %+v, want due at %s", v, due)
		}
		wantPhase(t, w, key, job.Pending)
		w.time.advance(time.Second)
	}
	w.advance(t, w.engine("b", 0), key)
	wantPhase(t, w, key, job.Done)
}

func TestASuccessWithoutAnIDCountsAsOne(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.fail("create", withoutID)
	w.advance(t, w.engine("a", 0), key)
	wantPhase(t, w, key, job.NeedsReconciliation)
	if want := []string{"create: unknown"}; !slices.Equal(w.seen.called, want) {
		t.Fatalf("the observer was told %v, want %v", w.seen.called, want)
	}
}

func TestHowALeadIsKnown(t *testing.T) {
	for class, how := range map[crm.Class]job.Confirmation{
		crm.IdempotencyKey: job.ByCreate, crm.Upsert: job.ByUpsert, crm.UniqueCreate: job.ByExists, crm.Lookup: job.ByLookup,
	} {
		w := newWorld(class)
		key := w.accept(t, message(1, "hello"))
		w.fail("create", lostAfter)
		w.run(t, w.engine("a", 0))
		if s := wantPhase(t, w, key, job.Done); s.How != how {
			t.Errorf("%s: known by %s, want %s", class, s.How, how)
		}
	}
}

func TestTheAttemptsAreSpent(t *testing.T) {
	for name, c := range map[string]struct {
		class  crm.Class
		faults []fault
		phase  job.Phase
	}{
		"none of them ambiguous":                 {crm.UniqueCreate, []fault{limited, limited, limited}, job.DeadLetter},
		"not sent does not count":                {crm.None, []fault{down, down, down, down, down}, job.Done},
		"all of them ambiguous, found by no one": {crm.UniqueCreate, []fault{lostBefore, lostBefore, lostBefore}, job.NeedsReconciliation},
		"looked up after each":                   {crm.Lookup, []fault{lostBefore, lostBefore, lostBefore}, job.DeadLetter},
		"looked up, the last one had its effect": {crm.Lookup, []fault{lostBefore, lostBefore, lateEffect}, job.Done},
		"refused after an ambiguous one":         {crm.Upsert, []fault{lostAfter, refused}, job.NeedsReconciliation},
		"limited after an ambiguous one":         {crm.Upsert, []fault{lostAfter, limited, limited}, job.NeedsReconciliation},
		"refused after a lookup said: none":      {crm.Lookup, []fault{lostBefore, refused}, job.DeadLetter},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.class)
			key := w.accept(t, message(1, "hello"))
			w.fail("create", c.faults...)
			w.run(t, w.engine("a", 0))
			s := wantPhase(t, w, key, c.phase)
			if n := len(w.crm.effects(s.OperationID)); n > 1 || (n == 1) != (c.phase == job.Done || c.class == crm.Upsert) {
				t.Fatalf("%d effects in %s: %v", n, c.phase, w.history(key.Stream()))
			}
		})
	}
}

func TestAnUpdateWithoutEffectOrWithoutSense(t *testing.T) {
	w := newWorld(crm.None)
	poll := w.accept(t, parse(`{"update_id":1,"poll":{"id":"1"}}`))
	nonsense := w.accept(t, parse(`{"update_id":2,"message":"a string"}`))
	w.run(t, w.engine("a", 0))
	wantHistory(t, w, poll, "UpdateReceived", "NoEffectNeeded")
	wantHistory(t, w, nonsense, "UpdateReceived", "JobDeadLettered")
	if len(w.seen.called) != 0 {
		t.Fatalf("the CRM was called: %v", w.seen.called)
	}
}

func TestADeliveryBetweenTwoStepsStopsTheJob(t *testing.T) {
	for _, point := range []string{"append JobClaimed", "create", "created", "append LeadConfirmed", "appended JobClaimed"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(crm.None)
			u := message(1, "hello")
			key, e := w.accept(t, u), w.engine("a", 0)
			w.meanwhile(point, func() { w.quiet(func() { w.accept(t, u) }) })
			v := w.advance(t, e, key)
			if point == "append JobClaimed" {
				if v.Schedule != job.DueAt || v.At.After(w.time.Now()) {
					t.Fatalf("verdict %+v, want due now", v)
				}
				w.advance(t, e, key)
			}
			s := wantPhase(t, w, key, job.Done)
			if s.How != job.ByCreate || s.Repeats != 1 || len(w.crm.effects(s.OperationID)) != 1 {
				t.Fatalf("%+v", s)
			}
		})
	}
}

func TestTwoWorkersClaimOneJob(t *testing.T) {
	w := newWorld(crm.None)
	key, a, b := w.accept(t, message(1, "hello")), w.engine("a", 0), w.engine("b", 0)
	w.meanwhile("append JobClaimed", func() { w.advance(t, b, key) })
	w.advance(t, a, key)
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "LeadConfirmed")
	if n := w.crm.requests[w.state(t, key).OperationID]; n != 1 {
		t.Fatalf("%d requests", n)
	}
}

func TestAClaimOfUnknownOutcomeIsNotActedUpon(t *testing.T) {
	for _, f := range []fault{lostBefore, lostAfter} {
		w := newWorld(crm.None)
		key := w.accept(t, message(1, "hello"))
		w.fail("append JobClaimed", f, f, f)
		if _, err := w.engine("a", 0).Advance(t.Context(), key.Stream()); err == nil {
			t.Fatal("no error")
		}
		if len(w.seen.called) != 0 {
			t.Fatalf("called without a claim: %v", w.seen.called)
		}
	}
}

func TestTheOperationIsAnotherOneAfterARelease(t *testing.T) {
	w := newWorld(crm.Lookup)
	key := w.accept(t, message(1, "hello"))
	w.fail("create", limited, lostBefore)
	w.advance(t, w.engine("a", 0), key)
	before := w.state(t, key).OperationID
	w.plan = func(k job.Key, u job.Update) job.Plan {
		p := planPressesToo(k, u)
		p.BusinessKey, p.Effect, p.Action = "telegram/7/another", false, "another_action"
		return p
	}
	w.run(t, w.engine("b", 0))
	s := wantPhase(t, w, key, job.Done)
	if s.OperationID != before || before != job.OperationID(bot, job.CreateLead, key.String()) || len(w.crm.effects(before)) != 1 {
		t.Fatalf("operation %s before, %s after, effects %v", before, s.OperationID, w.crm.effects(before))
	}
}

// TestAJobThatWasClaimedIsDeferredByALaterPlan: what is deferred is the first claim.
func TestAJobThatWasClaimedIsDeferredByALaterPlan(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	w.fail("create", down)
	w.advance(t, w.engine("a", 0), key)
	w.plan = func(k job.Key, u job.Update) job.Plan {
		p := planPressesToo(k, u)
		p.Defer = time.Hour
		return p
	}
	w.time.advance(time.Minute)
	w.advance(t, w.engine("b", 0), key)
	wantPhase(t, w, key, job.Done)
	second := w.accept(t, message(2, "hello"))
	if v := w.advance(t, w.engine("b", 0), second); !v.At.Equal(w.time.Now().Add(time.Hour)) {
		t.Errorf("a new job is due at %s", v.At)
	}
}

func TestRetryAfterHoldsOneJobOnly(t *testing.T) {
	w := newWorld(crm.None)
	w.crm.retryAfter = 40 * time.Second
	first, second, e := w.accept(t, message(1, "a")), w.accept(t, message(2, "b")), w.engine("a", 0)
	w.fail("create", limited)
	w.advance(t, e, first)
	until := w.time.Now().Add(w.crm.retryAfter)
	if s := w.state(t, first); s.NotBefore.Before(until) {
		t.Fatalf("tried again at %s, before %s", s.NotBefore, until)
	}
	v := w.advance(t, e, second)
	if !v.At.Equal(until) || v.Schedule != job.DueAt {
		t.Fatalf("verdict %+v, want due at %s", v, until)
	}
	wantHistory(t, w, second, "UpdateReceived")
	w.time.advance(w.crm.retryAfter)
	w.advance(t, e, second)
	wantPhase(t, w, second, job.Done)
}

func TestAShorterRetryAfterEndsALongerOne(t *testing.T) {
	w := newWorld(crm.None)
	first, second, third := w.accept(t, message(1, "a")), w.accept(t, message(2, "b")), w.accept(t, message(3, "c"))
	e := w.engine("a", 0)
	w.fail("create", limited, limited)
	w.meanwhile("create", func() { // the second is called while the first is under way
		w.crm.retryAfter = 50 * time.Second
		w.advance(t, e, second)
		w.crm.retryAfter = time.Second
	})
	w.advance(t, e, first)
	if v, until := w.advance(t, e, third), w.time.Now().Add(50*time.Second); !v.At.Equal(until) {
		t.Fatalf("due at %s, want %s", v.At, until)
	}
}

func TestAYearOfRetryAfterIsObeyedWithinTheCap(t *testing.T) {
	w := newWorld(crm.Lookup)
	w.crm.retryAfter = 365 * 24 * time.Hour
	first, second, e := w.accept(t, message(1, "a")), w.accept(t, message(2, "b")), w.engine("a", 0)
	w.fail("create", limited)
	w.advance(t, e, first)
	v := w.advance(t, e, second)
	until := w.time.Now().Add(w.policy.RetryMax)
	if s := w.state(t, first); !s.NotBefore.Equal(until) || !v.At.Equal(until) {
		t.Fatalf("the job waits until %s and the connector until %s, want %s", s.NotBefore, v.At, until)
	}
}

func TestShutDownDuringTheCallForgetsTheOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		f    fault
		last string
	}{"receipt": {none, "LeadConfirmed"}, "429": {limited, "AttemptNotApplied"}, "unknown": {lostAfter, "ReconciliationNeeded"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(crm.None)
			key := w.accept(t, message(1, "hello"))
			ctx, stop := context.WithCancel(t.Context())
			w.meanwhile("created", stop)
			w.fail("create", c.f)
			w.fail("append "+c.last, down, down, lostBefore)
			if _, err := w.engine("a", 0).Advance(ctx, key.Stream()); err != nil {
				t.Fatal(err)
			}
			wantHistory(t, w, key, "UpdateReceived", "JobClaimed", c.last)
		})
	}
}

func TestShutDownBeforeTheCallLeavesAClaim(t *testing.T) {
	w := newWorld(crm.None)
	key := w.accept(t, message(1, "hello"))
	ctx, stop := context.WithCancel(t.Context())
	w.meanwhile("appended JobClaimed", stop)
	if _, err := w.engine("a", 0).Advance(ctx, key.Stream()); err != nil {
		t.Fatal(err)
	}
	wantHistory(t, w, key, "UpdateReceived", "JobClaimed", "ClaimReleased")
}
