package projections

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"
)

// nanosBetween is SQL for the time from one stamp to a later one, exactly: whole
// seconds, and nine digits behind the point, which older releases of SQLite would
// round. More than 292 years are cut to that by the cast.
func nanosBetween(from, to string) string {
	return strings.NewReplacer("from", from, "to", to).Replace(`CAST(
		(unixepoch(substr(to, 1, 19)) - unixepoch(substr(from, 1, 19))) * 1000000000
		+ substr(to, 21, 9) - substr(from, 21, 9) AS INTEGER)`)
}

var timingsModel = model{
	name: "timings",
	derived: `
CREATE VIEW timings AS SELECT
	number, stream, event_key, received_at, first_claimed_at, finished_at,
	CASE WHEN first_claimed_at != '' THEN ` + nanosBetween("received_at", "first_claimed_at") + ` END AS to_claim_ns,
	CASE WHEN finished_at != '' THEN ` + nanosBetween("received_at", "finished_at") + ` END AS to_finish_ns
FROM jobs WHERE received_at != '';`,
}

// Timings is how long jobs took from their acceptance on, by the times of their
// events. Clocks of two processes may differ, so a duration can be negative.
type Timings struct {
	ToClaim  Quantiles `json:"to_claim"`  // to the first claim
	ToFinish Quantiles `json:"to_finish"` // to the final phase
}

// Quantiles are nearest-rank; zero when Count is.
type Quantiles struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// Timings is over the jobs that were accepted at since or later; the zero time
// means all of them. It reads each of these jobs.
func (s *Store) Timings(ctx context.Context, since time.Time) (Timings, error) {
	var claim, finish []time.Duration
	_, err := list(ctx, s, "SELECT to_claim_ns, to_finish_ns FROM timings WHERE received_at >= ?", []any{stampText(since)},
		func(rows *sql.Rows) (struct{}, error) {
			var toClaim, toFinish sql.NullInt64
			err := rows.Scan(&toClaim, &toFinish)
			if toClaim.Valid {
				claim = append(claim, time.Duration(toClaim.Int64))
			}
			if toFinish.Valid {
				finish = append(finish, time.Duration(toFinish.Int64))
			}
			return struct{}{}, err
		})
	return Timings{ToClaim: quantiles(claim), ToFinish: quantiles(finish)}, err
}

func quantiles(d []time.Duration) Quantiles {
	if len(d) == 0 {
		return Quantiles{}
	}
	slices.Sort(d)
	rank := func(q float64) time.Duration { return d[max(0, int(math.Ceil(q*float64(len(d))))-1)] }
	return Quantiles{Count: int64(len(d)), P50: rank(0.5), P90: rank(0.9), P99: rank(0.99), Max: d[len(d)-1]}
}
