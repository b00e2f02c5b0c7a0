package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const (
	applicationID = 0x6c656164 // "lead", in the file's header
	schemaVersion = 1

	pageBytes = 8192
	// A checkpoint runs inside the commit that crosses the limit, so a larger
	// one stalls appends for longer.
	checkpointPages = 1000
	walLimitBytes   = 4 * checkpointPages * pageBytes
	cacheKiB        = 16 << 10
)

// The unique index leads with the stream's name, not with a number or a hash
// of it: names sort in the order of arrival, bot by bot, so inserts touch the
// same few leaves however long the log is. Positions are rowids: they grow in
// the order of commits, because SQLite has one writer at a time, and are never
// given twice, because no row ever goes. Time is split in two, since a count
// of nanoseconds in 64 bits ends in the year 2262.
const schema = `
CREATE TABLE events (
	position INTEGER PRIMARY KEY,
	stream   TEXT    NOT NULL,
	revision INTEGER NOT NULL,
	id       BLOB    NOT NULL,
	type     TEXT    NOT NULL,
	seconds  INTEGER NOT NULL,
	nanos    INTEGER NOT NULL,
	data     BLOB    NOT NULL,
	UNIQUE (stream, revision)
) STRICT;

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'an event is never changed'); END;

CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END;

CREATE VIEW log AS SELECT
	position, stream, revision, type,
	strftime('%Y-%m-%dT%H:%M:%S', seconds, 'unixepoch') || printf('.%09dZ', nanos) AS time,
	CAST(data AS TEXT) AS data,
	lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4)
		|| '-' || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
	seconds, nanos
FROM events ORDER BY position;
`

// createFile makes an empty file when there is none, and its folders, for the
// owner alone; the entries are durable before it returns.
func createFile(path string) error {
	dir := filepath.Dir(path)
	if err := createFolder(dir); err != nil {
		return err
	}
	// Exclusively, so that a file in use is never opened and closed here,
	// which would drop its locks.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), syncFolder(dir))
}

func createFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := createFolder(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncFolder(parent)
}

func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // has no such call
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// establish makes the schema in an empty file, and refuses a file that is not
// a log of this schema, before anything is written to it.
func establish(ctx context.Context, c *conn, path string) error {
	id, version, objects, err := identify(ctx, c)
	if isDamaged(err) {
		return fmt.Errorf("log file %s is no SQLite database or is damaged: restore it from a backup, or name another file: %w", path, err)
	}
	if err != nil {
		return fmt.Errorf("log file %s: %w", path, err)
	}
	if id == 0 && version == 0 && objects == 0 {
		if err := create(ctx, c); err != nil {
			return fmt.Errorf("log file %s: create the schema: %w", path, err)
		}
		// Another process may have been first, with another version.
		if id, version, _, err = identify(ctx, c); err != nil {
			return fmt.Errorf("log file %s: %w", path, err)
		}
	}
	switch {
	case id != applicationID:
		return fmt.Errorf("log file %s is a database of another application (application_id %d): name another file", path, id)
	case version > schemaVersion:
		return fmt.Errorf("log file %s has schema %d, this program knows up to %d: start the newer program that wrote it", path, version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("log file %s has schema %d, which no program ever wrote: restore it from a backup", path, version)
	}
	return nil
}

// identify reads in one transaction, so that it meets the file before or after
// another process made the schema, and not in between. After an error the
// caller closes the connection, which ends the transaction.
func identify(ctx context.Context, c *conn) (id, version, objects int64, err error) {
	if err := c.exec(ctx, "BEGIN"); err != nil {
		return 0, 0, 0, err
	}
	for _, q := range []struct {
		query string
		to    *int64
	}{
		{"PRAGMA application_id", &id},
		{"PRAGMA user_version", &version},
		{"SELECT count(*) FROM sqlite_schema", &objects},
	} {
		if *q.to, err = c.number(ctx, q.query); err != nil {
			return 0, 0, 0, err
		}
	}
	return id, version, objects, c.exec(ctx, "COMMIT")
}

// create is one transaction under the file's exclusive lock, so that a crash
// leaves an empty file and the second of two processes finds a whole schema.
// After an error the caller closes the connection, which rolls back.
// The page size counts only for the first write to an empty file.
func create(ctx context.Context, c *conn) error {
	if err := c.exec(ctx, fmt.Sprintf("PRAGMA page_size = %d", pageBytes)); err != nil {
		return err
	}
	if err := c.exec(ctx, "BEGIN EXCLUSIVE"); err != nil {
		return err
	}
	err := func() error {
		if objects, err := c.number(ctx, "SELECT count(*) FROM sqlite_schema"); err != nil || objects > 0 {
			return err
		}
		return c.exec(ctx, schema+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, schemaVersion))
	}()
	if err != nil {
		return err
	}
	return c.exec(ctx, "COMMIT")
}

