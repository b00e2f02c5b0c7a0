package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// ErrNoJob says that a stream has no events.
var ErrNoJob = errors.New("no such job")

// StoppedError says that a job's stream has an event that this release cannot
// decode. The job stands still until a release that can is started; the others
// go on.
type StoppedError struct {
	Stream   string
	Revision uint64
	Position eventlog.Position
	Err      error
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("%s stopped at revision %d (position %s): %v", e.Stream, e.Revision, e.Position, e.Err)
}

func (e *StoppedError) Unwrap() error { return e.Err }

// Load folds a job's stream. With a *StoppedError comes the state before the
// event that cannot be decoded; with ErrNoJob the zero State.
func Load(ctx context.Context, log eventlog.Log, stream string) (job.State, error) {
	var s job.State
	for r, err := range log.ReadStream(ctx, stream, 0) {
		if err != nil {
			return s, fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := job.Decode(r.Type, r.Data)
		if err != nil {
			return s, &StoppedError{stream, r.Revision, r.Position, err}
		}
		s = s.Evolve(e, r.Time)
	}
	if s.EventCount == 0 {
		return s, fmt.Errorf("%s: %w", stream, ErrNoJob)
	}
	return s, nil
}

// record appends the events that were decided from s, at s's revision, and
// returns the state after them. A conflict means that the decision is void.
func (e *Engine) record(ctx context.Context, s job.State, events ...job.Event) (job.State, error) {
	stream := s.Key.Stream()
	machine := job.NewMachine(s.Now())
	if err := machine.Allows(events...); err != nil {
		return s, fmt.Errorf("record on %s: %w", stream, err)
	}
	now := e.Clock.Now()
	proposed, err := e.propose(now, events...)
	if err != nil {
		return s, err
	}
	if err := e.append(ctx, stream, eventlog.Exactly(s.Revision()), proposed...); err != nil {
		return s, err
	}
	for _, event := range events {
		s = s.Evolve(event, now)
		if err := machine.Fire(ctx, event); err != nil || machine.Phase() != s.Phase {
			return s, fmt.Errorf("record on %s: the fold is in %s, the machine in %s: %w", stream, s.Phase, machine.Phase(), err)
		}
	}
	e.Observer.Recorded(s, events)
	return s, nil
}

// propose makes log events, each with its id for ever.
func (e *Engine) propose(now time.Time, events ...job.Event) ([]eventlog.Proposed, error) {
	proposed := make([]eventlog.Proposed, len(events))
	for i, event := range events {
		name, data, err := job.Encode(event)
		if err != nil {
			return nil, err
		}
		proposed[i] = eventlog.Proposed{ID: e.IDs.New(), Type: name, Time: now, Data: data}
	}
	return proposed, nil
}

// appendTries is how often an append whose outcome is unknown is repeated, with
// the same ids, before the question is left to a later read of the stream.
const appendTries = 3

func (e *Engine) append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) error {
	var unknown error
	for range appendTries {
		_, err := e.Log.Append(ctx, stream, expected, events...)
		switch {
		case eventlog.IsUnknown(err):
			unknown = err
		case err == nil || unknown == nil || eventlog.IsConflict(err):
			return err
		default:
			return unknown // this try recorded nothing, and an earlier one may have
		}
	}
	return unknown
}
