package projections_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// sqlOpen is a plain connection to a file of read models.
func sqlOpen(t failer, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return db
}

// dump is every row of every table and view, and the schema. Left out are the
// generation, which is random, and what a rebuild left that was cut short.
func dump(t failer, path string) string {
	t.Helper()
	db := sqlOpen(t, path)
	defer db.Close()
	var b strings.Builder
	for _, o := range query(t, db, "SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE instr(name, 'next_') = 0 ORDER BY name") {
		// A table that was renamed is spelt with quotes.
		fmt.Fprintln(&b, strings.ReplaceAll(fmt.Sprint(o...), `"`, ""))
		kind, name := o[0], o[1].(string)
		if kind != "table" && kind != "view" {
			continue
		}
		what := "SELECT * FROM " + name
		if name == "checkpoints" {
			what = "SELECT name, position, stream, revision, event_id, event_time, jobs FROM checkpoints WHERE name = 'live'"
		}
		var lines []string
		for _, row := range query(t, db, what) {
			lines = append(lines, fmt.Sprint(row...))
		}
		slices.Sort(lines)
		fmt.Fprintln(&b, strings.Join(lines, "\n"))
	}
	return b.String()
}

func query(t failer, db *sql.DB, text string, args ...any) (all [][]any) {
	t.Helper()
	rows, err := db.Query(text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatalf("%v", err)
	}
	for rows.Next() {
		row := make([]any, len(names))
		to := make([]any, len(names))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatalf("%v", err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v", err)
	}
	return all
}

// firstDifference makes a failed comparison of two dumps readable.
func firstDifference(a, b string) string {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(left), len(right)) {
		if left[i] != right[i] {
			return fmt.Sprintf("line %d:\n  %s\n  %s", i, left[i], right[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(left), len(right))
}

// shortLog shows the first n events of a log.
type shortLog struct {
	eventlog.Log
	n int
}

func (l shortLog) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		n := 0
		for r, err := range l.Log.ReadAll(ctx, eventlog.Start) {
			if n++; n > l.n {
				return
			}
			if err == nil && r.Position.Compare(after) <= 0 {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func readLog(t testing.TB, log eventlog.Log) (all []eventlog.Recorded) {
	t.Helper()
	for r, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}
