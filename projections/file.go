package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const asideSuffix = ".damaged"

// openFile makes the file when there is none and prepares connections to it.
func openFile(path string) (*sql.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// Exclusively: to open and close a file that is in use would drop its locks.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	query := url.Values{"mode": {"rw"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"synchronous(NORMAL)",
		"cache_size(-4096)", // KiB, each connection
		"wal_autocheckpoint(4000)",
		"journal_size_limit(67108864)",
	}}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// setAside renames the file. What its journal has belongs to it.
func setAside(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Rename(path+suffix, path+asideSuffix+suffix)
		if errors.Is(err, os.ErrNotExist) {
			err = os.Remove(path + asideSuffix + suffix) // of an earlier one
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// identity is what the file's header says.
type identity struct{ application, version, objects int64 }

func (i identity) empty() bool { return i == identity{} }

func (i identity) current() bool { return i.application == applicationID && i.version == fileVersion }

func identify(ctx context.Context, conn *sql.Conn) (i identity, err error) {
	err = conn.QueryRowContext(ctx, `SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id a, pragma_user_version v`).Scan(&i.application, &i.version, &i.objects)
	return i, err
}

// establish makes the tables in an empty file and in one of another version. A
// file of another application is left as it is.
func (s *Store) establish(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	found, err := identify(ctx, conn)
	if err != nil {
		return err
	}
	if !found.empty() && found.application != applicationID {
		return fmt.Errorf("it is a database of another application (application_id %d): name another file", found.application)
	}
	if s.opts.SetAside {
		if err := check(ctx, conn); err != nil {
			return err
		}
	}
	if err := enterWAL(ctx, conn, found.empty()); err != nil {
		return err
	}
	if found.current() {
		return nil
	}
	wiped := false
	err = transact(ctx, conn, func(ctx context.Context) error {
		// Another process may have been first.
		if found, err = identify(ctx, conn); err != nil || found.current() {
			return err
		}
		wiped = !found.empty()
		return recreate(ctx, conn)
	})
	if err == nil && wiped {
		s.opts.Reset(fmt.Sprintf("the file has version %d, this release has %d", found.version, fileVersion))
	}
	return err
}

// check reads the whole file.
func check(ctx context.Context, conn *sql.Conn) error {
	var verdict string
	if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", errDamage, verdict)
	}
	return nil
}

// enterWAL tries again by itself, because SQLite does not wait for a lock when
// it changes the journal mode. The page size counts only for an empty file.
func enterWAL(ctx context.Context, conn *sql.Conn, empty bool) error {
	if empty {
		if _, err := conn.ExecContext(ctx, "PRAGMA page_size = 8192"); err != nil {
			return err
		}
	}
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		var mode string
		err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		if err == nil && mode != "wal" {
			return fmt.Errorf("its journal mode is %s, want wal: put the file on a local disk", mode)
		}
		if !isBusy(err) {
			return err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recreate leaves the file with empty models of this version.
func recreate(ctx context.Context, conn *sql.Conn) error {
	if err := drop(ctx, conn, func(string) bool { return true }); err != nil {
		return err
	}
	script := checkpointsTable + ";" + tablesOf(liveSet) + derived() +
		fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, fileVersion)
	if _, err := conn.ExecContext(ctx, script); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	_, err := conn.ExecContext(ctx, insertHead, checkpointName(liveSet))
	return err
}

func tablesOf(set string) string {
	var b strings.Builder
	for _, m := range models {
		b.WriteString(m.tables)
	}
	return names(set).Replace(b.String())
}

func derived() string {
	var b strings.Builder
	for _, m := range models {
		b.WriteString(m.derived)
	}
	return b.String()
}

// drop removes the views and tables that are chosen by name, and with a table
// its indexes.
func drop(ctx context.Context, conn *sql.Conn, chosen func(name string) bool) error {
	objects, err := schemaObjects(ctx, conn)
	if err != nil {
		return err
	}
	for _, kind := range []string{"view", "table"} { // a view hangs on tables
		for _, o := range objects {
			if o.kind != kind || !chosen(o.name) {
				continue
			}
			if _, err := conn.ExecContext(ctx, "DROP "+kind+` "`+o.name+`"`); err != nil {
				return err
			}
		}
	}
	return nil
}

type schemaObject struct{ kind, name string }

func schemaObjects(ctx context.Context, conn *sql.Conn) (objects []schemaObject, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT type, name FROM sqlite_schema WHERE type IN ('view', 'table') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o schemaObject
		if err := rows.Scan(&o.kind, &o.name); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, rows.Err()
}

// isBusy: another connection holds the lock, and nothing was done.
func isBusy(err error) bool { return primaryCode(err) == sqlite3.SQLITE_BUSY }

var errDamage = errors.New("integrity check")

func isDamage(err error) bool {
	code := primaryCode(err)
	return code == sqlite3.SQLITE_NOTADB || code == sqlite3.SQLITE_CORRUPT || errors.Is(err, errDamage)
}

// primaryCode is the low byte of SQLite's result code; 0 when err is not
// SQLite's.
func primaryCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}
