package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Append implements eventlog.Log. While the append waits for the writer, the
// end of ctx withdraws it; once the writer has it, Append returns the outcome.
func (l *Log) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	if err := eventlog.CheckAppend(stream, expected, events); err != nil {
		return eventlog.Appended{}, err
	}
	r := &request{stream: stream, expected: expected, events: events, done: make(chan struct{})}
	if err := l.enqueue(ctx, r); err != nil {
		return eventlog.Appended{}, r.unavailable(err)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.withdraw() {
			return eventlog.Appended{}, r.unavailable(ctx.Err())
		}
		<-r.done
	}
	return r.appended, r.err
}

func (l *Log) enqueue(ctx context.Context, r *request) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.sending.RLock()
	defer l.sending.RUnlock()
	select {
	case <-l.closed:
		return errClosed
	default:
	}
	select {
	case l.queue <- r:
		return nil
	case <-l.closed:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// request is one append on its way through the writer.
type request struct {
	stream   string
	expected eventlog.Expected
	events   []eventlog.Proposed

	owner atomic.Int32 // queued, then taken by the writer or withdrawn by its caller

	// The writer's, until done is closed.
	appended eventlog.Appended
	err      error
	added    bool // events were inserted, rather than found
	done     chan struct{}
}

const (
	queued int32 = iota
	taken
	withdrawn
)

func (r *request) take() bool     { return r.owner.CompareAndSwap(queued, taken) }
func (r *request) withdraw() bool { return r.owner.CompareAndSwap(queued, withdrawn) }

func (r *request) unavailable(err error) error { return unavailable("append to "+r.stream, err) }

// size is what the request adds to its batch, in bytes.
func (r *request) size() int {
	n := 0
	for _, e := range r.events {
		n += len(e.Data)
	}
	return n
}

const (
	insertFirst = `INSERT INTO events (stream, revision, id, type, seconds, nanos, data)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
		ON CONFLICT (stream, revision) DO NOTHING`

	// Revisions have no gaps, so the stream is at ?2-1 exactly when that
	// revision exists and ?2 does not.
	insertBehind = `INSERT INTO events (stream, revision, id, type, seconds, nanos, data)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
		WHERE EXISTS (SELECT 1 FROM events WHERE stream = ?1 AND revision = ?2 - 1)
		ON CONFLICT (stream, revision) DO NOTHING`

	selectNewest = `SELECT revision FROM events WHERE stream = ?1 ORDER BY revision DESC LIMIT 1`

	selectIDs = `SELECT id, position FROM events
		WHERE stream = ?1 AND revision >= ?2 ORDER BY revision LIMIT ?3`
)

// apply does one append inside the writer's transaction. The outcome that
// concerns the caller alone goes into r; an error is the end of the batch.
func (w *writer) apply(ctx context.Context, r *request) error {
	if done, err := w.applyFast(ctx, r); done || err != nil {
		return err
	}
	current, exists, err := w.newest(ctx, r.stream)
	if err != nil {
		return err
	}
	next := int64(0)
	if exists {
		next = current + 1
	}
	first, at := placeOf(r.expected, next)
	if !at || r.expected.IsAny() {
		repeated, overlaps, err := w.isRepeat(ctx, r, first, next)
		if repeated || err != nil {
			return err
		}
		at = at && !overlaps
	}
	if !at {
		r.err = &eventlog.ConflictError{Stream: r.stream, Expected: r.expected, Current: uint64(max(current, 0)), Exists: exists}
		return nil
	}
	for i, e := range r.events {
		if err := w.insert(ctx, w.insertFirst, r, next+int64(i), e); err != nil {
			return err
		}
	}
	return nil
}

// applyFast does the two appends that nearly all appends are, one event behind
// an expected revision, in one statement. It is not done when the stream is
// elsewhere.
func (w *writer) applyFast(ctx context.Context, r *request) (done bool, err error) {
	if len(r.events) != 1 || r.expected.IsAny() {
		return false, nil
	}
	statement, at := w.insertFirst, int64(0)
	if revision, ok := r.expected.Revision(); ok {
		if revision >= math.MaxInt64 {
			return false, nil
		}
		statement, at = w.insertBehind, int64(revision)+1
	}
	err = w.insert(ctx, statement, r, at, r.events[0])
	if errors.Is(err, errElsewhere) {
		return false, nil
	}
	return err == nil, err
}

// errElsewhere: the stream is not at the revision before the inserted one.
var errElsewhere = errors.New("the stream is elsewhere")

func (w *writer) insert(ctx context.Context, statement *stmt, r *request, revision int64, e eventlog.Proposed) error {
	data := e.Data
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	changed, position, err := statement.exec(ctx,
		r.stream, revision, e.ID[:], e.Type, e.Time.Unix(), int64(e.Time.Nanosecond()), data)
	if err != nil {
		return err
	}
	if changed == 0 {
		return errElsewhere
	}
	r.added = true
	r.appended = eventlog.Appended{Revision: uint64(revision), Position: positionOf(position)}
	return nil
}

func (w *writer) newest(ctx context.Context, stream string) (revision int64, exists bool, err error) {
	err = w.selectNewest.query(ctx, w.row[:1], func() (bool, error) {
		var ok bool
		if revision, ok = w.row[0].(int64); !ok {
			return false, &DamagedError{Path: w.path, Detail: fmt.Sprintf("the newest revision of %s is %v", stream, w.row[0])}
		}
		exists = true
		return false, nil
	}, stream)
	return revision, exists, err
}

// placeOf says at which revision an append would put its first event, and
// whether the stream, whose next revision is next, is there.
func placeOf(expected eventlog.Expected, next int64) (first int64, at bool) {
	revision, exactly := expected.Revision()
	switch {
	case expected.IsAny():
		return next, true
	case !exactly: // NoStream
		return 0, next == 0
	case revision >= math.MaxInt64:
		return math.MaxInt64, false
	default:
		return int64(revision) + 1, next == int64(revision)+1
	}
}

// isRepeat reports whether the events are recorded already where they would
// have gone: from first on or, with Any, as the newest of the stream. Then the
// outcome is the one of the first append. With Any it also reports whether only
// some of them are among the newest ones: that is the only trace of an append
// that is repeated in part.
func (w *writer) isRepeat(ctx context.Context, r *request, first, next int64) (repeated, overlaps bool, err error) {
	n := int64(len(r.events))
	if r.expected.IsAny() {
		first = max(0, next-n)
	}
	if first > next-n && !r.expected.IsAny() {
		return false, false, nil
	}
	i, same, position := 0, true, int64(0)
	err = w.selectIDs.query(ctx, w.row[:2], func() (bool, error) {
		id, _ := w.row[0].([]byte)
		same = same && string(id) == string(r.events[i].ID[:])
		overlaps = overlaps || r.expected.IsAny() && r.has(id)
		position, i = w.row[1].(int64), i+1
		return same || r.expected.IsAny() && !overlaps, nil
	}, r.stream, first, n)
	if err != nil || !same || int64(i) < n {
		return false, overlaps, err
	}
	r.appended = eventlog.Appended{Revision: uint64(first + n - 1), Position: positionOf(position)}
	return true, false, nil
}

// has reports whether one of the events has the id.
func (r *request) has(id []byte) bool {
	return slices.ContainsFunc(r.events, func(e eventlog.Proposed) bool { return string(e.ID[:]) == string(id) })
}

func positionOf(rowid int64) eventlog.Position {
	return eventlog.NewPosition(uint64(rowid), uint64(rowid))
}
