package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

var errWeather = errors.New("bad weather")

// log is a process's connection to the one log of the world.
type log struct {
	eventlog.Log
	p *process
}

// lateAppend is an append whose caller was told that its outcome is unknown. It
// arrives at the latest by, if the stream still is where it expects it.
type lateAppend struct {
	stream   string
	expected eventlog.Expected
	events   []eventlog.Proposed
	actor    *actor
	began    int // the turn of the actor
	by       time.Time
}

// turnOf is the turn of the actor to which what it records belongs: an append that
// arrives late is of the turn in which it was made.
func (w *world) turnOf(a *actor) int {
	if w.landing != nil && w.landing.actor == a {
		return w.landing.began
	}
	return a.began
}

// lateAppendMax is how long an append can be on its way.
const lateAppendMax = 10 * time.Second

func (l *log) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	w := l.p.w
	unknown := &eventlog.UnknownError{Stream: stream, Err: errWeather}
	switch w.await(point{appending, events[0].Type}) {
	case AppendRefused:
		return eventlog.Appended{}, fmt.Errorf("append: %w", eventlog.ErrUnavailable)
	case AppendLost:
		return eventlog.Appended{}, unknown
	case AppendLate:
		w.late = append(w.late, lateAppend{stream, expected, events, w.current, w.current.began, w.now.Add(lateAppendMax)})
		return eventlog.Appended{}, unknown
	case AckLost:
		_, _ = w.append(ctx, w.current, false, stream, expected, events)
		return eventlog.Appended{}, unknown
	}
	return w.append(ctx, w.current, true, stream, expected, events)
}

// append records the events, and shows those that are new to the judge.
func (w *world) append(ctx context.Context, by *actor, told bool, stream string, expected eventlog.Expected, events []eventlog.Proposed) (eventlog.Appended, error) {
	at, err := w.handle(by).Append(ctx, stream, expected, events...)
	if err != nil {
		return at, err
	}
	v := w.view(stream)
	size := int(at.Revision) + 1
	if size < len(events) || size > len(v.events)+len(events) {
		w.breaks(true, LogKeepsOrder, "%s has %d events, and an append of %d ends at revision %d", stream, len(v.events), len(events), at.Revision)
		return at, nil
	}
	for i := len(v.events) + len(events) - size; i < len(events); i++ {
		w.recorded(v, by, events[i])
	}
	if told {
		v.seen = max(v.seen, size)
	}
	return at, nil
}

// handle is through which the actor, or the judge, speaks to the log.
func (w *world) handle(by *actor) eventlog.Log {
	if by == nil || by.process == nil {
		return w.store
	}
	return by.process.handle
}

// landAppends brings in the late appends that have to have arrived, or all.
func (w *world) landAppends(all bool) {
	if len(w.late) == 0 {
		return
	}
	arriving := w.late
	w.late = nil
	for _, l := range arriving {
		if !all && w.now.Before(l.by) {
			w.late = append(w.late, l)
			continue
		}
		w.landing = &l
		_, err := w.append(context.Background(), l.actor, false, l.stream, l.expected, l.events)
		w.landing = nil
		w.tell("the late append of %s arrives: %v", l.events[0].Type, err)
	}
}

// ReadStream is as old as G8 allows when it is stale: an append whose
// acknowledgement nobody got, and that nobody read, need not be there yet.
func (l *log) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	w := l.p.w
	f := w.await(point{reading, stream})
	if f == None {
		v := w.view(stream)
		v.seen = len(v.events)
		return l.p.handle.ReadStream(ctx, stream, from)
	}
	seen := uint64(w.view(stream).seen)
	return func(yield func(eventlog.Recorded, error) bool) {
		if f != ReadRefused {
			for r, err := range l.p.handle.ReadStream(ctx, stream, from) {
				if f == ReadStale && r.Revision >= seen {
					break
				}
				if !yield(r, err) {
					return
				}
				if f == ReadCut {
					break
				}
			}
		}
		if f != ReadStale {
			yield(eventlog.Recorded{}, fmt.Errorf("read: %w", eventlog.ErrUnavailable))
		}
	}
}

func (l *log) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	w := l.p.w
	f := w.await(point{port: sweeping})
	if f == None {
		for _, v := range w.byStream {
			v.seen = len(v.events)
		}
		return l.p.handle.ReadAll(ctx, after)
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range l.p.handle.ReadAll(ctx, after) {
			if f == ReadRefused {
				break
			}
			if !yield(r, err) {
				return
			}
			if f == ReadCut {
				break
			}
		}
		yield(eventlog.Recorded{}, fmt.Errorf("read: %w", eventlog.ErrUnavailable))
	}
}

// ids counts. The last bytes, from which jitter is drawn, are well mixed, or
// all say one half.
type ids struct {
	n      uint64
	steady bool
}

func (i *ids) New() eventlog.EventID {
	i.n++
	mixed := uint64(1) << 39 // the last four bytes, read as a number, are half of the range
	if !i.steady {
		mixed = i.n * 0x9e3779b97f4a7c15
	}
	var id eventlog.EventID
	for b := range 8 {
		id[b], id[8+b] = byte(i.n>>(8*b)), byte(mixed>>(8*b))
	}
	return id
}
