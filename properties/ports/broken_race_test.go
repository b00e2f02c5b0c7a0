package ports

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// wrongUnderConcurrency are those that only other callers notice, and two that
// anybody does.
var wrongUnderConcurrency = map[string]func(eventlog.Log) eventlog.Log{
	"checks, then inserts":             appendsBy(checksThenInserts),
	"a read is one append behind":      func(log eventlog.Log) eventlog.Log { return &broken{Log: log, reads: withoutTheNewest} },
	"a read may be of an earlier time": readsStale,
	"an acknowledged append is lost":   losesEvery(7),
	"the expected revision is ignored": appendsBy(revisionIgnored),
	"no stream is not checked":         appendsBy(noStreamUnchecked),
	"a repeat adds again":              appendsBy(repeatAddsAgain),
	"an append is recorded in parts":   appendsBy(inParts),
	"unknown, and recorded twice":      unknownIsRecordedTwice,
}

// wrongOrder are wrong in the whole log, and not in any stream of it.
var wrongOrder = map[string]func(eventlog.Log) eventlog.Log{
	"the whole log is read without its newest": func(log eventlog.Log) eventlog.Log {
		return &broken{Log: log, reads: ofAll(withoutTheNewest)}
	},
	"of the whole log the second is seen late": func(log eventlog.Log) eventlog.Log {
		return &broken{Log: log, reads: ofAll(secondIsLate)}
	},
	"the position is the tail's, and not the append's": appendsBy(positionOfTheTail),
}

func ofAll(f func(eventlog.Log, string, sequence) sequence) func(eventlog.Log, string, sequence) sequence {
	return func(log eventlog.Log, stream string, events sequence) sequence {
		if stream != "" {
			return events
		}
		return f(log, stream, events)
	}
}

// secondIsLate shows the event before the newest only when there are more.
func secondIsLate(_ eventlog.Log, _ string, events sequence) sequence {
	return func(yield func(eventlog.Recorded, error) bool) {
		var all []eventlog.Recorded
		for r, err := range events {
			if err == nil {
				all = append(all, r)
			}
		}
		for i, r := range all {
			if len(all) < 20 && i == len(all)-2 {
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func positionOfTheTail(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	runtime.Gosched()
	if err == nil {
		at.Position, err = sound.Tail(ctx)
	}
	return at, err
}

// checksThenInserts leaves time for others between the two.
func checksThenInserts(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	n := length(sound, c.stream)
	r, exactly := c.expected.Revision()
	if exactly && r+1 == uint64(n) || c.expected.IsNoStream() && n == 0 {
		c.expected = eventlog.Any
		for range 10 {
			runtime.Gosched()
		}
	}
	return c.on(ctx, sound)
}

// readsStale answers every second read of a stream as the one before it.
func readsStale(log eventlog.Log) eventlog.Log {
	var mu sync.Mutex
	before := map[string][]eventlog.Recorded{}
	reads := 0
	return &broken{Log: log, reads: func(_ eventlog.Log, stream string, events sequence) sequence {
		return func(yield func(eventlog.Recorded, error) bool) {
			var now []eventlog.Recorded
			for r, err := range events {
				if err != nil {
					yield(r, err)
					return
				}
				now = append(now, r)
			}
			mu.Lock()
			reads++
			if old, ok := before[stream]; ok && reads%2 == 0 {
				now = old
			}
			before[stream] = now
			mu.Unlock()
			for _, r := range now {
				if !yield(r, nil) {
					return
				}
			}
		}
	}}
}

func repeatAddsAgain(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	before, _ := sound.Tail(ctx)
	at, err := c.on(ctx, sound)
	if err == nil && at.Position.Compare(before) <= 0 {
		n := length(sound, c.stream)
		c.expected = eventlog.Exactly(uint64(n - 1))
		return c.on(ctx, sound)
	}
	return at, err
}

// inParts records one event after the other.
func inParts(sound eventlog.Log, ctx context.Context, c call) (at eventlog.Appended, err error) {
	for _, e := range c.events {
		if at, err = (call{c.stream, c.expected, []eventlog.Proposed{e}}).on(ctx, sound); err != nil {
			return at, err
		}
		for range 10 {
			runtime.Gosched()
		}
		c.expected = eventlog.Exactly(at.Revision)
	}
	return at, err
}

// unknownIsRecordedTwice is a log that repeats by itself what it does not know,
// under other ids.
func unknownIsRecordedTwice(log eventlog.Log) eventlog.Log {
	var appends atomic.Int64
	return appendsBy(func(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
		at, err := c.on(ctx, sound)
		if err == nil && appends.Add(1)%5 == 0 {
			again := call{c.stream, eventlog.Any, []eventlog.Proposed{c.events[0]}}
			again.events[0].ID[15] ^= 0xff
			_, _ = again.on(ctx, sound)
			return eventlog.Appended{}, &eventlog.UnknownError{Stream: c.stream, Err: errors.New("the answer was lost")}
		}
		return at, err
	})(log)
}

func unknownAsUnavailable(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	if eventlog.IsUnknown(err) {
		err = eventlog.ErrUnavailable
	}
	return at, err
}

func unknownAsDone(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	if eventlog.IsUnknown(err) {
		return eventlog.Appended{Revision: uint64(length(sound, c.stream) + len(c.events) - 1)}, nil
	}
	return at, err
}

func unavailableAsDone(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	if errors.Is(err, eventlog.ErrUnavailable) {
		return eventlog.Appended{Revision: uint64(length(sound, c.stream) + len(c.events) - 1)}, nil
	}
	return at, err
}
