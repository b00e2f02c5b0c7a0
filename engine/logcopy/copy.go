package logcopy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Options may be left zero but for Sleep.
type Options struct {
	// Sleep waits for d, or until ctx ends, which is its error. Required.
	Sleep func(ctx context.Context, d time.Duration) error

	// Progress is told, often, how many events the target has: it grows.
	Progress func(events uint64)

	// Troubled is told what failed and when it is tried again.
	Troubled func(err error, wait time.Duration)
}

const (
	// A log that is out of reach is tried again after backoffFirst, twice as
	// much, and so on up to backoffMax: tries of them in a row without an event
	// more take about two minutes, longer than a cluster takes for an election.
	tries        = 20
	backoffFirst = 100 * time.Millisecond
	backoffMax   = 10 * time.Second

	// pollInterval is how often Follow looks for new events.
	pollInterval = 200 * time.Millisecond

	// roundEvents are appended before they are read back and compared. The more,
	// the later a stranger in the target is noticed; the fewer, the more reads.
	roundEvents = 10_000
)

// Counts says how far a copy has come.
type Counts struct {
	Events         uint64 // that both logs begin with, compared one by one
	Streams        uint64 // that begin in them
	Found          uint64 // of Events, those that were in the target already
	Source, Target Span   // of Events
}

// Span is the positions of the first and the last of some events; zero without one.
type Span struct{ First, Last eventlog.Position }

func (s *Span) reach(p eventlog.Position) {
	if s.First == eventlog.Start {
		s.First = p
	}
	s.Last = p
}

// Copy is one copy of a log. It is not safe for concurrent use.
type Copy struct {
	source, target eventlog.Log
	options        Options

	counts       Counts
	acknowledged uint64 // events that the target should have
	reached      uint64 // the most events that the target is known to have, or took
	appending    bool   // what the target had at first was compared
}

// New is a copy that has not begun.
func New(source, target eventlog.Log, o Options) *Copy {
	if o.Progress == nil {
		o.Progress = func(uint64) {}
	}
	if o.Troubled == nil {
		o.Troubled = func(error, time.Duration) {}
	}
	return &Copy{source: source, target: target, options: o}
}

// Counts is how far it has come.
func (c *Copy) Counts() Counts { return c.counts }

// ToTail copies until the source has no event more. It goes on from where the
// last call ended. While a log is unavailable or an outcome unknown it tries
// again, for about two minutes.
//
// Errors: *DifferenceError (the target is no beginning of the source),
// eventlog.ErrInvalid (the target cannot hold an event), the context's, or the
// last of what was tried again. After any but the first, another Copy resumes.
func (c *Copy) ToTail(ctx context.Context) error {
	failed, before := 0, c.reached
	for {
		appended, err := c.round(ctx)
		if err == nil && appended == 0 {
			return nil
		}
		if c.reached > before {
			failed, before = 0, c.reached
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failed++; hopeless(err) || failed == tries {
			return err
		}
		wait := backoff(failed)
		c.options.Troubled(err, wait)
		if err := c.options.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// Follow copies what comes, until ToTail fails or ctx ends, which is no error.
// Then the target may be behind: ToTail takes it to the end.
func (c *Copy) Follow(ctx context.Context) error {
	for {
		err := c.ToTail(ctx)
		if err == nil {
			err = c.options.Sleep(ctx, pollInterval)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// round compares what the target has and appends some of the rest, and returns
// how many events.
func (c *Copy) round(ctx context.Context) (appended uint64, err error) {
	if err := c.compare(ctx); err != nil {
		return 0, err
	}
	if !c.appending {
		c.appending, c.counts.Found = true, c.counts.Events
	}
	if missing := c.acknowledged; c.counts.Events < missing {
		c.acknowledged = c.counts.Events // they are appended again
		return 0, fmt.Errorf("the target took %d events and shows %d of them", missing, c.counts.Events)
	}
	return c.appendRest(ctx)
}

// hopeless is an error that no repetition mends.
func hopeless(err error) bool {
	return errors.As(err, new(*DifferenceError)) || errors.Is(err, eventlog.ErrInvalid)
}

func backoff(failed int) time.Duration {
	wait := backoffFirst
	for range failed - 1 {
		wait = min(2*wait, backoffMax)
	}
	return wait
}

func (c *Copy) reach(events uint64) {
	if events > c.reached {
		c.reached = events
		c.options.Progress(events)
	}
}
