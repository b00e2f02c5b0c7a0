package logcopy

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// DifferenceError says that the target is no beginning of the source, and names
// the first event that is not the same. Its text has nothing of the data.
type DifferenceError struct {
	Number uint64 // of the event in the order of the log, from 1 on
	Field  string // stream, revision, id, type, time or data; none if the source ends before
	Source eventlog.Recorded
	Target eventlog.Recorded
}

func (e *DifferenceError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("event %d of the target, %s, is not in the source: it ends before", e.Number, place(e.Target))
	}
	return fmt.Sprintf("event %d has another %s in the target: the source has %s, the target %s",
		e.Number, e.Field, place(e.Source), place(e.Target))
}

func place(r eventlog.Recorded) string {
	return fmt.Sprintf("%s revision %d (%s, id %s) at %s", r.Stream, r.Revision, r.Type, r.ID, r.Position)
}

// compare reads both logs in lockstep behind what was compared, to the target's
// end.
func (c *Copy) compare(ctx context.Context) error {
	source := lockstep{read: func() iter.Seq2[eventlog.Recorded, error] {
		return c.source.ReadAll(ctx, c.counts.Source.Last)
	}}
	defer source.close()
	for target, err := range c.target.ReadAll(ctx, c.counts.Target.Last) {
		if err != nil {
			return fmt.Errorf("read the target: %w", err)
		}
		counterpart, ok, err := source.next()
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		number := c.counts.Events + 1
		if !ok {
			return &DifferenceError{Number: number, Target: target}
		}
		if field := difference(counterpart, target); field != "" {
			return &DifferenceError{Number: number, Field: field, Source: counterpart, Target: target}
		}
		if target.Revision == 0 {
			c.counts.Streams++
		}
		c.counts.Events = number
		c.counts.Source.reach(counterpart.Position)
		c.counts.Target.reach(target.Position)
		c.reach(number)
	}
	return nil
}

// difference is the first field that is not the same; none if all are. Positions
// are each log's own.
func difference(source, target eventlog.Recorded) string {
	switch {
	case source.Stream != target.Stream:
		return "stream"
	case source.Revision != target.Revision:
		return "revision"
	case source.ID != target.ID:
		return "id"
	case source.Type != target.Type:
		return "type"
	case !source.Time.Equal(target.Time):
		return "time"
	case !bytes.Equal(source.Data, target.Data):
		return "data"
	default:
		return ""
	}
}

// lockstep yields one event when it is asked for.
type lockstep struct {
	read func() iter.Seq2[eventlog.Recorded, error] // behind what was yielded
	pull func() (eventlog.Recorded, error, bool)
	stop func()
}

// next is not ok at the end. It then reads once more, because another copy may
// have appended to the target what came to the source after the first read
// began.
func (l *lockstep) next() (r eventlog.Recorded, ok bool, err error) {
	for range 2 {
		if l.pull == nil {
			l.pull, l.stop = iter.Pull2(l.read())
		}
		if r, err, ok = l.pull(); ok {
			return r, err == nil, err
		}
		l.close()
	}
	return eventlog.Recorded{}, false, nil
}

func (l *lockstep) close() {
	if l.stop != nil {
		l.stop()
	}
	l.pull, l.stop = nil, nil
}
