package logcopy_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/engine/logcopy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 123456789, time.UTC)

// id is the n-th event id.
func id(n int) (id eventlog.EventID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	return id
}

func event(n int) eventlog.Proposed {
	return eventlog.Proposed{ID: id(n), Type: fmt.Sprintf("Happened.v%d", n%3), Time: noon.Add(time.Duration(n)), Data: fmt.Appendf(nil, `{"n":%d}`, n)}
}

// must appends to the end of the stream.
func must(t testing.TB, log eventlog.Log, stream string, events ...eventlog.Proposed) {
	t.Helper()
	if _, err := log.Append(context.Background(), stream, eventlog.Any, events...); err != nil {
		t.Fatal(err)
	}
}

// filled is a log of n events, of which a few in a row are of one stream.
func filled(t testing.TB, n int) eventlog.Log {
	t.Helper()
	log := memory.New()
	for i := range n {
		must(t, log, fmt.Sprintf("update-1-%d", i/3%7), event(i))
	}
	return log
}

// openSQLite is a log in a new file.
func openSQLite(t testing.TB) eventlog.Log {
	t.Helper()
	log, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// all are the events of a log, without their positions.
func all(t fataler, log eventlog.Log) []eventlog.Recorded {
	t.Helper()
	var events []eventlog.Recorded
	for r, err := range log.ReadAll(context.Background(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		r.Position = eventlog.Start
		events = append(events, r)
	}
	return events
}

// fataler is a test, or one run of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// equal demands the same events in the same order. It shares nothing with the
// comparison that a copy makes.
func equal(t fataler, source, target eventlog.Log) {
	t.Helper()
	if n, m := isPrefix(t, source, target); n != m {
		t.Fatalf("the target has %d events, want %d", m, n)
	}
}

// isPrefix demands that the target is a beginning of the source, and returns how
// many events they have.
func isPrefix(t fataler, source, target eventlog.Log) (n, m int) {
	t.Helper()
	want, got := all(t, source), all(t, target)
	if len(got) > len(want) {
		t.Fatalf("the target has %d events, the source %d", len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("event %d is %.300v, want %.300v", i+1, got[i], want[i])
		}
	}
	return len(want), len(got)
}

// waits records what was waited for, and waits for nothing.
type waits struct {
	mu    sync.Mutex
	slept []time.Duration
}

func (w *waits) sleep(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slept = append(w.slept, d)
	return ctx.Err()
}

// copyAll copies to the tail, without waiting.
func copyAll(ctx context.Context, source, target eventlog.Log) (logcopy.Counts, error) {
	c := logcopy.New(source, target, logcopy.Options{Sleep: new(waits).sleep})
	err := c.ToTail(ctx)
	return c.Counts(), err
}

// watched is a log whose appends and reads are seen, and may be made to fail,
// by a test.
type watched struct {
	eventlog.Log
	before func(stream string, expected eventlog.Expected, events []eventlog.Proposed) error
	after  func() error
	read   func(eventlog.Recorded) (eventlog.Recorded, bool) // false: it is left out
}

func (l watched) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	if l.before != nil {
		if err := l.before(stream, expected, slices.Clone(events)); err != nil {
			return eventlog.Appended{}, err
		}
	}
	at, err := l.Log.Append(ctx, stream, expected, events...)
	if err == nil && l.after != nil {
		err = l.after()
	}
	return at, err
}

func (l watched) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range l.Log.ReadAll(ctx, after) {
			keep := true
			if l.read != nil && err == nil {
				r, keep = l.read(r)
			}
			if keep && !yield(r, err) {
				return
			}
		}
	}
}

// growing is a log that grows while it is read: what came is in the read.
type growing struct {
	eventlog.Log
	atEnd func()
}

func (l growing) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for range 2 {
			for r, err := range l.Log.ReadAll(ctx, after) {
				after = r.Position
				if !yield(r, err) {
					return
				}
			}
			l.atEnd()
		}
	}
}

var errDown = fmt.Errorf("test: %w: %w", eventlog.ErrUnavailable, errors.New("down"))
