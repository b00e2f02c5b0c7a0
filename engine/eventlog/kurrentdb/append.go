package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Append implements eventlog.Log. NoStream and Exactly are one request when all
// is well; Any is a read and a request. When an answer is lost, Append finds out
// what became of the request, for SettleTimeout; an attempt that runs then may end.
func (l *Log) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	if err := l.check(stream, expected, events); err != nil {
		return eventlog.Appended{}, err
	}
	w := &write{log: l, stream: stream, expected: expected, messages: messages(events)}
	if size := sizeOf(w.messages); size > l.config.MaxAppendBytes {
		return eventlog.Appended{}, fmt.Errorf("%w: append of %d bytes to %s, at most %d", eventlog.ErrInvalid, size, stream, l.config.MaxAppendBytes)
	}
	if err := ctx.Err(); err != nil {
		return eventlog.Appended{}, unavailable(ctx, "append to "+stream, err)
	}
	leave, err := l.flights.enter(ctx, stream)
	if err != nil {
		return eventlog.Appended{}, unavailable(ctx, "append to "+stream, err)
	}
	defer leave()
	revision, exactly := expected.Revision()
	switch {
	case expected.IsAny():
		return w.behindNewest(ctx)
	case exactly && revision >= math.MaxInt64:
		return w.outOfReach(ctx)
	case exactly:
		return w.at(ctx, revision+1)
	default:
		return w.at(ctx, 0)
	}
}

func (l *Log) check(stream string, expected eventlog.Expected, events []eventlog.Proposed) error {
	if err := eventlog.CheckAppend(stream, expected, events); err != nil {
		return err
	}
	return l.checkStream(stream)
}

// write is one append on its way.
type write struct {
	log      *Log
	stream   string
	expected eventlog.Expected // what the caller said
	messages []esdb.EventData
}

// request is one attempt to put the events at the revisions from first on. It
// never asks for Any: the server would know a repeat from a cache only (H7).
func (w *write) request(ctx context.Context, first uint64) (eventlog.Appended, error) {
	options := esdb.AppendToStreamOptions{
		ExpectedRevision: esdb.NoStream{}, // never nil, which would mean Any (H6)
		Authenticated:    nil,             // as in the connection string
		Deadline:         within(w.log.config.AppendTimeout),
		RequiresLeader:   true,
	}
	if first > 0 {
		options.ExpectedRevision = esdb.Revision(first - 1)
	}
	result, err := call(ctx, w.log.clients, w.log.config.AppendTimeout, func(ctx context.Context, c *esdb.Client) (*esdb.WriteResult, error) {
		return c.AppendToStream(ctx, w.log.names.on(w.stream), options, w.messages...)
	})
	if err != nil {
		return eventlog.Appended{}, err
	}
	at := eventlog.Appended{
		Revision: result.NextExpectedVersion, // of the last event, whatever its name says
		Position: eventlog.NewPosition(result.CommitPosition, result.PreparePosition),
	}
	if at.Revision != first+uint64(len(w.messages))-1 || at.Position == eventlog.Start {
		return eventlog.Appended{}, errOddAnswer
	}
	return at, nil
}

// errOddAnswer: the server said success, but not where we asked for, or without
// a position. It does so for a repeat whose position it has forgotten, and for a
// stream that was deleted, which goes on behind its old revisions (H14).
var errOddAnswer = errors.New("success at another revision, or without a position")

// behindNewest is an append with Any: what the newest events are decides (G5),
// and the append expects them to be still the newest.
func (w *write) behindNewest(ctx context.Context) (eventlog.Appended, error) {
	for rivals := 0; ; rivals++ {
		newest, err := retrying(ctx, w.log, func(ctx context.Context) ([]eventlog.Recorded, error) {
			return w.read(ctx, esdb.Backwards, esdb.End{}, len(w.messages))
		})
		if err != nil {
			return eventlog.Appended{}, unavailable(ctx, "append to "+w.stream, err)
		}
		next := uint64(0)
		if len(newest) > 0 {
			next = newest[0].Revision + 1
		}
		switch same, overlaps := w.compare(newest); {
		case same:
			return eventlog.Appended{Revision: next - 1, Position: newest[0].Position}, nil
		case overlaps:
			return eventlog.Appended{}, w.conflict(next)
		}
		at, err := w.at(ctx, next)
		if !eventlog.IsConflict(err) {
			return at, err
		}
		if !pause(ctx, rivals) { // another process was faster
			return eventlog.Appended{}, unavailable(ctx, "append to "+w.stream, err)
		}
	}
}

// compare says whether the newest events of the stream, the newest first, are
// those of the append, all of them or some.
func (w *write) compare(newest []eventlog.Recorded) (same, overlaps bool) {
	n := len(w.messages)
	same = len(newest) == n
	for i, r := range newest {
		same = same && w.has(r, n-1-i)
		for j := range w.messages {
			overlaps = overlaps || w.has(r, j)
		}
	}
	return same, overlaps
}

// has reports whether r is the event i of the append.
func (w *write) has(r eventlog.Recorded, i int) bool {
	return r.ID == eventlog.EventID(w.messages[i].EventID)
}

// outOfReach is an append that expects a revision that no stream can have. The
// server would take the largest ones for "no stream" and "any".
func (w *write) outOfReach(ctx context.Context) (eventlog.Appended, error) {
	s, err := retrying(ctx, w.log, func(ctx context.Context) (sight, error) { return w.look(ctx, math.MaxUint64) })
	if err != nil {
		return eventlog.Appended{}, unavailable(ctx, "append to "+w.stream, err)
	}
	return eventlog.Appended{}, w.conflict(s.next)
}

// conflict is a *eventlog.ConflictError of a stream whose next revision is next.
func (w *write) conflict(next uint64) error {
	return &eventlog.ConflictError{Stream: w.stream, Expected: w.expected, Current: max(next, 1) - 1, Exists: next > 0}
}
