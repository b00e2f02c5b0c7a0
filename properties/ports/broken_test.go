package ports

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// broken is a log that is wrong in one way.
type broken struct {
	eventlog.Log
	appends func(eventlog.Log, context.Context, call) (eventlog.Appended, error)
	reads   func(sound eventlog.Log, stream string, events sequence) sequence // stream is empty for ReadAll
	changes func(*eventlog.Recorded)
	tails   func(eventlog.Position, error) (eventlog.Position, error)
}

type sequence = iter.Seq2[eventlog.Recorded, error]

func (b *broken) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	c := call{stream, expected, events}
	if b.appends == nil {
		return c.on(ctx, b.Log)
	}
	return b.appends(b.Log, ctx, c)
}

func (c call) on(ctx context.Context, log eventlog.Log) (eventlog.Appended, error) {
	return log.Append(ctx, c.stream, c.expected, c.events...)
}

func (b *broken) ReadStream(ctx context.Context, stream string, from uint64) sequence {
	return b.read(stream, b.Log.ReadStream(ctx, stream, from))
}

func (b *broken) ReadAll(ctx context.Context, after eventlog.Position) sequence {
	return b.read("", b.Log.ReadAll(ctx, after))
}

func (b *broken) read(stream string, events sequence) sequence {
	if b.changes != nil {
		sound := events
		events = func(yield func(eventlog.Recorded, error) bool) {
			for r, err := range sound {
				if err == nil {
					b.changes(&r)
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
	if b.reads != nil {
		return b.reads(b.Log, stream, events)
	}
	return events
}

func (b *broken) Tail(ctx context.Context) (eventlog.Position, error) {
	p, err := b.Log.Tail(ctx)
	if b.tails != nil {
		return b.tails(p, err)
	}
	return p, err
}

func appendsBy(f func(eventlog.Log, context.Context, call) (eventlog.Appended, error)) func(eventlog.Log) eventlog.Log {
	return func(log eventlog.Log) eventlog.Log { return &broken{Log: log, appends: f} }
}

func changesBy(f func(*eventlog.Recorded)) func(eventlog.Log) eventlog.Log {
	return func(log eventlog.Log) eventlog.Log { return &broken{Log: log, changes: f} }
}

func length(log eventlog.Log, stream string) (n int) {
	for _, err := range log.ReadStream(context.Background(), stream, 0) {
		if err == nil {
			n++
		}
	}
	return n
}

// wrongAnswers differ from the port whoever calls, also one after the other.
var wrongAnswers = map[string]func(eventlog.Log) eventlog.Log{
	"a repeat is known only while it is the newest": appendsBy(repeatOnlyOfTheNewest),
	"a repeat in another order succeeds":            appendsBy(repeatInAnyOrder),
	"an overlap under any is added":                 appendsBy(overlapUnderAnyIsAdded),
	"a conflict adds the first event":               appendsBy(conflictAddsOne),
	"a conflict without the current revision":       appendsBy(conflictWithoutRevision),
	"no stream is not checked":                      appendsBy(noStreamUnchecked),
	"the expected revision is ignored":              appendsBy(revisionIgnored),
	"the largest revision is no stream":             appendsBy(largestIsNoStream),
	"unset is any":                                  appendsBy(unsetIsAny),
	"a used id is used up in the whole log":         usedUpIDs,
	"names of streams fold case":                    appendsBy(foldedNames),
	"an ended context does not matter":              appendsBy(endedContextAppends),
	"every seventh append is lost":                  losesEvery(7),
	"data ends at NUL":                              changesBy(endsAtNUL),
	"no data is nil":                                changesBy(noDataIsNil),
	"time in microseconds":                          changesBy(func(r *eventlog.Recorded) { r.Time = r.Time.Truncate(time.Microsecond) }),
	"time in 64 bits":                               changesBy(func(r *eventlog.Recorded) { r.Time = time.Unix(0, r.Time.UnixNano()).UTC() }),
	"time in another zone":                          changesBy(func(r *eventlog.Recorded) { r.Time = r.Time.In(time.FixedZone("zone", 3600)) }),
	"an error is the end": func(log eventlog.Log) eventlog.Log {
		return &broken{Log: log, reads: errorIsTheEnd}
	},
	"reads miss the newest": func(log eventlog.Log) eventlog.Log { return &broken{Log: log, reads: withoutTheNewest} },
	"the tail stands still": func(log eventlog.Log) eventlog.Log {
		return &broken{Log: log, tails: func(_ eventlog.Position, err error) (eventlog.Position, error) { return eventlog.Start, err }}
	},
}

func repeatOnlyOfTheNewest(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	if n := length(sound, c.stream); err == nil && at.Revision+1 < uint64(n) {
		return eventlog.Appended{}, &eventlog.ConflictError{Stream: c.stream, Expected: c.expected, Current: uint64(n - 1), Exists: true}
	}
	return at, err
}

func repeatInAnyOrder(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	if eventlog.IsConflict(err) && len(c.events) == 2 {
		c.events = []eventlog.Proposed{c.events[1], c.events[0]}
		if again, err := c.on(ctx, sound); err == nil {
			return again, nil
		}
	}
	return at, err
}

func overlapUnderAnyIsAdded(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	if eventlog.IsConflict(err) && c.expected.IsAny() {
		c.expected = eventlog.Exactly(uint64(length(sound, c.stream) - 1))
		return c.on(ctx, sound)
	}
	return at, err
}

func conflictAddsOne(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	if eventlog.IsConflict(err) {
		_, _ = call{c.stream, eventlog.Any, c.events[:1]}.on(ctx, sound)
	}
	return at, err
}

func conflictWithoutRevision(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	at, err := c.on(ctx, sound)
	if e := (*eventlog.ConflictError)(nil); errors.As(err, &e) {
		e.Current = 0
	}
	return at, err
}

func noStreamUnchecked(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	if c.expected.IsNoStream() {
		c.expected = eventlog.Any
	}
	return c.on(ctx, sound)
}

func revisionIgnored(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	if _, exactly := c.expected.Revision(); exactly {
		c.expected = eventlog.Any
	}
	return c.on(ctx, sound)
}

func largestIsNoStream(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	if r, exactly := c.expected.Revision(); exactly && r+1 == 0 {
		c.expected = eventlog.NoStream
	}
	return c.on(ctx, sound)
}

func unsetIsAny(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	if c.expected == (eventlog.Expected{}) {
		c.expected = eventlog.Any
	}
	return c.on(ctx, sound)
}

func usedUpIDs(log eventlog.Log) eventlog.Log {
	streams := map[eventlog.EventID]string{}
	return appendsBy(func(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
		for _, e := range c.events {
			if at, used := streams[e.ID]; used && at != c.stream {
				return eventlog.Appended{}, &eventlog.ConflictError{Stream: c.stream, Expected: c.expected}
			}
		}
		at, err := c.on(ctx, sound)
		for _, e := range c.events {
			if err == nil {
				streams[e.ID] = c.stream
			}
		}
		return at, err
	})(log)
}

func foldedNames(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	c.stream = strings.ToLower(c.stream)
	return c.on(ctx, sound)
}

func endedContextAppends(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
	return c.on(context.WithoutCancel(ctx), sound)
}

// losesEvery acknowledges without recording.
func losesEvery(n int64) func(eventlog.Log) eventlog.Log {
	return func(log eventlog.Log) eventlog.Log {
		var appends atomic.Int64
		return appendsBy(func(sound eventlog.Log, ctx context.Context, c call) (eventlog.Appended, error) {
			if appends.Add(1)%n > 0 {
				return c.on(ctx, sound)
			}
			p, err := sound.Tail(ctx)
			return eventlog.Appended{Revision: uint64(length(sound, c.stream) + len(c.events) - 1), Position: p}, err
		})(log)
	}
}

func endsAtNUL(r *eventlog.Recorded) {
	before, _, _ := strings.Cut(string(r.Data), "\x00")
	r.Data = []byte(before)
}

func noDataIsNil(r *eventlog.Recorded) {
	if len(r.Data) == 0 {
		r.Data = nil
	}
}

func errorIsTheEnd(_ eventlog.Log, _ string, events sequence) sequence {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range events {
			if err != nil || !yield(r, nil) {
				return
			}
		}
	}
}

func withoutTheNewest(_ eventlog.Log, _ string, events sequence) sequence {
	return func(yield func(eventlog.Recorded, error) bool) {
		var held *eventlog.Recorded
		for r, err := range events {
			if err != nil {
				yield(r, err)
				return
			}
			if held != nil && !yield(*held, nil) {
				return
			}
			held = &r
		}
	}
}
