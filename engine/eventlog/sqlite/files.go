package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// files are those that a connection has open, as they were met at their paths:
// the log file, always the first, its WAL and the index of the WAL. While a
// connection is open nobody but a stranger to SQLite replaces or removes one:
// the WAL is reset in place, and only the last connection that closes removes
// it. Someone who does so makes appends go where no restart finds them.
type files []openedFile

type openedFile struct {
	path string
	info os.FileInfo
}

// filesOf are the files of an open connection that has read something, so that
// the WAL is there. Where the path is a link, the WAL lies beside what it
// links to; SQLite knows.
func filesOf(ctx context.Context, c *conn, path string) (files, error) {
	name, err := c.value(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'")
	if err != nil {
		return nil, fmt.Errorf("log file %s: %w", path, err)
	}
	var open files
	for _, p := range []string{path, fmt.Sprint(name, "-wal"), fmt.Sprint(name, "-shm")} {
		info, err := os.Stat(p)
		if err != nil {
			return nil, lost(p, err)
		}
		open = append(open, openedFile{p, info})
	}
	return open, nil
}

// check is an error when one of the files is not at its path any more.
func (f files) check() error {
	for _, opened := range f {
		info, err := os.Stat(opened.path)
		if err != nil {
			return lost(opened.path, err)
		}
		if !os.SameFile(info, opened.info) {
			return lost(opened.path, errReplaced)
		}
	}
	return nil
}

var errReplaced = errors.New("another file is in its place")

func lost(path string, err error) error {
	return fmt.Errorf("file %s was removed or replaced under the running program: stop it, put the file back or restore the backup, start it: %w", path, err)
}
