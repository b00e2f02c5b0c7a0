package sqlite

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// What durability and speed rest on is in force, as SQLite itself tells it.
func TestSettingsAreInForce(t *testing.T) {
	l := open(t, newPath(t), Options{})
	w, err := openWriter(t.Context(), l.path, l.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	r, err := openReader(t.Context(), l.path, l.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer r.conn.close()
	for _, c := range []struct {
		conn   *conn
		pragma string
		want   any
	}{
		{w.conn, "page_size", int64(8192)},
		{w.conn, "journal_mode", "wal"},
		{w.conn, "synchronous", int64(2)},
		{w.conn, "fullfsync", int64(1)},
		{w.conn, "wal_autocheckpoint", int64(1000)},
		{w.conn, "journal_size_limit", int64(32_768_000)},
		{w.conn, "busy_timeout", int64(0)}, // see lockPoll
		{w.conn, "application_id", int64(applicationID)},
		{w.conn, "user_version", int64(schemaVersion)},
		{r.conn, "query_only", int64(1)},
		{r.conn, "busy_timeout", int64(5000)},
	} {
		if got, err := c.conn.value(t.Context(), "PRAGMA "+c.pragma); err != nil || got != c.want {
			t.Errorf("%s is %v (%v), want %v", c.pragma, got, err, c.want)
		}
	}
	if err := r.conn.exec(t.Context(), "DELETE FROM events"); err == nil {
		t.Error("a reader could write")
	}
}

// A driver or file system that ignores a setting is found out.
func TestRefusesWhatIsNotDurable(t *testing.T) {
	l := open(t, newPath(t), Options{})
	c := stranger(t, l.path)
	mustExec(t, c, "PRAGMA synchronous = NORMAL")
	err := checkDurable(t.Context(), c, l.path)
	if err == nil || !strings.Contains(err.Error(), "PRAGMA synchronous is 1, want 2") {
		t.Errorf("error is %v", err)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "log.db")
	l := open(t, path, Options{})
	mustAppend(t, l, "s", eventlog.NoStream, event("x"))
	for file, want := range map[string]os.FileMode{
		path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
		filepath.Dir(path): 0o700 | os.ModeDir, filepath.Dir(filepath.Dir(path)): 0o700 | os.ModeDir,
	} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", file, info.Mode(), want)
		}
	}
}

// Names that mean something in a URI are names of files.
func TestHostileFileNames(t *testing.T) {
	for _, name := range []string{"a b?mode=memory.db", "c#d%41&.db", ":memory:", "ü.db"} {
		path := filepath.Join(t.TempDir(), name)
		l := open(t, path, Options{})
		mustAppend(t, l, "s", eventlog.NoStream, event("x"))
		if fileSize(t, path) == 0 {
			t.Errorf("%s is empty", path)
		}
	}
}

// Many at once make one file, each of them a log of it.
func TestOpenedByManyAtOnce(t *testing.T) {
	const rounds, handles = 10, 20
	for range rounds {
		path := newPath(t)
		var opening sync.WaitGroup
		for i := range handles {
			opening.Go(func() {
				l, err := Open(t.Context(), path, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := l.Append(t.Context(), name(i), eventlog.NoStream, event("x")); err != nil {
					t.Error(err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		opening.Wait()
		if got := countAll(t, open(t, path, Options{})); got != handles {
			t.Errorf("the log has %d events, want %d", got, handles)
		}
	}
}

func TestForeignAndDamagedFilesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"text", func(t *testing.T, path string) {
			write(t, path, bytes.Repeat([]byte("not a database\n"), 1000))
		}, "is no SQLite database or is damaged: restore it from a backup, or name another file"},
		{"other application", func(t *testing.T, path string) {
			write(t, path, nil)
			c := stranger(t, path)
			mustExec(t, c, "CREATE TABLE t (x)")
		}, "is a database of another application (application_id 0): name another file"},
		{"newer schema", func(t *testing.T, path string) {
			open(t, path, Options{})
			mustExec(t, stranger(t, path), "PRAGMA user_version = 2")
		}, "has schema 2, this program knows up to 1: start the newer program that wrote it"},
		{"first page overwritten", func(t *testing.T, path string) {
			fill(t, path)
			overwrite(t, path, 100, bytes.Repeat([]byte{0xff}, 4000))
		}, "damaged: restore it from a backup"},
		{"cut short", func(t *testing.T, path string) {
			fill(t, path)
			if err := os.Truncate(path, fileSize(t, path)-3*pageBytes); err != nil {
				t.Fatal(err)
			}
		}, "damaged: restore it from a backup"},
		{"folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "unable to open database file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := newPath(t)
			c.make(t, path)
			before, _ := os.ReadFile(path)
			l, err := Open(t.Context(), path, Options{})
			if err == nil {
				l.Close()
				t.Fatal("opened")
			}
			if got := err.Error(); !strings.Contains(got, c.want) || !strings.Contains(got, path) || strings.Contains(got, "\n") {
				t.Errorf("error is %q, want one line with the file's name and %q", got, c.want)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the refused file was changed")
			}
		})
	}
}

func fill(t *testing.T, path string) {
	t.Helper()
	l, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		mustAppend(t, l, name(i), eventlog.NoStream, event(strings.Repeat("x", 1000)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, at int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
}

// A process died after it wrote to the WAL and before it synced: the events
// come back with recovery, and are synced before anyone can rely on them.
func TestRecoveredEventsAreSyncedAtOpen(t *testing.T) {
	path, left := newPath(t), newPath(t)
	l := open(t, path, Options{})
	mustAppend(t, l, "s", eventlog.NoStream, event("x"))
	for _, suffix := range []string{"", "-wal"} {
		// By another process: closing the file in this one would drop its locks.
		if out, err := exec.CommandContext(t.Context(), "cp", path+suffix, left+suffix).CombinedOutput(); err != nil {
			t.Skipf("cp: %v: %s", err, out)
		}
	}
	d := newDisk(t)
	recovered := open(t, left, Options{vfs: d.name})
	if d.walSyncs.Load() == 0 {
		t.Error("the WAL was not synced")
	}
	if got := countAll(t, recovered); got != 1 {
		t.Errorf("the log has %d events, want 1", got)
	}
}
