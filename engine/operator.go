package engine

import (
	"context"
	"fmt"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// Resolve records an operator's word that the job's lead exists.
func (e *Engine) Resolve(ctx context.Context, key job.Key, crmID string, by job.Signature) (job.State, error) {
	return e.operate(ctx, key, func(s job.State) ([]job.Event, error) { return s.Resolve(crmID, by) })
}

// ResolveAbsent records an operator's word that no lead was made. It is about the
// moment in which it is given: what it proves does not grow while the console is
// paused, or while it loses races to workers that make another attempt.
func (e *Engine) ResolveAbsent(ctx context.Context, key job.Key, by job.Signature) (job.State, error) {
	told := e.Clock.Now()
	return e.operate(ctx, key, func(s job.State) ([]job.Event, error) {
		return s.ResolveAbsent(told, by, e.rules)
	})
}

// Requeue gives a dead letter another round of attempts.
func (e *Engine) Requeue(ctx context.Context, key job.Key, by job.Signature) (job.State, error) {
	return e.operate(ctx, key, func(s job.State) ([]job.Event, error) { return s.Requeue(by) })
}

// Discard gives a job up.
func (e *Engine) Discard(ctx context.Context, key job.Key, by job.Signature) (job.State, error) {
	return e.operate(ctx, key, func(s job.State) ([]job.Event, error) { return s.Discard(by) })
}

// operatorTries bounds the race of an operator with the workers for a revision.
const operatorTries = 10

// operate is load → decide → append for a person's act.
func (e *Engine) operate(ctx context.Context, key job.Key, decide func(job.State) ([]job.Event, error)) (job.State, error) {
	var s job.State
	for range operatorTries {
		var err error
		if s, err = Load(ctx, e.Log, key.Stream()); err != nil {
			return s, err
		}
		events, err := decide(s)
		if err != nil {
			return s, err
		}
		if s, err = e.record(ctx, s, events...); !eventlog.IsConflict(err) {
			return s, err
		}
	}
	return s, fmt.Errorf("%s changes too fast: try again", key)
}
