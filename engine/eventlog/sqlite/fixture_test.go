package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
)

func TestMain(m *testing.M) {
	eventlogtest.ChildMain(openIn)
	neighbourMain()
	goleak.VerifyTestMain(m)
}

func openIn(dir string) (eventlog.Log, error) {
	return Open(context.Background(), filepath.Join(dir, "log.db"), Options{})
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "log.db") }

func open(t testing.TB, path string, opts Options) *Log {
	t.Helper()
	l, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func event(data string) eventlog.Proposed {
	e := eventlog.Proposed{Type: "Tested", Time: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), Data: []byte(data)}
	rand.Read(e.ID[:])
	return e
}

func mustAppend(t testing.TB, l *Log, stream string, expected eventlog.Expected, events ...eventlog.Proposed) eventlog.Appended {
	t.Helper()
	a, err := l.Append(t.Context(), stream, expected, events...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func count(t testing.TB, events iter.Seq2[eventlog.Recorded, error]) int {
	t.Helper()
	n := 0
	for _, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func countAll(t testing.TB, l *Log) int { return count(t, l.ReadAll(t.Context(), eventlog.Start)) }

// eventually waits for a condition that no channel tells of.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for !condition() {
		select {
		case <-look.C:
		case <-limit.C:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// stranger is a connection that knows nothing of the log, like a person in the
// sqlite3 shell.
func stranger(t testing.TB, path string) *conn {
	t.Helper()
	c, err := connect(t.Context(), path, readWrite, 5*time.Second, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func mustExec(t testing.TB, c *conn, query string) {
	t.Helper()
	if err := c.exec(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// asOneBatch runs the appends so that the writer finds all of them waiting:
// a stranger holds the write lock until they are queued.
func asOneBatch(t testing.TB, l *Log, appends ...func() error) []error {
	t.Helper()
	s := stranger(t, l.path)
	mustExec(t, s, "BEGIN IMMEDIATE")
	errs := make([]error, len(appends))
	var running sync.WaitGroup
	for i, a := range appends {
		running.Go(func() { errs[i] = a() })
		eventually(t, "the append to wait", func() bool { return l.Stats().Queued == i+1 })
	}
	mustExec(t, s, "ROLLBACK")
	running.Wait()
	return errs
}

func wantUnavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, eventlog.ErrUnavailable) || eventlog.IsUnknown(err) || eventlog.IsConflict(err) {
		t.Errorf("error is %v, want ErrUnavailable alone", err)
	}
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func name(i int) string { return fmt.Sprintf("update-1-%d", 100000000+i) }
