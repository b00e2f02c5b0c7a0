package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// Acceptance is how a delivery's update came to be in the log.
type Acceptance string

// The acceptances. Each means: the update is stored, answer 2xx.
const (
	Stored     Acceptance = "stored"     // by this delivery
	Repeated   Acceptance = "duplicate"  // by an earlier delivery
	Conflicted Acceptance = "conflicted" // under a variant key: another update has its id
)

// Accept stores the update, or proves that it is stored. Its error means that
// neither is certain: answer non-2xx, and the update is delivered again.
func (e *Engine) Accept(ctx context.Context, u job.Update) (job.Key, Acceptance, error) {
	key := u.Key()
	if m, migrates := u.Migration(); migrates {
		if err := e.migrate(ctx, m); err != nil {
			// It is recorded before the update is, so one that is stored has it.
			if stored, unread := e.Stored(ctx, u); unread != nil || !stored {
				return key, "", err
			}
		}
	}
	holder, stored, err := e.store(ctx, u, key)
	if err != nil {
		return key, "", err
	}
	if stored {
		return key, Stored, nil
	}
	if holder.Fingerprint != u.Fingerprint {
		return e.acceptVariant(ctx, u, holder)
	}
	e.note(ctx, holder, holder.Repeat())
	return key, Repeated, nil
}

// acceptVariant stores an update whose id belongs to another one, holder.
func (e *Engine) acceptVariant(ctx context.Context, u job.Update, holder job.State) (job.Key, Acceptance, error) {
	key := u.VariantKey()
	twin, stored, err := e.store(ctx, u, key)
	if err != nil {
		return key, "", err
	}
	if !stored && twin.Fingerprint != u.Fingerprint {
		return key, "", fmt.Errorf("%s is taken by a third update: %w", key.Stream(), eventlog.ErrUnavailable)
	}
	e.note(ctx, holder, holder.Conflict(u, key))
	if stored {
		return key, Conflicted, nil
	}
	e.note(ctx, twin, twin.Repeat())
	return key, Repeated, nil
}

// store makes the update the first event of the key's stream, or returns the
// job that is there. One whose first event cannot be decoded is an error: it may
// be this very update, written by a newer release, or any other.
func (e *Engine) store(ctx context.Context, u job.Update, key job.Key) (holder job.State, stored bool, err error) {
	received := job.Receive(u, key)
	now := e.Clock.Now()
	proposed, err := e.propose(now, received)
	if err != nil {
		return job.State{}, false, err
	}
	for range appendTries {
		err = e.append(ctx, key.Stream(), eventlog.NoStream, proposed...)
		if err == nil {
			e.Observer.Recorded(job.State{}.Evolve(received, now), []job.Event{received})
			return job.State{}, true, nil
		}
		if !eventlog.IsConflict(err) {
			return job.State{}, false, err
		}
		holder, err = Load(ctx, e.Log, key.Stream())
		var stopped *StoppedError
		switch {
		case errors.Is(err, ErrNoJob):
			continue // the winner is not to be read yet: write again
		case errors.As(err, &stopped) && holder.EventCount > 0:
			return holder, false, nil // what could be decoded names the update
		default:
			return holder, false, err
		}
	}
	return job.State{}, false, fmt.Errorf("%s is taken but cannot be read: %w", key.Stream(), eventlog.ErrUnavailable)
}

// note records what is good to know about a job that is stored. The answer to
// the delivery does not depend on it.
func (e *Engine) note(ctx context.Context, s job.State, events []job.Event) {
	if len(events) == 0 {
		return
	}
	proposed, err := e.propose(e.Clock.Now(), events...)
	if err == nil {
		err = e.append(ctx, s.Key.Stream(), eventlog.Any, proposed...)
	}
	if err != nil {
		e.Observer.Troubled(s.Key.Stream(), fmt.Errorf("note a delivery: %w", err))
		return
	}
	for _, event := range events {
		s = s.Evolve(event, proposed[0].Time)
	}
	e.Observer.Recorded(s, events)
}
