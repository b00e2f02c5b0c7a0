package properties

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/properties/sim"
)

func inMemory() eventlogtest.Backend {
	return eventlogtest.Backend{Open: func(testing.TB) eventlog.Log { return memory.New() }}
}

// file is a log in a file, and where.
type file struct {
	*sqlite.Log
	path string
}

func openFile(t testing.TB, path string) eventlog.Log {
	log, err := sqlite.Open(context.Background(), path, sqlite.Options{PollInterval: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return file{log, path}
}

func inFile() eventlogtest.Backend {
	return eventlogtest.Backend{
		Open: func(t testing.TB) eventlog.Log { return openFile(t, filepath.Join(t.TempDir(), "log.db")) },
		Reopen: func(t testing.TB, log eventlog.Log) eventlog.Log {
			if err := log.(file).Close(); err != nil {
				t.Fatal(err)
			}
			return openFile(t, log.(file).path)
		},
		Second: func(t testing.TB, log eventlog.Log) eventlog.Log { return openFile(t, log.(file).path) },
	}
}

func huntLog(t testing.TB, backend eventlogtest.Backend, limit time.Duration) (*failure, int) {
	t.Helper()
	return search{draw: drawingLogs(t, backend), time: limit, seed: 1}.run()
}

// TestSoundLogs is the control: the engine over the log in memory and the one in a
// file, which is opened again when a process dies. That both pass the conformance
// suite is shown beside them.
func TestSoundLogs(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]eventlogtest.Backend{"memory": inMemory(), "file": inFile()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, runs := huntLog(t, backend, time.Second)
			if f != nil {
				t.Fatal(f.text(t.Name()))
			}
			t.Logf("%d runs", runs)
		})
	}
}

// brokenLog is the log in memory with another Append.
type brokenLog struct {
	*memory.Log
	append func(log *memory.Log, n int, stream string, expected eventlog.Expected, events []eventlog.Proposed) (eventlog.Appended, error)
	calls  int
}

func (l *brokenLog) Append(_ context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	l.calls++
	return l.append(l.Log, l.calls, stream, expected, events)
}

var brokenLogs = map[string]struct {
	append func(log *memory.Log, n int, stream string, expected eventlog.Expected, events []eventlog.Proposed) (eventlog.Appended, error)
	reopen func(*memory.Log) *memory.Log
}{
	"loses what it acknowledged": {append: func(log *memory.Log, n int, stream string, expected eventlog.Expected, events []eventlog.Proposed) (eventlog.Appended, error) {
		tail, _ := log.Tail(context.Background())
		if n%9 == 0 {
			r, _ := expected.Revision()
			return eventlog.Appended{Revision: r + 1, Position: tail}, nil
		}
		return log.Append(context.Background(), stream, expected, events...)
	}},
	"does not look at the revision": {append: func(log *memory.Log, _ int, stream string, _ eventlog.Expected, events []eventlog.Proposed) (eventlog.Appended, error) {
		return log.Append(context.Background(), stream, eventlog.Any, events...)
	}},
	"records a repeated append again": {append: func(log *memory.Log, n int, stream string, expected eventlog.Expected, events []eventlog.Proposed) (eventlog.Appended, error) {
		at, err := log.Append(context.Background(), stream, expected, underNewIDs(events, n)...)
		if eventlog.IsConflict(err) {
			return log.Append(context.Background(), stream, eventlog.Any, underNewIDs(events, n)...)
		}
		return at, err
	}},
	"says unavailable, and has recorded": {append: func(log *memory.Log, n int, stream string, expected eventlog.Expected, events []eventlog.Proposed) (eventlog.Appended, error) {
		at, err := log.Append(context.Background(), stream, expected, events...)
		if n%5 == 0 {
			return eventlog.Appended{}, eventlog.ErrUnavailable
		}
		return at, err
	}},
	"loses the newest event when it is opened": {reopen: func(log *memory.Log) *memory.Log {
		fresh := memory.New()
		tail, _ := log.Tail(context.Background())
		for r := range log.ReadAll(context.Background(), eventlog.Start) {
			if r.Position != tail {
				_, _ = fresh.Append(context.Background(), r.Stream, eventlog.Any, eventlog.Proposed{ID: r.ID, Type: r.Type, Time: r.Time, Data: r.Data})
			}
		}
		return fresh
	}},
}

// underNewIDs are the events under ids that no append had before.
func underNewIDs(events []eventlog.Proposed, n int) []eventlog.Proposed {
	again := append([]eventlog.Proposed(nil), events...)
	for i := range again {
		again[i].ID[15] ^= byte(n)
	}
	return again
}

func broken(name string) eventlogtest.Backend {
	b := brokenLogs[name]
	over := func(log *memory.Log) eventlog.Log {
		if b.append == nil {
			return log
		}
		return &brokenLog{Log: log, append: b.append}
	}
	backend := eventlogtest.Backend{
		Open:     func(testing.TB) eventlog.Log { return over(memory.New()) },
		Patience: 300 * time.Millisecond,
	}
	if b.reopen != nil {
		backend.Reopen = func(_ testing.TB, log eventlog.Log) eventlog.Log { return over(b.reopen(log.(*memory.Log))) }
	}
	return backend
}

// TestBrokenLogs: a run of the engine finds each of them.
func TestBrokenLogs(t *testing.T) {
	t.Parallel()
	for name := range brokenLogs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, runs := huntLog(t, broken(name), time.Minute)
			if f == nil {
				t.Fatalf("%d runs, and nothing is broken", runs)
			}
			if f.violation.Property == sim.NoPanic {
				t.Errorf("the judge stumbles: %v", &f.violation)
			}
			t.Logf("after %d runs: %v\n%s", runs, &f.violation, f.story)
		})
	}
}
