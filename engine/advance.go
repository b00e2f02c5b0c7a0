package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// Verdict is when a job must be looked at again, as Advance judged it at a
// revision of the job's stream.
type Verdict struct {
	Schedule job.Schedule // job.Unchanged: what Advance recorded tells
	At       time.Time    // for job.DueAt
	Revision uint64
}

// Advance takes the job one step on, if one is due. It may be called for any
// job at any time by any number of processes. With an error comes no verdict:
// what could not be done is due again.
func (e *Engine) Advance(ctx context.Context, stream string) (Verdict, error) {
	s, err := Load(ctx, e.Log, stream)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Revision: s.Revision()}
	var again time.Time
	switch {
	case s.Phase.Final():
		v.Schedule = job.Closed
		return v, nil
	case s.Human:
		v.Schedule = job.Waiting
		return v, nil
	case s.Phase == job.Pending:
		again, err = e.start(ctx, s)
	case s.Phase == job.Claimed:
		again, err = e.recover(ctx, s)
	default:
		again, err = e.reconcile(ctx, s)
	}
	if eventlog.IsConflict(err) { // someone else moved: look at what it is now
		again, err = e.Clock.Now(), nil
	}
	if !again.IsZero() {
		v.Schedule, v.At = job.DueAt, again
	}
	return v, err
}

// start decides about a pending job and, if it asks for an effect, makes it.
func (e *Engine) start(ctx context.Context, s job.State) (time.Time, error) {
	now := e.Clock.Now()
	if now.Before(s.NotBefore) {
		return s.NotBefore, nil
	}
	step, finished := s.NextStep(e.steps.names())
	if finished {
		_, err := e.record(ctx, s, s.Finish(job.Signature{})...)
		return time.Time{}, err
	}
	plan, err := e.plan(ctx, s)
	if IsStopped(err) { // of a newer release, which goes on
		e.Observer.Troubled(s.Key.Stream(), fmt.Errorf("its chat or series: %w", err))
		return e.patience(s, now), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	if ending := job.Start(plan); len(ending) > 0 {
		_, err := e.record(ctx, s, ending...)
		return time.Time{}, err
	}
	if first := s.ReceivedAt.Add(plan.Defer); s.OperationID == "" && now.Before(first) {
		return first, nil
	}
	if until := e.pause.until(); now.Before(until) {
		return until, nil
	}
	if plan.BusinessKey != s.Key.String() {
		may, again, err := e.reserve(ctx, s, plan)
		if !may || err != nil {
			return again, err
		}
	}
	if doubts := s.GoOnDoubting(e.Worker, plan, step, now, e.rulesOf(step)); len(doubts) > 0 {
		_, err := e.record(ctx, s, doubts...)
		return time.Time{}, err
	}
	return time.Time{}, e.attempt(ctx, s, plan, step)
}

// recover takes a claim for lost whose lease is over.
func (e *Engine) recover(ctx context.Context, s job.State) (time.Time, error) {
	now := e.Clock.Now()
	if expires := s.ExpiresAt(e.Policy); now.Before(expires) {
		return expires, nil
	}
	_, err := e.record(ctx, s, s.Expire(now, e.share(), e.rulesOf(s.Step))...)
	return time.Time{}, err
}

// patience is how long to wait before looking again at a job that depends on
// something no event of its own stream will tell: a quarter of its age, within
// the policy's bounds.
func (e *Engine) patience(s job.State, now time.Time) time.Time {
	return now.Add(min(max(now.Sub(s.ReceivedAt)/4, e.Policy.RetryFirst), e.Policy.RetryMax))
}

// IsStopped reports whether err says that a job cannot be decoded.
func IsStopped(err error) bool {
	var stopped *StoppedError
	return errors.As(err, &stopped)
}
