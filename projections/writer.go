package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// writer feeds one set of tables. Between two batches it remembers the head and
// the rows it met last; both are true only while the head in the file is the one
// it knows. It is not safe for concurrent use.
type writer struct {
	*session
	set       string
	owned     int64 // the only generation that it may feed; 0: any
	head      head
	rows      rowCache
	recorders []recorder
}

func newWriter(ctx context.Context, db *sql.DB, set string) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{session: newSession(conn, set), set: set}
	w.forget()
	return w, nil
}

// forget drops what is remembered.
func (w *writer) forget() {
	w.head, w.rows, w.recorders = head{}, rowCache{}, nil
	for _, m := range models {
		if m.record != nil {
			w.recorders = append(w.recorders, m.record())
		}
	}
}

// batch is consecutive events of jobs: no such event lies between after and the
// first, or between two of them.
type batch struct {
	after    eventlog.Position
	arrivals []arrival
}

// write applies what of the batch is behind the checkpoint, in one transaction.
// It fails with errMoved when the checkpoint is before the batch.
func (w *writer) write(ctx context.Context, b batch, beforeCommit func() error) (applied int, err error) {
	err = transact(ctx, w.conn, func(ctx context.Context) error {
		if err := w.reload(ctx); err != nil {
			return err
		}
		if w.head.at.Position.Compare(b.after) < 0 {
			return errMoved
		}
		if applied, err = w.applyAll(ctx, b.arrivals); err != nil || applied == 0 {
			return err
		}
		if err := w.writeHead(ctx, w.set, w.head); err != nil {
			return err
		}
		if beforeCommit != nil {
			return beforeCommit()
		}
		return nil
	})
	if err != nil {
		w.forget() // it is ahead of the file
		return 0, err
	}
	w.rows.age()
	return applied, nil
}

// errOtherVersion: the file was taken over by another release.
var errOtherVersion = errors.New("another release of leadonce has taken the file over: end this process")

// reload compares the file's head with the known one, under the write lock.
func (w *writer) reload(ctx context.Context) error {
	var version int64
	if err := w.scan(ctx, "PRAGMA user_version", nil, &version); err != nil {
		return err
	}
	if version != fileVersion {
		return errOtherVersion
	}
	h, err := w.readHead(ctx, w.set)
	if w.owned != 0 && (errors.Is(err, sql.ErrNoRows) || err == nil && h.generation != w.owned) {
		return ErrOvertaken
	}
	if err != nil || h == w.head {
		return err
	}
	w.forget()
	w.head = h
	return nil
}

func (w *writer) applyAll(ctx context.Context, arrivals []arrival) (applied int, err error) {
	for _, a := range arrivals {
		if a.Recorded.Position.Compare(w.head.at.Position) <= 0 {
			continue
		}
		if err := w.apply(ctx, a); err != nil {
			return 0, fmt.Errorf("apply event %d of %s: %w", a.Revision, a.Stream, err)
		}
		w.head.at, w.head.time = eventlog.CheckpointOf(a.Recorded), a.Time
		applied++
	}
	for _, r := range w.recorders {
		if err := r.flush(ctx, w.session); err != nil {
			return 0, err
		}
	}
	return applied, nil
}

// apply folds one event into its job and shows the change to every model.
func (w *writer) apply(ctx context.Context, a arrival) error {
	r, first, err := w.row(ctx, a)
	if err != nil || r.job.Stopped != (Stop{}) {
		return err
	}
	c := change{arrival: a, row: r, first: first, before: r.state, after: r.state}
	reason := a.fault
	if reason == "" {
		reason = a.misplaced(r.state)
	}
	if reason == "" {
		r.state = r.state.Evolve(a.event, a.Time)
		c.after = r.state
		r.job.observe(a, c.before, c.after)
	} else {
		c.stopped, c.event = true, nil
		r.job.Stopped = Stop{
			Position: a.Recorded.Position.String(), Revision: a.Revision,
			Type: a.Type, UnknownType: a.unknown, At: instant(a.Time), Reason: reason,
		}
	}
	for _, m := range w.recorders {
		if err := m.apply(ctx, w.session, &c); err != nil {
			return err
		}
	}
	return nil
}

// row is the job of the event's stream; first: it was not known before.
func (w *writer) row(ctx context.Context, a arrival) (r *row, first bool, err error) {
	if r = w.rows.get(a.Stream); r != nil {
		return r, false, nil
	}
	if a.Revision > 0 {
		if r, err = loadRow(ctx, w.session, a.Stream); err != nil {
			return nil, false, err
		}
	}
	if r == nil {
		first = true
		w.head.jobs++
		r = &row{job: Job{Number: w.head.jobs, Stream: a.Stream, Phase: job.New}}
	}
	w.rows.put(a.Stream, r)
	return r, first, nil
}

// rowCache has the rows of the last transactions: the events of one job come
// close to each other. It is two maps, so that forgetting costs nothing.
type rowCache struct{ hot, cold map[string]*row }

const hotRows = 4096

func (c *rowCache) get(stream string) *row {
	if r, ok := c.hot[stream]; ok {
		return r
	}
	r, ok := c.cold[stream]
	if ok {
		c.put(stream, r)
	}
	return r
}

func (c *rowCache) put(stream string, r *row) {
	if c.hot == nil {
		c.hot = map[string]*row{}
	}
	c.hot[stream] = r
}

// age forgets what was not asked for lately. It is called between transactions:
// within one, a row that waits to be written must be found again.
func (c *rowCache) age() {
	if len(c.hot) > hotRows {
		c.hot, c.cold = nil, c.hot
	}
}
