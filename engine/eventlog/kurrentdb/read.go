package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Limits of a page. Its last event may go over the bytes, and it has two events
// at least, if there are as many: the first can be the one that the page before
// ended with. A page is received whole, and the call ended, before its first event
// is handed out: a reader that takes its time holds nothing on the server (H15).
const (
	readPageEvents = 4000
	readPageBytes  = 4 << 20
)

// page is a part of a stream or of $all.
type page struct {
	events []eventlog.Recorded // those of the log
	end    eventlog.Position   // of the last event that was received, others' too
	last   bool                // nothing follows
}

// ReadStream implements eventlog.Log. A stream whose revisions are not the next
// ones has been deleted or truncated, and is a *DamagedError.
func (l *Log) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		if err := l.checkStream(stream); err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		failed := func(err error) { yield(eventlog.Recorded{}, unavailable(ctx, "read "+stream, err)) }
		for next := from; ; {
			p, err := l.streamPage(ctx, stream, next)
			if err != nil {
				failed(err)
				return
			}
			for _, r := range p.events {
				if r.Revision != next {
					failed(gap(r, next))
					return
				}
				if !yield(r, nil) {
					return
				}
				next++
			}
			if p.last {
				return
			}
		}
	}
}

// checkStream is eventlog.CheckStream, and that the stream can be one of the log.
func (l *Log) checkStream(stream string) error {
	if err := eventlog.CheckStream(stream); err != nil {
		return err
	}
	if !l.names.has(stream) {
		return fmt.Errorf("%w: stream %s has none of the prefixes %q of this log", eventlog.ErrInvalid, stream, l.names.streams)
	}
	return nil
}

// gap is the damage that r shows: another revision should be there.
func gap(r eventlog.Recorded, want uint64) error {
	return &DamagedError{Stream: r.Stream, Detail: fmt.Sprintf("revision %d is where %d should be", r.Revision, want)}
}

func (l *Log) streamPage(ctx context.Context, stream string, from uint64) (page, error) {
	if err := ctx.Err(); err != nil {
		return page{}, err
	}
	if from > math.MaxInt64 { // the server's revisions are signed, and -1 stands for the end
		return page{last: true}, nil
	}
	return retrying(ctx, l, func(ctx context.Context) (page, error) {
		return l.stream(ctx, stream, esdb.Forwards, esdb.Revision(from), readPageEvents)
	})
}

// ReadAll implements eventlog.Log. The client has no filter for a read, so what
// others have written to the server is received and passed over here.
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		own := after // the newest event of the log up to here
		for from := l.passed.from(after); ; {
			p, err := retrying(ctx, l, func(ctx context.Context) (page, error) {
				return l.all(ctx, esdb.Forwards, fromPosition(from), readPageEvents)
			})
			if err != nil {
				yield(eventlog.Recorded{}, unavailable(ctx, "read the log", err))
				return
			}
			for _, r := range p.events {
				// A read begins at its position, not behind it.
				if r.Position.Compare(from) > 0 && !yield(r, nil) {
					return
				}
			}
			if n := len(p.events); n > 0 {
				own = p.events[n-1].Position
			}
			l.passed.note(own, p.end)
			if p.last {
				return
			}
			from = p.end
		}
	}
}

// passed is how far the log has been read behind its newest event. What others wrote
// there is not read again by the next one who asks for what is new, and in a quiet log
// that is everyone: nothing ever appears behind a position of $all.
type passed struct {
	mu       sync.Mutex
	own, end eventlog.Position
}

// from is where to begin to read behind after. From the start, everything is read.
func (p *passed) from(after eventlog.Position) eventlog.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	if after != eventlog.Start && after == p.own {
		return p.end
	}
	return after
}

func (p *passed) note(own, end eventlog.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.Compare(p.own) >= 0 && end.Compare(p.end) > 0 {
		p.own, p.end = own, end
	}
}

// stream reads at most count events of one stream. A stream that does not exist
// has none.
func (l *Log) stream(ctx context.Context, stream string, direction esdb.Direction, from esdb.StreamPosition, count uint64) (page, error) {
	options := esdb.ReadStreamOptions{
		Direction:      direction,
		From:           from,
		ResolveLinkTos: false,
		Authenticated:  nil, // as in the connection string
		Deadline:       within(l.config.ReadTimeout),
		RequiresLeader: true,
	}
	return call(ctx, l.clients, l.config.ReadTimeout, func(ctx context.Context, c *esdb.Client) (page, error) {
		s, err := c.ReadStream(ctx, l.names.on(stream), options, count)
		return l.receive(s, err, count)
	})
}

// all reads at most count events of $all.
func (l *Log) all(ctx context.Context, direction esdb.Direction, from esdb.AllPosition, count uint64) (page, error) {
	options := esdb.ReadAllOptions{
		Direction:      direction,
		From:           from,
		ResolveLinkTos: false,
		Authenticated:  nil, // as in the connection string
		Deadline:       within(l.config.ReadTimeout),
		RequiresLeader: true,
	}
	return call(ctx, l.clients, l.config.ReadTimeout, func(ctx context.Context, c *esdb.Client) (page, error) {
		s, err := c.ReadAll(ctx, options, count)
		return l.receive(s, err, count)
	})
}

// receive takes all that the server sends, up to the limits of a page, and
// closes the read: one that is left open is never freed (H4).
func (l *Log) receive(s *esdb.ReadStream, err error, count uint64) (page, error) {
	if err != nil {
		return page{}, err
	}
	defer s.Close()
	var p page
	received, size := uint64(0), 0
	for size < readPageBytes || received < 2 {
		e, err := s.Recv()
		if errors.Is(err, io.EOF) || isNotFound(err) {
			p.last = received < count
			return p, nil
		}
		if err != nil {
			return page{}, err
		}
		if e.Event == nil {
			return page{}, errors.New("the server sent an event without content")
		}
		received++
		size += len(e.Event.Data) + len(e.Event.UserMetadata)
		p.end = positionOf(e.Event.Position)
		stream, ours := l.names.of(e.Event.StreamID)
		if ours {
			p.events = append(p.events, recorded(stream, e.Event))
		}
	}
	return p, nil
}
