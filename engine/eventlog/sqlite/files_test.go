//go:build unix

package sqlite

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// away moves files of a log out of their place; back undoes it.
func away(t *testing.T, path string, suffixes ...string) (back func()) {
	t.Helper()
	move := func(from, to string) {
		t.Helper()
		for _, s := range suffixes {
			if err := os.Rename(from+s, to+s); err != nil {
				t.Fatal(err)
			}
		}
	}
	move(path, path+".away")
	return func() {
		t.Helper()
		move(path+".away", path)
	}
}

// wantLost wants one line that names the file and the mend.
func wantLost(t *testing.T, err error, file string) {
	t.Helper()
	for _, want := range []string{"file " + file + " was removed or replaced", "stop it, put the file back or restore the backup, start it"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want one line with %q", err, want)
		}
	}
}

// Files go under an open log: the batch that went there is not acknowledged,
// no later one goes there, and reads on new connections do not start another
// log. When the files come back, so does the log, with all it acknowledged.
func TestLostFilesAreNotAppendedTo(t *testing.T) {
	for name, suffixes := range map[string][]string{
		"log": {""}, "wal": {"-wal"}, "shm": {"-shm"}, "wal and shm": {"-wal", "-shm"}, "all": {"", "-wal", "-shm"},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, newPath(t), Options{})
			mustAppend(t, l, "before", eventlog.NoStream, event("x"))
			if got := count(t, l.ReadStream(t.Context(), "before", 0)); got != 1 {
				t.Fatalf("%d events before", got)
			}
			back := away(t, l.path, suffixes...)
			during := event("x")
			_, err := l.Append(t.Context(), "during", eventlog.NoStream, during)
			if !eventlog.IsUnknown(err) || errors.Is(err, eventlog.ErrUnavailable) {
				t.Errorf("error is %v, want an unknown outcome", err)
			}
			wantLost(t, err, l.path+suffixes[0])
			for range 3 {
				_, err := l.Append(t.Context(), "after", eventlog.NoStream, event("x"))
				wantUnavailable(t, err)
				wantLost(t, err, l.path+suffixes[0])
			}
			// Nor may a read say that it is there: the reader is one that was open.
			for _, err = range l.ReadStream(t.Context(), "during", 0) {
			}
			wantLost(t, err, l.path+suffixes[0])
			back()
			mustAppend(t, l, "during", eventlog.NoStream, during)
			mustAppend(t, l, "after", eventlog.NoStream, event("x"))
			if err := l.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if got := countAll(t, open(t, l.path, Options{})); got != 3 {
				t.Errorf("the log has %d events after a restart, want 3", got)
			}
		})
	}
}

// Another log in the place of the open one is not taken for it.
func TestReplacedFileIsNotAppendedTo(t *testing.T) {
	other := newPath(t)
	fill(t, other)
	before := fileSize(t, other)
	l := open(t, newPath(t), Options{})
	mustAppend(t, l, "before", eventlog.NoStream, event("x"))
	away(t, l.path, "")
	if err := os.Rename(other, l.path); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), "during", eventlog.NoStream, event("x")); !eventlog.IsUnknown(err) {
		t.Errorf("error is %v, want an unknown outcome", err)
	}
	_, err := l.Append(t.Context(), "after", eventlog.NoStream, event("x"))
	wantUnavailable(t, err)
	wantLost(t, err, l.path)
	if got := fileSize(t, l.path); got != before {
		t.Errorf("the other log has %d bytes, had %d", got, before)
	}
}

// Without its WAL the log is stopped, as its error says: closing moves what
// was acknowledged into the file.
func TestStopAfterARemovedWALKeepsWhatWasAcknowledged(t *testing.T) {
	l := open(t, newPath(t), Options{})
	const acknowledged = 20
	for i := range acknowledged {
		mustAppend(t, l, name(i), eventlog.NoStream, event("x"))
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(l.path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Append(t.Context(), "during", eventlog.NoStream, event("x")); !eventlog.IsUnknown(err) {
		t.Errorf("error is %v, want an unknown outcome", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	again := open(t, l.path, Options{})
	for i := range acknowledged {
		if got := count(t, again.ReadStream(t.Context(), name(i), 0)); got != 1 {
			t.Errorf("stream %s has %d events, want 1", name(i), got)
		}
	}
}

// Nobody else who uses the log by SQLite makes it look lost, nor does a link.
func TestNeighboursAndLinksLoseNothing(t *testing.T) {
	path := newPath(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{}).Close()
	l := open(t, link, Options{})
	const rounds = 5
	for i := range rounds {
		mustAppend(t, l, name(i), eventlog.NoStream, event("x"))
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), neighbourEnv+"="+path)
		child.Stdin = strings.NewReader("go\n")
		if out, err := child.CombinedOutput(); i == 0 && (err != nil || !strings.HasSuffix(string(out), "done\n")) {
			t.Fatalf("the neighbour says %q (%v)", out, err)
		}
		for range 3 {
			mustAppend(t, l, "shared", eventlog.Any, event("x"))
		}
		mustExec(t, stranger(t, path), "PRAGMA wal_checkpoint(TRUNCATE)")
		mustAppend(t, l, "truncated", eventlog.Any, event("x"))
	}
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Nor is it when the connection was lost before, and a new one is opened.
func TestReconnectsToItsOwnFileAlone(t *testing.T) {
	other := newPath(t)
	fill(t, other)
	b := openBroken(t, newPath(t))
	b.lost = errors.New("lost")
	if _, err := b.Append(t.Context(), "before", eventlog.NoStream, event("x")); !eventlog.IsUnknown(err) {
		t.Errorf("error is %v, want an unknown outcome", err)
	}
	back := away(t, b.path, "")
	if err := os.Rename(other, b.path); err != nil {
		t.Fatal(err)
	}
	_, err := b.Append(t.Context(), "during", eventlog.NoStream, event("x"))
	wantUnavailable(t, err)
	wantLost(t, err, b.path)
	back()
	mustAppend(t, b.Log, "after", eventlog.NoStream, event("x"))
	if got := countAll(t, b.Log); got != 2 {
		t.Errorf("the log has %d events, want 2", got)
	}
}
