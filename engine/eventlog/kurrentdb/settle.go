package kurrentdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// at puts the events at the revisions from first on, or says that they are not
// there (a conflict, eventlog.ErrUnavailable) or that it does not know.
//
// To ask again is safe: an append at a revision is known to the server by its
// place, for as long as the stream is kept. What counts is the place alone:
//
//	our ids are there           recorded, now or by an earlier attempt
//	another event is there      a conflict, and no attempt can be recorded any more
//	nothing is there            proves nothing: an attempt may still be on its way
func (w *write) at(ctx context.Context, first uint64) (eventlog.Appended, error) {
	appended, err := w.request(ctx, first)
	if err == nil {
		return appended, nil
	}
	settling, cancel := context.WithTimeout(ctx, w.log.config.SettleTimeout)
	defer cancel()
	var doubt error // why an attempt may have been recorded, or still may be
	for failures := 1; ; failures++ {
		v := judge(err)
		if v == unclear {
			doubt = err
			w.log.config.Observe(Notice{Kind: Settling, Stream: w.stream, Err: err})
		}
		if v == refused || errors.Is(err, errClosed) {
			return eventlog.Appended{}, w.giveUp(ctx, doubt, err)
		}
		if v == elsewhere || v == unclear {
			if appended, verdict, settled := w.settle(settling, first, v, doubt); settled {
				return appended, verdict
			}
		}
		if !pause(settling, failures) {
			return eventlog.Appended{}, w.giveUp(ctx, doubt, err)
		}
		if appended, err = w.request(ctx, first); err == nil {
			return appended, nil
		}
	}
}

// settle looks at the place. It is not settled when the place is empty, or
// cannot be read.
func (w *write) settle(ctx context.Context, first uint64, v verdict, doubt error) (eventlog.Appended, error, bool) {
	s, err := w.look(ctx, first)
	var damaged *DamagedError
	switch {
	case errors.As(err, &damaged):
		return eventlog.Appended{}, w.giveUp(ctx, doubt, err), true
	case err != nil:
		return eventlog.Appended{}, nil, false
	case s.ours:
		return s.appended, nil, true
	case s.next > first:
		return eventlog.Appended{}, w.conflict(s.next), true
	case s.next < first && v == elsewhere && doubt == nil:
		return eventlog.Appended{}, w.conflict(s.next), true
	default:
		// The place is empty. When the server said "elsewhere", the winner is not
		// replicated yet, and may be lost (H11): ask again.
		return eventlog.Appended{}, nil, false
	}
}

// giveUp is what Append answers when it does not know more.
func (w *write) giveUp(ctx context.Context, doubt, err error) error {
	if doubt == nil {
		return unavailable(ctx, "append to "+w.stream, err)
	}
	if errors.Is(doubt, errOddAnswer) {
		doubt = &DamagedError{Stream: w.stream, Detail: "an append succeeded, and the events are not where they should be"}
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(doubt, ended) {
		doubt = fmt.Errorf("%w: %w", ended, doubt)
	}
	return &eventlog.UnknownError{Stream: w.stream, Err: doubt}
}

// sight is what the stream shows of an append.
type sight struct {
	next     uint64 // revision of the stream
	ours     bool   // all the events are at their place
	appended eventlog.Appended
}

// look reads the stream's newest event and, when the stream reaches that far,
// what is at the revisions from first on.
func (w *write) look(ctx context.Context, first uint64) (sight, error) {
	newest, err := w.read(ctx, esdb.Backwards, esdb.End{}, 1)
	if err != nil || len(newest) == 0 {
		return sight{}, err
	}
	s := sight{next: newest[0].Revision + 1}
	n := len(w.messages)
	if s.next <= first || s.next-first < uint64(n) {
		return s, nil
	}
	there := newest
	if n > 1 || s.next-1 != first {
		if there, err = w.read(ctx, esdb.Forwards, esdb.Revision(first), n); err != nil {
			return sight{}, err
		}
	}
	for i, r := range there {
		if r.Revision != first+uint64(i) {
			return sight{}, gap(r, first+uint64(i))
		}
		if !w.has(r, i) {
			return s, nil
		}
	}
	if len(there) == n {
		last := there[n-1]
		s.ours, s.appended = true, eventlog.Appended{Revision: last.Revision, Position: last.Position}
	}
	return s, nil
}

// read is n events of the stream, or as many as there are, without their data:
// what an append is compared with can be larger than a page.
func (w *write) read(ctx context.Context, direction esdb.Direction, from esdb.StreamPosition, n int) (events []eventlog.Recorded, err error) {
	for {
		p, err := w.log.stream(ctx, w.stream, direction, from, uint64(n-len(events)))
		if err != nil {
			return nil, err
		}
		for _, r := range p.events {
			r.Data = nil
			events = append(events, r)
		}
		if p.last || len(events) == n {
			return events, nil
		}
		switch at := events[len(events)-1].Revision; {
		case direction == esdb.Forwards:
			from = esdb.Revision(at + 1)
		case at == 0:
			return events, nil
		default:
			from = esdb.Revision(at - 1)
		}
	}
}
