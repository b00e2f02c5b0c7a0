package projections

import (
	"context"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// BeforeCommit sets what runs at the end of each batch's transaction.
func (s *Store) BeforeCommit(hook func() error) {
	s.feeding.Lock()
	defer s.feeding.Unlock()
	s.beforeCommit = hook
}

// Settled waits until no batch is being written.
func (s *Store) Settled() {
	s.feeding.Lock()
	defer s.feeding.Unlock()
}

// Offer writes the events as a batch that begins behind after.
func (s *Store) Offer(ctx context.Context, after eventlog.Position, events ...eventlog.Recorded) (applied int, err error) {
	b := batch{after: after}
	for _, r := range events {
		if a, ours := arrive(r); ours {
			b.arrivals = append(b.arrivals, a)
		}
	}
	if len(b.arrivals) == 0 {
		return 0, nil
	}
	return s.writeLive(ctx, b)
}

// What the tests of the file's version need.
var (
	ErrMoved        = errMoved
	ErrOtherVersion = errOtherVersion
	FileVersion     = fileVersion
)

// InBatchesOf makes every transaction that small.
func (s *Store) InBatchesOf(events int) { s.batchMost, s.rebuildMost = events, events }

// DecodeState reads the column state.
var DecodeState = decodeState

// Plan is how SQLite answers Jobs.
func (s *Store) Plan(ctx context.Context, f Filter) (plan string, err error) {
	where, args := f.where()
	rows, err := s.db.QueryContext(ctx, "EXPLAIN QUERY PLAN SELECT j.number FROM jobs j"+where, args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return "", err
		}
		plan += detail + "\n"
	}
	return plan, rows.Err()
}
