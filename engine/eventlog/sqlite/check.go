package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// DamagedError says that the file contradicts itself, so that events would be
// missed or met twice. It is an eventlog.ErrUnavailable, but trying again does
// not help.
type DamagedError struct {
	Path   string
	Detail string // what was met, and where
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the log file %s is damaged: restore it from a backup; `leadonce audit verify` names the place (%s)", e.Path, e.Detail)
}

// Unwrap makes it an eventlog.ErrUnavailable.
func (e *DamagedError) Unwrap() error { return eventlog.ErrUnavailable }

func (l *Log) damaged(format string, args ...any) error {
	return &DamagedError{Path: l.path, Detail: fmt.Sprintf(format, args...)}
}

// selectTail reads two positions, because the newest alone can not show that
// it was renumbered.
const selectTail = `SELECT position FROM events ORDER BY position DESC LIMIT 2`

// tailOf is the newest position, 0 when there is none. Positions have no gaps:
// the rowid is taken inside the transaction, so a conflict or a rollback gives
// it back, and no row ever goes.
func tailOf(ctx context.Context, s *stmt, row []driver.Value, path string) (tail int64, err error) {
	n, before := 0, int64(0)
	err = s.query(ctx, row[:1], func() (bool, error) {
		if n++; n == 1 {
			tail = row[0].(int64)
		} else {
			before = row[0].(int64)
		}
		return true, nil
	})
	if isDamaged(err) {
		return 0, &DamagedError{Path: path, Detail: err.Error()}
	}
	if err == nil && n > 0 && tail != before+1 {
		return 0, &DamagedError{Path: path, Detail: fmt.Sprintf("the newest position is %d, the one before it %d", tail, before)}
	}
	return tail, err
}

// checkLines is how much of what SQLite finds is told.
const checkLines = 5

// Check reads the whole file and returns an error that names what is wrong
// with it: a *DamagedError, or another ErrUnavailable when the file cannot be
// read. It is for auditors: it takes seconds for each GB, the WAL grows
// meanwhile, and Close waits for it. The end of ctx ends it.
func (l *Log) Check(ctx context.Context) error {
	err := l.readers.with(ctx, func(_ context.Context, r *reader) error {
		// The caller's context, since this read is long; a reader that was
		// interrupted is not used again.
		found, err := r.conn.values(ctx, fmt.Sprintf("PRAGMA integrity_check(%d)", checkLines))
		if err != nil {
			return err
		}
		if len(found) != 1 || found[0] != "ok" {
			return l.damaged("%s", oneLine(found))
		}
		if err := l.checkSchema(ctx, r.conn); err != nil {
			return err
		}
		// In one statement, and so of one moment. NOT INDEXED: the rows are counted.
		gaps, err := r.conn.values(ctx, `SELECT count(*) || ' events, but the newest position is ' || max(position)
			FROM events NOT INDEXED HAVING count(*) <> coalesce(max(position), 0)`)
		if err == nil && len(gaps) > 0 {
			return l.damaged("%s", oneLine(gaps))
		}
		return err
	})
	if err != nil {
		return unavailable("check the log", l.asDamage(err))
	}
	return nil
}

// checkSchema finds what guards the events, and shows them, in its place.
func (l *Log) checkSchema(ctx context.Context, c *conn) error {
	for _, want := range []struct{ kind, name string }{
		{"table", "events"},
		{"trigger", "events_are_never_changed"},
		{"trigger", "events_are_never_deleted"},
		{"view", "log"},
	} {
		n, err := c.number(ctx, fmt.Sprintf("SELECT count(*) FROM sqlite_schema WHERE type = '%s' AND name = '%s'", want.kind, want.name))
		if err != nil {
			return err
		}
		if n == 0 {
			return l.damaged("the %s %s is missing", want.kind, want.name)
		}
	}
	return nil
}

// asDamage makes a *DamagedError of SQLite's word for one.
func (l *Log) asDamage(err error) error {
	if isDamaged(err) {
		return l.damaged("%v", err)
	}
	return err
}

// oneLine is what SQLite found; it answers several lines in one value.
func oneLine(found []driver.Value) string {
	var lines []string
	for _, f := range found {
		lines = append(lines, strings.Split(fmt.Sprint(f), "\n")...)
	}
	return strings.Join(lines[:min(len(lines), checkLines)], "; ")
}
