package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// SQLite says FULL under COMMIT, while it writes to the WAL.
func TestFullDiskUnderCommit(t *testing.T) {
	b := openBroken(t, newPath(t))
	mustAppend(t, b.Log, "before", eventlog.NoStream, event("x"))
	refused := event("x")
	b.disk.walWriteFails.Store(sqlite3.SQLITE_FULL)
	for range 3 {
		_, err := b.Append(t.Context(), "refused", eventlog.NoStream, refused)
		wantUnavailable(t, err)
	}
	if got := countAll(t, b.Log); got != 1 {
		t.Errorf("the log has %d events while the disk is full, want 1", got)
	}
	b.disk.walWriteFails.Store(0)
	mustAppend(t, b.Log, "refused", eventlog.NoStream, refused)
	if got := countAll(t, b.Log); got != 2 {
		t.Errorf("the log has %d events, want 2", got)
	}
}

// A small file system fills up for real and gets space again. Every append that
// returned nil is there, every other one is not, and no restart was needed.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("this test mounts a small file system, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, filepath.Join(dir, "log.db"), Options{})
	recorded := map[string]bool{}
	fill := func() (failed int) {
		for i := 0; failed < 20; i++ {
			e := event("")
			e.Data = bytes.Repeat([]byte{'x'}, 10_000)
			stream := e.ID.String()
			_, err := l.Append(t.Context(), stream, eventlog.NoStream, e)
			switch {
			case err == nil:
				recorded[stream] = true
			case errors.Is(err, eventlog.ErrUnavailable):
				recorded[stream] = false
				failed++
			default:
				t.Fatal(err)
			}
			if i == 1000 {
				t.Fatal("the disk does not fill up")
			}
		}
		return failed
	}
	check := func() {
		t.Helper()
		for stream, want := range recorded {
			if got := count(t, l.ReadStream(t.Context(), stream, 0)); (got == 1) != want {
				t.Errorf("stream %s has %d events, but its append was recorded: %v", stream, got, want)
			}
		}
	}
	fill()
	check()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		mustAppend(t, l, name(i), eventlog.NoStream, event("space again"))
	}
	check()
}
