package engine

import (
	"context"
	"fmt"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// Resolve records an operator's word that the job's lead, or what another step of it
// makes, exists.
func (e *Engine) Resolve(ctx context.Context, key job.Key, step, crmID string, by job.Signature) (job.State, error) {
	return e.operate(ctx, key, func(s job.State) ([]job.Event, error) { return s.Resolve(step, crmID, by) })
}

// ResolveAbsent records an operator's word that the step made nothing; without a step,
// that there is no lead. It is about the moment in which it is given: what it proves does
// not grow while the console is paused, or while it loses races to workers that make
// another attempt.
func (e *Engine) ResolveAbsent(ctx context.Context, key job.Key, step string, by job.Signature) (job.State, error) {
	told := e.Clock.Now()
	return e.operate(ctx, key, func(s job.State) ([]job.Event, error) {
		return s.ResolveAbsent(step, told, by, e.rulesOf(s.Step))
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

// Doubt sends an open job to reconciliation before any request: see job.Doubt.
// Jobs that ask for no effect, wait for another job or are final are left as they
// are; then doubted is false.
func (e *Engine) Doubt(ctx context.Context, stream string, by job.Signature) (doubted bool, err error) {
	for range operatorTries {
		s, err := Load(ctx, e.Log, stream)
		if err != nil || s.Phase.Final() {
			return false, err
		}
		plan, err := e.plan(ctx, s)
		if err != nil && !eventlog.IsConflict(err) {
			return false, err
		}
		step, may, finished := s.Step, s.Phase != job.Pending, false
		if !may {
			step, finished = s.NextStep(e.steps.names())
		}
		if !may && !finished && len(job.Start(plan)) == 0 {
			if may = plan.BusinessKey == s.Key.String(); !may {
				may, _, err = e.reserve(ctx, s, plan)
			}
		}
		if may && err == nil {
			var events []job.Event
			if events, err = s.Doubt(plan, step, e.Clock.Now(), by, e.rulesOf(step)); err == nil {
				_, err = e.record(ctx, s, events...)
			}
		}
		if !eventlog.IsConflict(err) {
			return may && err == nil, err
		}
	}
	return false, fmt.Errorf("%s changes too fast: stop `leadonce serve` first", stream)
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
