package projections

import (
	"context"
	"database/sql"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

var duplicatesModel = model{
	name: "duplicates",
	tables: `
CREATE TABLE {duplicates} (
	number   INTEGER PRIMARY KEY, -- of the job
	n        INTEGER NOT NULL,
	first_at TEXT    NOT NULL,
	last_at  TEXT    NOT NULL,
	reason   TEXT    NOT NULL
) STRICT;`,
	record: func() recorder { return duplicatesRecorder{} },
}

type duplicatesRecorder struct{ unbuffered }

func (duplicatesRecorder) apply(ctx context.Context, s *session, c *change) error {
	e, ok := c.event.(job.DeliveryRepeated)
	if !ok {
		return nil
	}
	at := stampText(c.Time)
	return s.exec(ctx, `INSERT INTO {duplicates} (number, n, first_at, last_at, reason) VALUES (?, 1, ?, ?, ?)
		ON CONFLICT (number) DO UPDATE SET n = n + 1, last_at = excluded.last_at, reason = excluded.reason`,
		c.row.job.Number, at, at, e.Reason)
}

// Duplicate is the later deliveries of one update.
type Duplicate struct {
	Number  int64     `json:"number"` // of the job
	Key     string    `json:"event_key"`
	Count   int64     `json:"count"` // at most job.MaxRepeats are recorded
	FirstAt time.Time `json:"first_at"`
	LastAt  time.Time `json:"last_at"`
	Reason  string    `json:"reason"` // why the last one was judged a duplicate
}

// Duplicates answers for the jobs of the filter that were delivered repeatedly.
func (s *Store) Duplicates(ctx context.Context, f Filter) ([]Duplicate, error) {
	where, args := f.where()
	query := `SELECT d.number, j.event_key, d.n, d.first_at, d.last_at, d.reason
		FROM duplicates d JOIN jobs j USING (number)` + where
	return list(ctx, s, query, args, func(rows *sql.Rows) (d Duplicate, err error) {
		err = rows.Scan(&d.Number, &d.Key, &d.Count, (*stamp)(&d.FirstAt), (*stamp)(&d.LastAt), &d.Reason)
		return d, err
	})
}
