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

// ResolveAbsent records an operator's word that no lead was made. The word is
// about this moment and the attempts made so far: it proves nothing when it was
// given before the requests had settled, and is void once another one was made.
func (e *Engine) ResolveAbsent(ctx context.Context, key job.Key, by job.Signature) (job.State, error) {
	told, attempts := e.Clock.Now(), -1
	return e.operate(ctx, key, func(s job.State) ([]job.Event, error) {
		if attempts >= 0 && s.Attempts != attempts {
			return nil, fmt.Errorf("%s was tried again meanwhile: look into the CRM again", key)
		}
		attempts = s.Attempts
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
