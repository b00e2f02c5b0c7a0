package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// The two sets of tables, told apart by the prefix of their names.
const (
	liveSet = ""
	nextSet = "next_" // of a rebuild that is under way
)

// session is one connection that writes one set of tables. It prepares every
// statement once. It is not safe for concurrent use.
type session struct {
	conn  *sql.Conn
	names *strings.Replacer
	stmts map[string]*sql.Stmt
}

func newSession(conn *sql.Conn, set string) *session {
	return &session{conn: conn, names: names(set), stmts: map[string]*sql.Stmt{}}
}

// names puts the set's table names in the place of {jobs} and the like.
func names(set string) *strings.Replacer { return strings.NewReplacer("{", set, "}", "") }

func (s *session) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := s.stmts[query]; ok {
		return st, nil
	}
	st, err := s.conn.PrepareContext(ctx, s.names.Replace(query))
	if err != nil {
		return nil, fmt.Errorf("prepare %.60q: %w", query, err)
	}
	s.stmts[query] = st
	return st, nil
}

func (s *session) exec(ctx context.Context, query string, args ...any) error {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx, args...)
	return err
}

// scan reads the one row of the answer; sql.ErrNoRows when there is none.
func (s *session) scan(ctx context.Context, query string, args []any, to ...any) error {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	return st.QueryRowContext(ctx, args...).Scan(to...)
}

func (s *session) close() error {
	var errs []error
	for _, st := range s.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, s.conn.Close())...)
}

// transact runs do under the file's write lock, and commits when it returned
// nil. It waits for the lock until ctx ends. What began is not interrupted:
// a batch is short, and its end must not depend on when it was stopped.
func transact(ctx context.Context, conn *sql.Conn, do func(context.Context) error) error {
	if err := begin(ctx, conn); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if err := do(ctx); err != nil {
		_, _ = conn.ExecContext(ctx, "ROLLBACK") // err tells more, and SQLite may have done it by itself
		return err
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		_, _ = conn.ExecContext(ctx, "ROLLBACK")
		return err
	}
	return nil
}

func begin(ctx context.Context, conn *sql.Conn) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := conn.ExecContext(context.WithoutCancel(ctx), "BEGIN IMMEDIATE")
		if !isBusy(err) {
			return err
		}
	}
}
