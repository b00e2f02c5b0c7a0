package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Options may be left zero: each field then has its default.
type Options struct {
	// BusyTimeout is how long an append waits for another process's write
	// lock. Default 5 s.
	BusyTimeout time.Duration

	// QueueLength is how many appends may wait for the writer; more of them
	// block. Default 1024.
	QueueLength int

	// Readers is how many reads run at the same time. Default 4.
	Readers int

	// PollInterval is how often a subscription looks for what other processes
	// appended. Default 200 ms. Appends through the same Log are seen at once.
	PollInterval time.Duration

	// For tests: a VFS that counts and breaks what reaches the disk, and an
	// error in place of the answer to a COMMIT that succeeded.
	vfs     string
	loseAck func() error
}

func (o Options) withDefaults() Options {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.QueueLength <= 0 {
		o.QueueLength = 1024
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.PollInterval <= 0 {
		o.PollInterval = 200 * time.Millisecond
	}
	return o
}

// Log is a log in one SQLite file. Open makes it.
type Log struct {
	path string
	opts Options

	sending sync.RWMutex  // held for reading while an append enters the queue
	closed  chan struct{} // closed when Close begins
	closing sync.Once
	queue   chan *request // closed when no append can enter it any more
	written chan struct{} // closed when the writer has drained the queue
	failed  error         // what closing the writer said; behind written

	readers *pool
	news    signal

	held            atomic.Int64 // the append that the writer has but has not begun
	batches, events atomic.Uint64
}

var _ eventlog.Log = (*Log)(nil)

// errClosed is joined with ErrUnavailable.
var errClosed = errors.New("the log is closed")

// Open opens the log in the file at path, and makes the file, for its owner
// alone, when there is none. Its error is one line that names the file and the
// mend. The end of ctx does not close the log.
func Open(ctx context.Context, path string, opts Options) (*Log, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("log file %s: %w", path, err)
	}
	opts = opts.withDefaults()
	if err := createFile(path); err != nil {
		return nil, fmt.Errorf("log file %s: %w", path, err)
	}
	w, err := openWriter(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	l := &Log{
		path:    path,
		opts:    opts,
		closed:  make(chan struct{}),
		queue:   make(chan *request, opts.QueueLength),
		written: make(chan struct{}),
	}
	// A reader must not see other files than the writer has, nor go on with ones
	// that are gone from their paths.
	l.readers = newPool(opts.Readers, func() error { return w.files.Load().check() }, func(ctx context.Context) (*reader, error) {
		return openReader(ctx, path, opts)
	})
	go l.write(context.WithoutCancel(ctx), w)
	return l, nil
}

// Close takes no more appends, records those that wait, and closes the file.
// Reads that run end with ErrUnavailable.
func (l *Log) Close() error {
	l.closing.Do(func() {
		close(l.closed)
		l.sending.Lock()
		close(l.queue)
		l.sending.Unlock()
	})
	<-l.written
	return l.failed
}

// Stats counts since Open.
type Stats struct {
	Batches uint64 // transactions that recorded something; one fsync each
	Events  uint64 // events in them
	Queued  int    // appends that wait now
}

// Stats is cheap.
func (l *Log) Stats() Stats {
	return Stats{Batches: l.batches.Load(), Events: l.events.Load(), Queued: len(l.queue) + int(l.held.Load())}
}

// unavailable is ErrUnavailable with what was being done and why it failed.
func unavailable(doing string, err error) error {
	return fmt.Errorf("%s: %w: %w", doing, eventlog.ErrUnavailable, err)
}
