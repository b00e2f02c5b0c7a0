package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Limits of a batch; its last append may go over them. They bound how long one
// transaction keeps other processes out, and how far the WAL grows in one go.
const (
	batchEvents = 1000
	batchBytes  = 8 << 20
)

// writer is the one connection that writes. After a failure whose state is in
// doubt it has none, and the next batch opens a new one.
type writer struct {
	path string
	opts Options
	conn *conn

	// The files of conn; without one, the log file alone.
	files   atomic.Pointer[files]
	missing bool // one of them, when last looked at

	begin, commit, rollback   *stmt
	insertFirst, insertBehind *stmt
	selectNewest, selectIDs   *stmt
	row                       [2]driver.Value
}

// openWriter opens the file, and makes its schema when it is empty.
func openWriter(ctx context.Context, path string, opts Options) (*writer, error) {
	w := &writer{path: path, opts: opts}
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *writer) connect(ctx context.Context) error {
	c, err := connect(ctx, w.path, readWrite, w.opts.BusyTimeout, w.opts.vfs)
	if err != nil {
		return fmt.Errorf("log file %s: %w", w.path, err)
	}
	w.conn = c
	err = func() error {
		if err := establish(ctx, c, w.path); err != nil {
			return err
		}
		if err := configureWriter(ctx, c, w.path, w.opts.BusyTimeout); err != nil {
			return err
		}
		if err := settle(ctx, c, w.path, w.opts.BusyTimeout); err != nil {
			return err
		}
		// From here on the lock is awaited by whileBusy.
		if err := c.exec(ctx, "PRAGMA busy_timeout = 0"); err != nil {
			return err
		}
		if err := w.prepare(ctx); err != nil {
			return err
		}
		open, err := filesOf(ctx, c, w.path)
		if err == nil {
			w.files.Store(&open)
		}
		return err
	}()
	if err != nil {
		w.conn.drop()
		w.conn = nil
	}
	return err
}

func (w *writer) prepare(ctx context.Context) error {
	for _, p := range []struct {
		to    **stmt
		query string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.commit, "COMMIT"},
		{&w.rollback, "ROLLBACK"},
		{&w.insertFirst, insertFirst},
		{&w.insertBehind, insertBehind},
		{&w.selectNewest, selectNewest},
		{&w.selectIDs, selectIDs},
	} {
		s, err := w.conn.prepare(ctx, p.query)
		if err != nil {
			return fmt.Errorf("log file %s: %w", w.path, err)
		}
		*p.to = s
	}
	return nil
}

func (w *writer) close() error {
	if w.conn == nil {
		return nil
	}
	return w.conn.close()
}

// write is the writer's goroutine. It ends when the queue is closed and empty.
func (l *Log) write(ctx context.Context, w *writer) {
	defer close(l.written)
	for first := range l.queue {
		l.record(ctx, w, first)
	}
	l.readers.close()
	// The last, so that it can move the whole WAL into the file.
	l.failed = w.close()
}

// record makes one batch of first and of what waits behind it.
func (l *Log) record(ctx context.Context, w *writer, first *request) {
	l.held.Store(1)
	l.letOthersAppend()
	err := w.start(ctx)
	// Only now: what came while the lock was awaited comes along.
	batch := l.collect(first)
	l.held.Store(0)
	if err != nil {
		finish(batch, func(r *request) { r.err = r.unavailable(err) })
		return
	}
	added := 0
	for _, r := range batch {
		if err := w.apply(ctx, r); err != nil {
			w.abandon(ctx)
			finish(batch, func(r *request) { r.err = r.unavailable(err) })
			return
		}
		if r.added {
			added += len(r.events)
		}
	}
	_, _, err = w.commit.exec(ctx)
	if err == nil && l.opts.loseAck != nil {
		err = l.opts.loseAck()
	}
	if err == nil {
		err = w.intact() // before anyone is told
	}
	if err != nil {
		w.abandon(ctx)
		finish(batch, func(r *request) { r.fail(err) })
		return
	}
	if added > 0 {
		l.batches.Add(1)
		l.events.Add(uint64(added))
		l.news.broadcast()
	}
	finish(batch, func(*request) {})
}

// letOthersAppend gives way to the goroutines that are ready to run, for as long
// as they add to the queue: what they append comes along under the same sync. It
// is no linger, for on an idle machine it returns at once.
func (l *Log) letOthersAppend() {
	for queued := -1; queued < len(l.queue) && len(l.queue) < cap(l.queue); {
		queued = len(l.queue)
		runtime.Gosched()
	}
}

// start begins a transaction, on a new connection if there is none.
func (w *writer) start(ctx context.Context) error {
	if w.conn == nil || w.missing {
		if err := w.intact(); err != nil {
			return err
		}
	}
	if w.conn == nil {
		if err := w.connect(ctx); err != nil {
			return err
		}
	}
	err := whileBusy(ctx, w.opts.BusyTimeout, func() (bool, error) {
		_, _, err := w.begin.exec(ctx)
		if isBusy(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil && !errors.Is(err, errBusy) {
		w.drop()
	}
	return err
}

// abandon rolls the transaction back. SQLite has already done so after some
// errors; the connection is then not trusted any further.
func (w *writer) abandon(ctx context.Context) {
	if _, _, err := w.rollback.exec(ctx); err != nil {
		w.drop()
	}
}

// drop closes a connection in doubt; the next batch opens another one. While
// a file is missing it is kept, since it alone still reaches what was
// recorded there, and since a new one would make a second WAL.
func (w *writer) drop() {
	if w.intact() != nil {
		return
	}
	// First, because closing the last connection removes the WAL.
	logFile := (*w.files.Load())[:1]
	w.files.Store(&logFile)
	w.conn.drop()
	w.conn = nil
}

// intact is an error when what was recorded would not be found at its path.
func (w *writer) intact() error {
	err := w.files.Load().check()
	w.missing = err != nil
	return err
}

// collect takes what waits in the queue, up to the limits of a batch.
func (l *Log) collect(first *request) []*request {
	var batch []*request
	events, bytes := 0, 0
	for r := first; r != nil; r = l.waiting() {
		if !r.take() {
			continue
		}
		batch = append(batch, r)
		events += len(r.events)
		bytes += r.size()
		if events >= batchEvents || bytes >= batchBytes {
			break
		}
	}
	return batch
}

// waiting is the next request in the queue; nil when there is none now.
func (l *Log) waiting() *request {
	select {
	case r := <-l.queue: // nil when closed
		return r
	default:
		return nil
	}
}

// fail gives r its outcome after a COMMIT that failed. BUSY and FULL are said
// before the record that commits is written, so nothing was recorded; after
// any other error it may be, and may even come back with a recovery. A
// conflict is not told as one, because it may have been with an event of the
// same batch.
func (r *request) fail(err error) {
	conflict := r.err != nil
	r.appended = eventlog.Appended{}
	if conflict || isBusy(err) || isFull(err) {
		r.err = r.unavailable(err)
		return
	}
	r.err = &eventlog.UnknownError{Stream: r.stream, Err: err}
}

func finish(batch []*request, outcome func(*request)) {
	for _, r := range batch {
		outcome(r)
		close(r.done)
	}
}
