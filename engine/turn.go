package engine

import (
	"context"
	"math"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// Turn is what became of one job in a worker's hands.
type Turn struct {
	Stream  string
	Verdict Verdict
	Stopped bool // its stream cannot be decoded
}

// TroublePause is the wait before a step that failed is tried again.
const TroublePause = time.Second

// Take advances the job. It tells the observer what could not be done, which is
// due again a moment later.
func (e *Engine) Take(ctx context.Context, stream string) Turn {
	verdict, err := e.Advance(ctx, stream)
	if err == nil {
		return Turn{Stream: stream, Verdict: verdict}
	}
	e.Observer.Troubled(stream, err)
	if IsStopped(err) {
		return Turn{Stream: stream, Stopped: true}
	}
	return e.Failed(stream)
}

// Failed is the turn of a job that could not be taken.
func (e *Engine) Failed(stream string) Turn {
	again := e.Clock.Now().Add(TroublePause)
	return Turn{Stream: stream, Verdict: Verdict{Schedule: job.DueAt, At: again, Revision: math.MaxUint64}}
}

// Conclude takes a job back after its turn. Call Sweep before, so that what the
// turn recorded is known.
func (a *Agenda) Conclude(t Turn) {
	if t.Stopped {
		a.Stop(t.Stream)
		return
	}
	a.Done(t.Stream, t.Verdict)
}
