package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// TestATurnSaysWhatBecameOfTheJob, and the agenda makes of it what it says.
func TestATurnSaysWhatBecameOfTheJob(t *testing.T) {
	for name, c := range map[string]struct {
		before   func(*testing.T, *world, job.Key)
		want     func(w *world) engine.Turn // but for its stream
		backlog  engine.Backlog
		due      time.Duration // if it is open
		troubles int
	}{
		"done": {
			func(*testing.T, *world, job.Key) {},
			func(*world) engine.Turn { return engine.Turn{} },
			engine.Backlog{}, 0, 0,
		},
		"not due": {
			func(t *testing.T, w *world, key job.Key) { die(t, w, "dead", key, "create") },
			func(w *world) engine.Turn {
				at := w.time.Now().Add(patient.Lease + patient.ClockSkew)
				return engine.Turn{Verdict: engine.Verdict{Schedule: job.DueAt, At: at, Revision: 1}}
			},
			engine.Backlog{Open: 1}, patient.Lease + patient.ClockSkew, 0,
		},
		"stopped": {
			func(t *testing.T, w *world, key job.Key) { w.poison(t, key.Stream()) },
			func(*world) engine.Turn { return engine.Turn{Stopped: true} },
			engine.Backlog{Stopped: 1}, 0, 1,
		},
		"in trouble": {
			func(_ *testing.T, w *world, _ job.Key) { w.fail("append JobClaimed", down) },
			func(w *world) engine.Turn {
				at := w.time.Now().Add(engine.TroublePause)
				return engine.Turn{Verdict: engine.Verdict{Schedule: job.DueAt, At: at, Revision: 1<<64 - 1}}
			},
			engine.Backlog{Open: 1}, engine.TroublePause, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := newWorld(crm.None), engine.NewAgenda()
			key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
			sweep(t, w, a)
			if got := handedOut(a); !slices.Equal(got, []string{key.Stream()}) {
				t.Fatalf("handed out %v", got)
			}
			c.before(t, w, key)
			want := c.want(w)
			want.Stream = key.Stream()
			got := e.Take(t.Context(), key.Stream())
			if got != want || len(w.seen.troubled) != c.troubles {
				t.Fatalf("the turn is %+v, told of %q; want %+v", got, w.seen.troubled, want)
			}
			if !got.Stopped {
				sweep(t, w, a)
			}
			a.Conclude(got)
			if b := a.Backlog(); b != c.backlog {
				t.Errorf("backlog %+v, want %+v", b, c.backlog)
			}
			if at, ok := a.NextDue(); ok != (c.backlog.Open > 0) || ok && !at.Equal(w.time.Now().Add(c.due)) {
				t.Errorf("due at %s (%t), want in %s", at, ok, c.due)
			}
		})
	}
}
