package restcrm_test

import (
	"slices"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// TestT60_AppliedResponseCut: one lead in every class that can find out, a
// human and never a second request in the one that cannot.
func TestT60_AppliedResponseCut(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		w := newWorld(t, setup{class: class})
		w.script([]sim.Fault{sim.CutAfter})
		key, _ := w.deliver(1)
		w.run()
		w.wantOne(class, key)
		switch class {
		case crm.IdempotencyKey:
			w.wantCounts(key, 2, 0)
			w.wantDone(key, job.ByExists) // the CRM says that it repeats an answer
		case crm.Upsert:
			w.wantCounts(key, 2, 0)
			w.wantDone(key, job.ByUpsert)
		case crm.UniqueCreate:
			w.wantCounts(key, 2, 0)
			w.wantDone(key, job.ByExists)
		case crm.Lookup:
			w.wantCounts(key, 1, 1)
			w.wantDone(key, job.ByLookup)
		case crm.None:
			w.wantCounts(key, 1, 0)
			w.deliver(1)
			w.pass(365 * 24 * time.Hour)
			w.run()
			w.wantHuman(key)
		}
	})
}

// TestT61_TimeoutAppliedLater: the CRM applies a create 20 s after we gave up
// waiting for it. A lookup before the settle time is not even asked for.
func TestT61_TimeoutAppliedLater(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		hasty := patient
		hasty.CallTimeout = 150 * time.Millisecond // real time
		w := newWorld(t, setup{class: class, policy: hasty})
		w.script([]sim.Fault{sim.HangThenApply}, sim.LookupLags)
		key, _ := w.deliver(1)
		w.advance(key)
		s := w.state(key)
		if s.LastError != "time-out" || !s.Ambiguous {
			t.Fatalf("after the time-out: %s, %q, ambiguous %t", s.Phase, s.LastError, s.Ambiguous)
		}
		if class == crm.Lookup || class == crm.None {
			wantNoAbsenceYet(t, w, key)
		}
		w.run()
		w.pass(time.Minute)
		if n := len(w.effects(key)); n != 1 {
			t.Fatalf("%d leads", n)
		}
		w.wantOne(class, key)
		if class == crm.Lookup {
			w.wantCounts(key, 1, 1)
		}
	})
}

// wantNoAbsenceYet: neither a lookup nor an operator can say "no lead" while the
// request can still have its effect.
func wantNoAbsenceYet(t *testing.T, w *world, key job.Key) {
	t.Helper()
	s := w.state(key)
	settled := s.LastDeadline.Add(crmsimSettle + patient.ClockSkew)
	if !s.Human && !s.NotBefore.Equal(settled) {
		t.Fatalf("looked up at %s, settled at %s", s.NotBefore, settled)
	}
	w.passTo(settled.Add(-time.Nanosecond))
	w.advance(key)
	w.wantCounts(key, 1, 0)
	if _, err := w.engine.ResolveAbsent(t.Context(), key, "", job.Signature{By: "ann", Reason: "not in the CRM"}); err == nil {
		t.Fatal("an operator's \"no lead\" was taken before the settle time")
	}
	if slices.Contains(w.events(key), "LeadAbsent") {
		t.Fatalf("absence was believed too early: %v", w.events(key))
	}
}

// TestT61_LookupFailsThenFinds: a lookup that cannot be read is no lookup.
func TestT61_LookupFailsThenFinds(t *testing.T) {
	w := newWorld(t, setup{class: crm.Lookup})
	w.script([]sim.Fault{sim.CutAfter}, sim.ErrorBefore, sim.OKHTMLBefore, sim.CutBefore, sim.LoginRedirect)
	key, _ := w.deliver(1)
	w.run()
	w.wantDone(key, job.ByLookup)
	w.wantCounts(key, 1, 5)
}

// TestT61_NeverApplied: an empty lookup after the settle time allows one new
// attempt.
func TestT61_NeverApplied(t *testing.T) {
	w := newWorld(t, setup{class: crm.Lookup})
	w.script([]sim.Fault{sim.CutBefore})
	key, _ := w.deliver(1)
	w.run()
	w.wantDone(key, job.ByCreate)
	w.wantCounts(key, 2, 1)
	if !slices.Contains(w.events(key), "LeadAbsent") {
		t.Fatalf("sent again without proof of absence: %v", w.events(key))
	}
}
