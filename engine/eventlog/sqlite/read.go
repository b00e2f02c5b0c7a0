package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Limits of a page; its last event may go over the bytes. A page is read in
// one short transaction and handed out after it: a reader that stays in a
// transaction while its caller works keeps the WAL from being reused.
const (
	readPageEvents = 1000
	readPageBytes  = 4 << 20
)

const (
	selectStream = `SELECT position, stream, revision, id, type, seconds, nanos, data FROM events
		WHERE stream = ?1 AND revision >= ?2 ORDER BY revision LIMIT ?3`
	selectAll = `SELECT position, stream, revision, id, type, seconds, nanos, data FROM events
		WHERE position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3`
)

// ReadStream implements eventlog.Log. It ends at the revision that the stream
// has when the loop begins; a gap before it is a *DamagedError.
func (l *Log) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		if err := eventlog.CheckStream(stream); err != nil {
			yield(eventlog.Recorded{}, err)
			return
		}
		newest, exists, err := l.newest(ctx, stream)
		if err != nil {
			yield(eventlog.Recorded{}, unavailable("read "+stream, l.asDamage(err)))
			return
		}
		var p page
		for exists && from <= newest {
			err := l.read(ctx, &p, func(r *reader) (*stmt, []driver.Value) {
				return r.stream, []driver.Value{stream, int64(from), int64(readPageEvents)}
			})
			if err != nil {
				yield(eventlog.Recorded{}, unavailable("read "+stream, l.asDamage(err)))
				return
			}
			if len(p.events) == 0 {
				yield(eventlog.Recorded{}, unavailable("read "+stream, l.damaged("revision %d is missing, the newest is %d", from, newest)))
				return
			}
			for _, e := range p.events {
				if e.Revision != from {
					yield(eventlog.Recorded{}, unavailable("read "+stream, l.damaged("revision %d is where %d should be", e.Revision, from)))
					return
				}
				if !yield(e, nil) {
					return
				}
				from++
			}
		}
	}
}

// ReadAll implements eventlog.Log. It ends at the tail that the log has when
// the loop begins; a gap before it is a *DamagedError.
func (l *Log) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		tail, err := l.tail(ctx)
		if err != nil {
			yield(eventlog.Recorded{}, unavailable("read the log", l.asDamage(err)))
			return
		}
		for e, err := range l.between(ctx, rowidOf(after), tail) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// between yields the events behind after, up to and with tail.
func (l *Log) between(ctx context.Context, after, tail int64) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		var p page
		for after < tail {
			err := l.read(ctx, &p, func(r *reader) (*stmt, []driver.Value) {
				return r.all, []driver.Value{after, tail, int64(readPageEvents)}
			})
			if err != nil {
				yield(eventlog.Recorded{}, unavailable(fmt.Sprintf("read the log behind %d", after), l.asDamage(err)))
				return
			}
			if len(p.events) == 0 {
				yield(eventlog.Recorded{}, unavailable("read the log", l.damaged("position %d is missing, the newest is %d", after+1, tail)))
				return
			}
			for _, e := range p.events {
				if at := rowidOf(e.Position); at != after+1 {
					yield(eventlog.Recorded{}, unavailable("read the log", l.damaged("position %d is where %d should be", at, after+1)))
					return
				}
				if !yield(e, nil) {
					return
				}
				after++
			}
		}
	}
}

// Tail implements eventlog.Log.
func (l *Log) Tail(ctx context.Context) (eventlog.Position, error) {
	tail, err := l.tail(ctx)
	if err != nil {
		return eventlog.Start, unavailable("read the tail of the log", l.asDamage(err))
	}
	if tail == 0 {
		return eventlog.Start, nil
	}
	return positionOf(tail), nil
}

func (l *Log) tail(ctx context.Context) (tail int64, err error) {
	err = l.readers.with(ctx, func(ctx context.Context, r *reader) error {
		tail, err = tailOf(ctx, r.tail, r.row[:], l.path)
		return err
	})
	return tail, err
}

// newest is the stream's revision, read before the pages: they reach it.
func (l *Log) newest(ctx context.Context, stream string) (revision uint64, exists bool, err error) {
	err = l.readers.with(ctx, func(ctx context.Context, r *reader) error {
		return r.newest.query(ctx, r.row[:1], func() (bool, error) {
			at, ok := r.row[0].(int64)
			if !ok {
				return false, l.damaged("the newest revision of %s is %v", stream, r.row[0])
			}
			revision, exists = uint64(at), true
			return false, nil
		}, stream)
	})
	return revision, exists, err
}

func rowidOf(p eventlog.Position) int64 {
	commit, _ := p.Parts()
	return int64(min(commit, math.MaxInt64))
}

// page is what one read transaction brings. Its room is used again.
type page struct {
	events []eventlog.Recorded
	bytes  int
}

func (p *page) full() bool { return len(p.events) >= readPageEvents || p.bytes >= readPageBytes }

// read fills p with what the statement that query chooses answers.
func (l *Log) read(ctx context.Context, p *page, query func(*reader) (*stmt, []driver.Value)) error {
	p.events, p.bytes = p.events[:0], 0
	return l.readers.with(ctx, func(ctx context.Context, r *reader) error {
		s, args := query(r)
		return s.query(ctx, r.row[:], func() (bool, error) {
			e, err := r.recorded()
			if err != nil {
				return false, l.damaged("%v", err)
			}
			p.events = append(p.events, e)
			p.bytes += len(e.Data)
			return !p.full(), nil
		}, args...)
	})
}

// reader is one connection that cannot write.
type reader struct {
	conn                      *conn
	stream, newest, all, tail *stmt
	row                       [8]driver.Value
}

func openReader(ctx context.Context, path string, opts Options) (*reader, error) {
	c, err := connect(ctx, path, readOnly, opts.BusyTimeout, opts.vfs)
	if err != nil {
		return nil, fmt.Errorf("log file %s: %w", path, err)
	}
	r := &reader{conn: c}
	err = c.exec(ctx, "PRAGMA query_only = ON")
	for _, p := range []struct {
		to    **stmt
		query string
	}{{&r.stream, selectStream}, {&r.newest, selectNewest}, {&r.all, selectAll}, {&r.tail, selectTail}} {
		if err == nil {
			*p.to, err = c.prepare(ctx, p.query)
		}
	}
	if err != nil {
		c.drop()
		return nil, fmt.Errorf("log file %s: %w", path, err)
	}
	return r, nil
}

// recorded is the event in the row.
func (r *reader) recorded() (eventlog.Recorded, error) {
	position, ok1 := r.row[0].(int64)
	stream, ok2 := r.row[1].(string)
	revision, ok3 := r.row[2].(int64)
	id, ok4 := r.row[3].([]byte)
	kind, ok5 := r.row[4].(string)
	seconds, ok6 := r.row[5].(int64)
	nanos, ok7 := r.row[6].(int64)
	data, ok8 := r.row[7].([]byte)
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7 && ok8) || len(id) != len(eventlog.EventID{}) {
		return eventlog.Recorded{}, fmt.Errorf("the row at position %v has a value of a wrong type", r.row[0])
	}
	if data == nil {
		data = []byte{} // so the driver answers an empty blob
	}
	return eventlog.Recorded{
		Stream:   stream,
		Revision: uint64(revision),
		Position: positionOf(position),
		ID:       eventlog.EventID(id),
		Type:     kind,
		Time:     time.Unix(seconds, nanos).UTC(),
		Data:     data,
	}, nil
}
