package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

const (
	// batchMost bounds the events of a transaction beside which others live: a
	// reader waits for none, another feeder for about 20 ms.
	batchMost = 1000

	// rebuildMost is for a set that nobody else uses.
	rebuildMost = 10000
)

// Progress is how far one call has come.
type Progress struct {
	Events   int64             // applied by this call
	Position eventlog.Position // of the newest of them
	UpTo     time.Time         // when that one happened
}

// CatchUp applies what the log has behind the checkpoint, up to its tail as it
// is met. progress, which may be nil, is called between transactions.
func (s *Store) CatchUp(ctx context.Context, log eventlog.Log, progress func(Progress)) error {
	for {
		h, err := s.verify(ctx, log)
		if err != nil {
			return err
		}
		err = s.pump(ctx, pumping{
			write: s.writeLive, source: readAll(log, h.at.Position), after: h.at.Position,
			most: s.batchMost, full: true, progress: progress,
		})
		if !errors.Is(err, errMoved) {
			return s.wrap("catch up", err)
		}
	}
}

// Follow catches up, applies each new event, and returns only with an error: the
// context's, the log's or the file's. Calling it again goes on. Under load a
// transaction takes what has arrived, up to 1,000 events; the log's subscription
// waits while one is written and that many more have arrived.
func (s *Store) Follow(ctx context.Context, log eventlog.Log) error {
	for {
		if err := s.CatchUp(ctx, log, nil); err != nil {
			return err
		}
		h, err := s.head(ctx)
		if err != nil {
			return err
		}
		err = s.pump(ctx, pumping{
			write: s.writeLive, source: subscribe(log, h.at.Position), after: h.at.Position, most: s.batchMost,
		})
		if !errors.Is(err, errMoved) {
			return s.wrap("follow the log", err)
		}
	}
}

func (s *Store) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return s.explain(fmt.Errorf("%s: %w", doing, err))
}

// writeLive is one batch for the live set.
func (s *Store) writeLive(ctx context.Context, b batch) (int, error) {
	s.feeding.Lock()
	defer s.feeding.Unlock()
	if s.live == nil {
		w, err := newWriter(ctx, s.db, liveSet)
		if err != nil {
			return 0, err
		}
		s.live = w
	}
	return s.live.write(ctx, b, s.beforeCommit)
}

// verify answers with a head that belongs to the log, wiping the models when the
// one in the file does not.
func (s *Store) verify(ctx context.Context, log eventlog.Log) (head, error) {
	for {
		h, err := s.head(ctx)
		if err != nil {
			return head{}, err
		}
		reason, err := s.unfit(ctx, log, h)
		if err != nil || reason == "" {
			return h, s.wrap("compare the checkpoint with the log", err)
		}
		if err := s.reset(ctx, h, reason); err != nil {
			return head{}, s.wrap("wipe the models", err)
		}
	}
}

// unfit says why the models cannot be fed any further; empty when they can.
func (s *Store) unfit(ctx context.Context, log eventlog.Log, h head) (reason string, err error) {
	belongs, err := h.at.BelongsTo(ctx, log)
	if err != nil {
		return "", err
	}
	if !belongs {
		return fmt.Sprintf("the checkpoint %s (event %d of %s) is not in this log", h.at.Position, h.at.Revision, h.at.Stream), nil
	}
	rows, err := s.db.QueryContext(ctx, "SELECT DISTINCT stopped_type FROM jobs WHERE stopped_position != '' AND stopped_unknown")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", err
		}
		var unknown *job.UnknownTypeError
		if _, err := job.Decode(name, []byte("{}")); !errors.As(err, &unknown) {
			return fmt.Sprintf("jobs stopped at events of type %s, which this release knows", name), nil
		}
	}
	return "", rows.Err()
}

// reset wipes the models, unless another process has changed them since h.
func (s *Store) reset(ctx context.Context, h head, reason string) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	wiped := false
	err = transact(ctx, conn, func(ctx context.Context) error {
		found, err := identify(ctx, conn)
		if err != nil {
			return err
		}
		if !found.current() {
			return errOtherVersion
		}
		now, err := scanHead(conn.QueryRowContext(ctx, selectHead, checkpointName(liveSet)))
		if err != nil || now != h {
			return err
		}
		wiped = true
		return recreate(ctx, conn)
	})
	if err == nil && wiped {
		s.opts.Reset(reason)
	}
	return err
}
