package eventlogtest_test

import (
	"context"
	"errors"
	"iter"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// wrong is a log with some of its methods replaced; each has the sound log to
// call.
type wrong struct {
	eventlog.Log
	append    func(sound eventlog.Log, a call) (eventlog.Appended, error)
	each      func(*eventlog.Recorded) // applied to every event read
	stream    func(eventlog.Log, sequence) sequence
	all       func(eventlog.Log, sequence) sequence
	subscribe func(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error
	tail      func(eventlog.Position) eventlog.Position
}

type sequence = iter.Seq2[eventlog.Recorded, error]

// call is the arguments of an append.
type call struct {
	ctx      context.Context
	stream   string
	expected eventlog.Expected
	events   []eventlog.Proposed
}

func (a call) on(log eventlog.Log) (eventlog.Appended, error) {
	return log.Append(a.ctx, a.stream, a.expected, a.events...)
}

func (w *wrong) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	a := call{ctx, stream, expected, events}
	if w.append == nil {
		return a.on(w.Log)
	}
	return w.append(w.Log, a)
}

func (w *wrong) ReadStream(ctx context.Context, stream string, from uint64) sequence {
	events := w.changed(w.Log.ReadStream(ctx, stream, from))
	if w.stream != nil {
		events = w.stream(w.Log, events)
	}
	return events
}

func (w *wrong) ReadAll(ctx context.Context, after eventlog.Position) sequence {
	events := w.changed(w.Log.ReadAll(ctx, after))
	if w.all != nil {
		events = w.all(w.Log, events)
	}
	return events
}

func (w *wrong) Subscribe(ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	if w.subscribe != nil {
		return w.subscribe(w.Log, ctx, after, handler)
	}
	return w.Log.Subscribe(ctx, after, handler)
}

func (w *wrong) Tail(ctx context.Context) (eventlog.Position, error) {
	p, err := w.Log.Tail(ctx)
	if w.tail != nil {
		p = w.tail(p)
	}
	return p, err
}

func (w *wrong) changed(events sequence) sequence {
	if w.each == nil {
		return events
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range events {
			if err == nil {
				w.each(&r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func appending(f func(sound eventlog.Log, a call) (eventlog.Appended, error)) func(eventlog.Log) eventlog.Log {
	return func(log eventlog.Log) eventlog.Log { return &wrong{Log: log, append: f} }
}

func changing(f func(*eventlog.Recorded)) func(eventlog.Log) eventlog.Log {
	return func(log eventlog.Log) eventlog.Log { return &wrong{Log: log, each: f} }
}

func reading(f func(eventlog.Log, sequence) sequence) func(eventlog.Log) eventlog.Log {
	return func(log eventlog.Log) eventlog.Log { return &wrong{Log: log, stream: f, all: f} }
}

func readingAll(f func(eventlog.Log, sequence) sequence) func(eventlog.Log) eventlog.Log {
	return func(log eventlog.Log) eventlog.Log { return &wrong{Log: log, all: f} }
}

func subscribing(f func(eventlog.Log, context.Context, eventlog.Position, eventlog.Handler) error) func(eventlog.Log) eventlog.Log {
	return func(log eventlog.Log) eventlog.Log { return &wrong{Log: log, subscribe: f} }
}

// picked is the sequence with each event as often as times says of its index.
func picked(events sequence, times func(i int) int) sequence {
	return func(yield func(eventlog.Recorded, error) bool) {
		i := 0
		for r, err := range events {
			for range times(i) {
				if !yield(r, err) {
					return
				}
			}
			i++
		}
	}
}

func length(log eventlog.Log, stream string) (n int) {
	for range log.ReadStream(context.Background(), stream, 0) {
		n++
	}
	return n
}

var errLost = errors.New("answer lost")
