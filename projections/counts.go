package projections

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

var countsModel = model{
	name: "counts",
	tables: `
CREATE TABLE {counts} (
	what TEXT    PRIMARY KEY, -- phase.<phase>, human, stopped, repeats, incidents
	n    INTEGER NOT NULL
) STRICT;`,
	record: func() recorder { return &countsRecorder{deltas: map[string]int64{}} },
}

const phaseCount = "phase."

type countsRecorder struct{ deltas map[string]int64 }

func (k *countsRecorder) apply(_ context.Context, _ *session, c *change) error {
	if from, to := c.before.Now(), c.after.Now(); c.first || from != to {
		k.deltas[phaseCount+string(to)]++
		if !c.first {
			k.deltas[phaseCount+string(from)]--
		}
	}
	switch {
	case c.after.Human && !c.before.Human:
		k.deltas["human"]++
	case c.before.Human && !c.after.Human:
		k.deltas["human"]--
	}
	if c.stopped {
		k.deltas["stopped"]++
	}
	switch c.event.(type) {
	case job.DeliveryRepeated:
		k.deltas["repeats"]++
	case job.KeyConflicted, job.ReceiptConflicted:
		k.deltas["incidents"]++
	}
	return nil
}

func (k *countsRecorder) flush(ctx context.Context, s *session) error {
	for what, n := range k.deltas {
		err := s.exec(ctx, "INSERT INTO {counts} (what, n) VALUES (?, ?) ON CONFLICT (what) DO UPDATE SET n = n + excluded.n", what, n)
		if err != nil {
			return err
		}
	}
	clear(k.deltas)
	return nil
}

// Counts is the state of all jobs in numbers.
type Counts struct {
	Jobs      int64               `json:"jobs"`
	Phases    map[job.Phase]int64 `json:"phases"`    // every phase, also with none
	Human     int64               `json:"human"`     // wait for an operator
	Stopped   int64               `json:"stopped"`   // by an event that cannot be applied; also counted in their phase
	Repeats   int64               `json:"repeats"`   // deliveries of what was stored already
	Incidents int64               `json:"incidents"` // keys and receipts in conflict

	// Oldest is, for each phase that is not final, when the job was accepted
	// that the log accepted first of those in it. Stopped jobs are left out.
	Oldest map[job.Phase]time.Time `json:"oldest"`
}

// openPhases are those that Counts.Oldest looks at.
var openPhases = []job.Phase{job.Pending, job.Claimed, job.NeedsReconciliation}

// Counts costs the same however many jobs there are. It is one snapshot.
func (s *Store) Counts(ctx context.Context) (Counts, error) {
	counts := Counts{Phases: map[job.Phase]int64{}, Oldest: map[job.Phase]time.Time{}}
	others := map[string]*int64{
		"human": &counts.Human, "stopped": &counts.Stopped, "repeats": &counts.Repeats, "incidents": &counts.Incidents,
	}
	for _, p := range job.Phases {
		counts.Phases[p] = 0
	}
	query, args := "SELECT what, n, '' FROM counts", []any{}
	for _, p := range openPhases {
		query += ` UNION ALL SELECT 'oldest', ?, coalesce((SELECT received_at FROM jobs
			WHERE phase = ? AND stopped_position = '' ORDER BY number LIMIT 1), '')`
		args = append(args, string(p), string(p))
	}
	_, err := list(ctx, s, query, args, func(rows *sql.Rows) (struct{}, error) {
		var what, value string
		var oldest time.Time
		if err := rows.Scan(&what, &value, (*stamp)(&oldest)); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, counts.take(what, value, oldest, others)
	})
	return counts, err
}

// take adds one row of the query in Counts.
func (k *Counts) take(what, value string, oldest time.Time, others map[string]*int64) error {
	if what == "oldest" {
		if !oldest.IsZero() {
			k.Oldest[job.Phase(value)] = oldest
		}
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return fmt.Errorf("count %s: %w", what, err)
	}
	if phase, ok := strings.CutPrefix(what, phaseCount); ok {
		k.Phases[job.Phase(phase)] = n
		k.Jobs += n
	} else if other, ok := others[what]; ok {
		*other = n
	}
	return nil
}
