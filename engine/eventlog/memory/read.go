package memory

import (
	"context"
	"iter"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// ReadStream yields the events that the stream has at the time of the call.
func (l *Log) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	if err := eventlog.CheckStream(stream); err != nil {
		return failed(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all, recorded := l.all, l.streams[stream]
	recorded = recorded[min(from, uint64(len(recorded))):]
	return read(ctx, "read "+stream, len(recorded), func(i int) eventlog.Recorded {
		return all[recorded[i]-1]
	})
}

// ReadAll yields the events that the log has at the time of the call.
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	all := l.behind(after)
	return read(ctx, "read all", len(all), func(i int) eventlog.Recorded { return all[i] })
}

func (l *Log) behind(after eventlog.Position) []eventlog.Recorded {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _ := after.Parts()
	return l.all[min(n, uint64(len(l.all))):]
}

// read yields n events, unless ctx ends before: also an empty answer is one
// that a cancelled caller does not get (G9).
func read(ctx context.Context, operation string, n int, at func(int) eventlog.Recorded) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for i := 0; ; i++ {
			if err := ctx.Err(); err != nil {
				yield(eventlog.Recorded{}, unavailable(operation, err))
				return
			}
			if i == n || !yield(handOut(at(i)), nil) {
				return
			}
		}
	}
}

func failed(err error) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, err) }
}

// handOut is r with data of its own, so that a reader who breaks the rule and
// changes it does not change history.
func handOut(r eventlog.Recorded) eventlog.Recorded {
	r.Data = copyOf(r.Data)
	return r
}
