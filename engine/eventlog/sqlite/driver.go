package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file alone knows the driver. It is used through database/sql/driver and
// not database/sql: the log pins each connection to one purpose, so it has no
// use for a pool that opens, resets and retries behind its back, and an insert
// costs a tenth less.

// conn is one SQLite connection. It is not safe for concurrent use.
type conn struct {
	driver.Conn
	stmts []*stmt
}

// access is the mode of the URI that opens a file, which never creates it.
type access string

const (
	readWrite access = "rw"
	readOnly  access = "ro"
)

// connect opens the file. Whoever waits for a lock waits up to busy. The name
// of a VFS is for tests; empty is the default.
func connect(ctx context.Context, path string, mode access, busy time.Duration, vfs string) (*conn, error) {
	query := url.Values{"mode": {string(mode)}}
	if vfs != "" {
		query.Set("vfs", vfs)
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	c, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	opened := &conn{Conn: c}
	if err := opened.exec(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", busy.Milliseconds())); err != nil {
		opened.drop()
		return nil, err
	}
	return opened, nil
}

// exec runs statements that have no arguments and no result.
func (c *conn) exec(ctx context.Context, query string) error {
	_, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, nil)
	return err
}

// value is the first column of the first row that a query answers.
func (c *conn) value(ctx context.Context, query string) (driver.Value, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil {
		_ = rows.Close() // says the same again
		return nil, err
	}
	return row[0], rows.Close()
}

// values is the first column of every row that a query answers.
func (c *conn) values(ctx context.Context, query string) ([]driver.Value, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	var all []driver.Value
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return all, rows.Close()
		case err != nil:
			_ = rows.Close() // says the same again
			return nil, err
		}
		all = append(all, row[0])
	}
}

// number is value for an integer.
func (c *conn) number(ctx context.Context, query string) (int64, error) {
	v, err := c.value(ctx, query)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("%s answered %v, want a number", query, v)
	}
	return n, nil
}

// drop closes a connection that failed. What closing it says adds nothing to
// what it failed with.
func (c *conn) drop() { _ = c.close() }

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Stmt.Close())
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// stmt is a prepared statement with room for its arguments; closing its
// connection closes it.
type stmt struct {
	driver.Stmt
	exe  driver.StmtExecContext
	qry  driver.StmtQueryContext
	args []driver.NamedValue
}

func (c *conn) prepare(ctx context.Context, query string) (*stmt, error) {
	p, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare %.40q: %w", query, err)
	}
	s := &stmt{Stmt: p, exe: p.(driver.StmtExecContext), qry: p.(driver.StmtQueryContext)}
	c.stmts = append(c.stmts, s)
	return s, nil
}

func (s *stmt) bind(args []driver.Value) []driver.NamedValue {
	s.args = s.args[:0]
	for i, a := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s.args
}

// exec runs the statement and answers how many rows it changed and the rowid
// of the last insert.
func (s *stmt) exec(ctx context.Context, args ...driver.Value) (changed, rowid int64, err error) {
	result, err := s.exe.ExecContext(ctx, s.bind(args))
	if err != nil {
		return 0, 0, err
	}
	// The driver's result holds both numbers; these calls cannot fail.
	changed, _ = result.RowsAffected()
	rowid, _ = result.LastInsertId()
	return changed, rowid, nil
}

// query fills row with each row of the result and calls each, until there are
// no more or each answers false.
func (s *stmt) query(ctx context.Context, row []driver.Value, each func() (more bool, err error), args ...driver.Value) (err error) {
	rows, err := s.qry.QueryContext(ctx, s.bind(args))
	if err != nil {
		return err
	}
	defer func() {
		if again := rows.Close(); err == nil {
			err = again
		}
	}()
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if more, err := each(); err != nil || !more {
			return err
		}
	}
}

// isBusy: another connection holds the lock, and nothing was done.
func isBusy(err error) bool { return primaryCode(err) == sqlite3.SQLITE_BUSY }

// isFull: the disk or the file's limit is full.
func isFull(err error) bool { return primaryCode(err) == sqlite3.SQLITE_FULL }

// isDamaged: the file is no SQLite database, or a damaged one.
func isDamaged(err error) bool {
	code := primaryCode(err)
	return code == sqlite3.SQLITE_NOTADB || code == sqlite3.SQLITE_CORRUPT
}

// primaryCode is the low byte of SQLite's extended result code; 0 when err is
// not SQLite's.
func primaryCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}
