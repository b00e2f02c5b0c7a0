package restcrm_test

import (
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// TestT66_RetryAfter: a 429 is obeyed within the policy's cap, and for the whole
// connector: no job is claimed before it is over.
func TestT66_RetryAfter(t *testing.T) {
	for _, c := range []struct {
		fault sim.Fault
		rest  time.Duration // for the connector; 0 when none is asked for
	}{
		{sim.RateLimited, 17 * time.Second},
		{sim.RateLimitedDate, 17 * time.Second},
		{sim.RateLimitedAbsent, 0},
		{sim.RateLimitedPast, 0},
		{sim.RateLimitedFar, patient.RetryMax},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			forEveryClass(t, func(t *testing.T, class crm.Class) {
				w := newWorld(t, setup{class: class, config: sim.Config{RetryAfter: 17 * time.Second}})
				w.script([]sim.Fault{c.fault})
				first, _ := w.deliver(1)
				second, _ := w.deliver(2)
				began := w.clock.Now()
				w.advance(first)
				if s := w.state(first); s.Phase != job.Pending || s.Ambiguous || s.NotBefore.Before(began.Add(c.rest)) {
					t.Fatalf("%s, ambiguous %t, due after %s", s.Phase, s.Ambiguous, s.NotBefore.Sub(began))
				}
				if c.rest > 0 {
					w.wantRest(second, began.Add(c.rest))
				}
				w.run()
				for _, key := range []job.Key{first, second} {
					w.wantDone(key, job.ByCreate, job.ByUpsert)
				}
				w.wantCounts(first, 2, 0)
				w.wantCounts(second, 1, 0)
				for _, e := range w.crm.Effects() {
					if e.At.Before(began.Add(c.rest)) {
						t.Errorf("a lead was made %s after the 429", e.At.Sub(began))
					}
				}
			})
		})
	}
}

// wantRest: the job is not claimed before the time.
func (w *world) wantRest(key job.Key, until time.Time) {
	w.t.Helper()
	for _, at := range []time.Time{w.clock.Now(), until.Add(-time.Nanosecond)} {
		w.passTo(at)
		if v := w.advance(key); v.Schedule != job.DueAt || !v.At.Equal(until) {
			w.t.Fatalf("verdict %+v, want due at %s", v, until)
		}
		if got := w.events(key); len(got) != 1 || w.creates(key) != 0 {
			w.t.Fatalf("events %v and %d creates during the rest", got, w.creates(key))
		}
	}
}

// TestT66_LookupIsAskedToRest: a 429 to a lookup counts for creates too.
func TestT66_LookupIsAskedToRest(t *testing.T) {
	w := newWorld(t, setup{class: crm.Lookup, config: sim.Config{RetryAfter: 17 * time.Second}})
	w.script([]sim.Fault{sim.CutAfter}, sim.RateLimited)
	first, _ := w.deliver(1)
	w.runUntil(func() bool { return w.finds(first) == 1 })
	second, _ := w.deliver(2)
	w.wantRest(second, w.clock.Now().Add(17*time.Second))
	w.run()
	w.wantDone(first, job.ByLookup)
	w.wantDone(second, job.ByCreate)
}