// configureWriter sets what durability and speed rest on, and reads back what
// durability rests on.
func configureWriter(ctx context.Context, c *conn, path string, busy time.Duration) error {
	if err := enterWAL(ctx, c, busy); err != nil {
		return fmt.Errorf("log file %s: journal mode: %w", path, err)
	}
	err := c.exec(ctx, fmt.Sprintf(`
		PRAGMA synchronous = FULL;
		PRAGMA fullfsync = ON; -- on macOS fsync alone leaves data in the drive's cache
		PRAGMA checkpoint_fullfsync = ON;
		PRAGMA wal_autocheckpoint = %d;
		PRAGMA journal_size_limit = %d;
		PRAGMA cache_size = -%d;`, checkpointPages, walLimitBytes, cacheKiB))
	if err != nil {
		return fmt.Errorf("log file %s: %w", path, err)
	}
	return checkDurable(ctx, c, path)
}

// checkDurable asks SQLite what is in force.
func checkDurable(ctx context.Context, c *conn, path string) error {
	for _, want := range []struct {
		pragma string
		value  any
	}{
		{"journal_mode", "wal"},
		{"synchronous", int64(2)}, // FULL
	} {
		got, err := c.value(ctx, "PRAGMA "+want.pragma)
		if err != nil {
			return fmt.Errorf("log file %s: %w", path, err)
		}
		if got != want.value {
			return fmt.Errorf("log file %s: PRAGMA %s is %v, want %v: appends would not be durable; put the file on a local disk",
				path, want.pragma, got, want.value)
		}
	}
	return nil
}

// enterWAL waits by itself, because SQLite does not wait for a lock when it
// changes the journal mode.
func enterWAL(ctx context.Context, c *conn, busy time.Duration) error {
	return whileBusy(ctx, busy, func() (bool, error) {
		_, err := c.value(ctx, "PRAGMA journal_mode = WAL")
		if isBusy(err) {
			return true, nil
		}
		return false, err
	})
}

// settle makes durable what a process wrote to the WAL but died before it
// synced: recovery has made those events visible, so a repeated append would
// be told that they are recorded. It also reads the newest event, to notice a
// file that was cut short, and that its position fits the one before: behind a
// renumbered one, an append would be written over another event.
func settle(ctx context.Context, c *conn, path string, busy time.Duration) error {
	err := whileBusy(ctx, busy, func() (bool, error) {
		blocked, err := c.number(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
		return blocked != 0, err
	})
	if err == nil {
		_, err = c.value(ctx, "SELECT count(*) FROM (SELECT data FROM events ORDER BY position DESC LIMIT 1)")
	}
	if err == nil {
		var s *stmt
		if s, err = c.prepare(ctx, selectTail); err == nil {
			_, err = tailOf(ctx, s, make([]driver.Value, 1), path)
		}
	}
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		return err
	}
	if isDamaged(err) {
		return &DamagedError{Path: path, Detail: err.Error()}
	}
	if err != nil {
		return fmt.Errorf("log file %s: %w", path, err)
	}
	return nil
}
