package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// DefaultLimit is the length of an answer whose filter names none.
const DefaultLimit = 100

// Filter chooses jobs. What is zero does not restrict.
type Filter struct {
	Phase job.Phase
	Bot   int64
	Kind  string
	Chat  int64
	User  int64

	Operation string // the operation id, whole
	CRMID     string // the lead's id, whole; also of jobs whose lead another job made
	Text      string // part of an event key, stream, business key, operation id or CRM id; this alone reads every job

	Human   bool      // only jobs that wait for an operator
	Stopped bool      // only jobs that an event stopped
	Since   time.Time // accepted then or later

	OldestFirst bool  // else the newest first
	After       int64 // the Number of the last one on the page before
	Limit       int   // 0: DefaultLimit
}

// Jobs lists jobs in the order in which the log accepted them.
func (s *Store) Jobs(ctx context.Context, f Filter) ([]Job, error) {
	where, args := f.where()
	return list(ctx, s, "SELECT "+columnList("j.")+" FROM jobs j"+where, args, scanJob)
}

// ErrNoJob: the read models have no such job. It may not have been applied yet.
var ErrNoJob = errors.New("no such job in the read models")

// Job is the job with the event key, or on the stream of that name.
func (s *Store) Job(ctx context.Context, key string) (Job, error) {
	stream := key
	if !isJob(key) {
		k, err := job.ParseKey(key)
		if err != nil {
			return Job{}, err
		}
		stream = k.Stream()
	}
	jobs, err := list(ctx, s, "SELECT "+columnList("j.")+" FROM jobs j WHERE j.stream = ?", []any{stream}, scanJob)
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("%s: %w", key, ErrNoJob)
	}
	if err != nil {
		return Job{}, err
	}
	return jobs[0], nil
}

func scanJob(rows *sql.Rows) (j Job, err error) {
	err = rows.Scan(j.fields()...)
	return j, err
}

// conditions is a WHERE clause under construction.
type conditions struct {
	terms []string
	args  []any
}

func (c *conditions) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

// page ends the clause with the order, the cursor and the limit.
func (c *conditions) page(by string, f Filter) (where string, args []any) {
	order, beyond := " DESC", " < ?"
	if f.OldestFirst {
		order, beyond = " ASC", " > ?"
	}
	if f.After != 0 {
		c.add(by+beyond, f.After)
	}
	if len(c.terms) > 0 {
		where = " WHERE " + strings.Join(c.terms, " AND ")
	}
	limit := f.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	return where + " ORDER BY " + by + order + " LIMIT ?", append(c.args, limit)
}

func (f Filter) where() (string, []any) {
	c := f.conditions()
	return c.page("j.number", f)
}

// conditions restate the conditions of the partial indexes, so that SQLite sees
// that it may use them.
func (f Filter) conditions() *conditions {
	c := &conditions{}
	for _, t := range []struct {
		set  bool
		term string
		args []any
	}{
		{f.Phase != "", "j.phase = ?", []any{string(f.Phase)}},
		{f.Bot != 0, "j.bot = ?", []any{f.Bot}},
		{f.Kind != "", "j.kind = ?", []any{f.Kind}},
		{f.Chat != 0, "j.chat = ? AND j.chat != 0", []any{f.Chat}},
		{f.User != 0, "j.user = ? AND j.user != 0", []any{f.User}},
		{f.Operation != "", "j.operation_id = ? AND j.operation_id != ''", []any{f.Operation}},
		{f.CRMID != "", "(j.crm_id = ? AND j.crm_id != '' OR j.shared_crm_id = ? AND j.shared_crm_id != '')", []any{f.CRMID, f.CRMID}},
		{f.Text != "", "(instr(j.event_key, ?) OR instr(j.stream, ?) OR instr(j.business_key, ?) OR instr(j.operation_id, ?) OR instr(j.crm_id, ?) OR instr(j.shared_crm_id, ?))",
			[]any{f.Text, f.Text, f.Text, f.Text, f.Text, f.Text}},
		{f.Human, "j.human", nil},
		{f.Stopped, "j.stopped_position != ''", nil},
		{!f.Since.IsZero(), "j.received_at >= ?", []any{stampText(f.Since)}},
	} {
		if t.set {
			c.add(t.term, t.args...)
		}
	}
	return c
}

// list runs a query and collects its rows.
func list[T any](ctx context.Context, s *Store, query string, args []any, scan func(*sql.Rows) (T, error)) ([]T, error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.explain(fmt.Errorf("query the read models: %w", err))
	}
	defer rows.Close()
	all := []T{}
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, s.explain(fmt.Errorf("query the read models: %w", err))
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(fmt.Errorf("query the read models: %w", err))
	}
	return all, nil
}
