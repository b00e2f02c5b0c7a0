package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// Options may be left zero.
type Options struct {
	// Reset hears why the models were wiped, each time it happens; the next
	// CatchUp or Follow builds them again. It must not call the Store.
	Reset func(reason string)

	// SetAside makes Open check the whole file, rename a damaged one to
	// <path>.damaged and begin with an empty one. It is for a rebuild that an
	// operator asked for, while no other process has the file open.
	SetAside bool
}

// Store is the read models in one file. Its methods are safe for concurrent
// use, and other processes may use the file at the same time.
type Store struct {
	path string
	opts Options
	db   *sql.DB

	feeding sync.Mutex // held for one batch
	live    *writer    // made by the first batch

	// For tests.
	beforeCommit           func() error
	batchMost, rebuildMost int
}

const (
	// busyTimeout is how long one try waits for another process's write lock;
	// a feeder tries until its context ends.
	busyTimeout = time.Second

	// connections: feeders and a rebuild have one each.
	connections = 6
)

// Open opens the file at path, and makes it, for its owner alone, when there is
// none. It never asks the log. Models of another version are wiped. Its error is
// one line that names the file and the mend; ErrDamaged is among them.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("read models %s: %w", path, err)
	}
	if opts.Reset == nil {
		opts.Reset = func(string) {}
	}
	s, err := open(ctx, path, opts)
	if opts.SetAside && errors.Is(err, ErrDamaged) {
		reason := err.Error()
		if err := setAside(path); err != nil {
			return nil, fmt.Errorf("read models %s: set the damaged file aside: %w", path, err)
		}
		if s, err = open(ctx, path, opts); err == nil {
			opts.Reset(reason + "; it is now " + path + asideSuffix)
		}
	}
	return s, err
}

func open(ctx context.Context, path string, opts Options) (*Store, error) {
	db, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("read models %s: %w", path, err)
	}
	s := &Store{path: path, opts: opts, db: db, batchMost: batchMost, rebuildMost: rebuildMost}
	if err := s.establish(ctx); err != nil {
		return nil, errors.Join(s.explain(err), db.Close())
	}
	return s, nil
}

// Close closes the file. It waits for a batch that is being written.
func (s *Store) Close() error {
	s.feeding.Lock()
	defer s.feeding.Unlock()
	var err error
	if s.live != nil {
		err = s.live.close()
		s.live = nil
	}
	return errors.Join(err, s.db.Close())
}

// ErrDamaged: the file is no database, or a broken one.
var ErrDamaged = errors.New(`the file is damaged: stop leadonce and run "leadonce projections rebuild"`)

// explain names the file, and the mend where the file is at fault.
func (s *Store) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case isDamage(err):
		return fmt.Errorf("read models %s: %w: %w", s.path, ErrDamaged, err)
	default:
		return fmt.Errorf("read models %s: %w", s.path, err)
	}
}
