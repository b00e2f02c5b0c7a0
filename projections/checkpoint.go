package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// checkpointsTable has one row per set of tables. The generation is drawn at
// random when a set is made: with the position it tells whether the set is still
// as a feeder knows it.
const checkpointsTable = `
CREATE TABLE checkpoints (
	name       TEXT    PRIMARY KEY,
	generation INTEGER NOT NULL,
	position   TEXT    NOT NULL, -- commit/prepare
	stream     TEXT    NOT NULL,
	revision   INTEGER NOT NULL,
	event_id   BLOB    NOT NULL,
	event_time TEXT    NOT NULL,
	jobs       INTEGER NOT NULL  -- number of the newest job
) STRICT`

// head is how far a set of tables has come.
type head struct {
	generation int64
	at         eventlog.Checkpoint
	time       time.Time // of the event at the checkpoint
	jobs       int64
}

const (
	selectHead = `SELECT generation, position, stream, revision, event_id, event_time, jobs FROM checkpoints WHERE name = ?`
	insertHead = `INSERT INTO checkpoints (name, generation, position, stream, revision, event_id, event_time, jobs)
		VALUES (?, random(), '0/0', '', 0, zeroblob(16), '', 0)`
	updateHead = `UPDATE checkpoints SET position = ?, stream = ?, revision = ?, event_id = ?, event_time = ?, jobs = ? WHERE name = ?`
)

// checkpointName is the row of a set.
func checkpointName(set string) string { return set + "live" }

func scanHead(row *sql.Row) (h head, err error) {
	var position string
	var id []byte
	err = row.Scan(&h.generation, &position, &h.at.Stream, &h.at.Revision, &id, (*stamp)(&h.time), &h.jobs)
	if err != nil {
		return head{}, fmt.Errorf("read the checkpoint: %w", err)
	}
	if len(id) != len(h.at.EventID) {
		return head{}, fmt.Errorf("read the checkpoint: an event id of %d bytes", len(id))
	}
	copy(h.at.EventID[:], id)
	if h.at.Position, err = eventlog.ParsePosition(position); err != nil {
		return head{}, fmt.Errorf("read the checkpoint: %w", err)
	}
	return h, nil
}

func (s *session) readHead(ctx context.Context, set string) (head, error) {
	st, err := s.stmt(ctx, selectHead)
	if err != nil {
		return head{}, err
	}
	return scanHead(st.QueryRowContext(ctx, checkpointName(set)))
}

func (s *session) writeHead(ctx context.Context, set string, h head) error {
	return s.exec(ctx, updateHead, h.at.Position.String(), h.at.Stream, int64(h.at.Revision),
		h.at.EventID[:], stampText(h.time), h.jobs, checkpointName(set))
}

// Checkpoint is how far the read models have come.
func (s *Store) Checkpoint(ctx context.Context) (eventlog.Checkpoint, error) {
	h, err := s.head(ctx)
	return h.at, err
}

func (s *Store) head(ctx context.Context) (head, error) {
	h, err := scanHead(s.db.QueryRowContext(ctx, selectHead, checkpointName(liveSet)))
	return h, s.explain(err)
}

// Lag is how far the read models are behind the log.
type Lag struct {
	Checkpoint eventlog.Position
	Tail       eventlog.Position // of the log; its newest event may be on a stream that no read model is about
	Behind     bool
	Since      time.Time // when the oldest event that is not applied yet happened
}

// Behind compares the read models with the log. It reads the log from the
// checkpoint to the next event of a job.
func (s *Store) Behind(ctx context.Context, log eventlog.Log) (Lag, error) {
	h, err := s.head(ctx)
	if err != nil {
		return Lag{}, err
	}
	lag := Lag{Checkpoint: h.at.Position}
	if lag.Tail, err = log.Tail(ctx); err != nil {
		return Lag{}, fmt.Errorf("compare the read models with the log: %w", err)
	}
	for r, err := range log.ReadAll(ctx, h.at.Position) {
		if err != nil {
			return Lag{}, fmt.Errorf("compare the read models with the log: %w", err)
		}
		if isJob(r.Stream) {
			lag.Behind, lag.Since = true, r.Time
			break
		}
	}
	return lag, nil
}

// errMoved: the set is not where a batch begins; read on from where it is.
var errMoved = errors.New("the read models were reset or replaced meanwhile")
