package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// A conflict is its caller's alone: the others of its batch are recorded.
func TestConflictInABatchDisturbsNobodyElse(t *testing.T) {
	l := open(t, newPath(t), Options{})
	first := event("first")
	mustAppend(t, l, "s", eventlog.NoStream, first)
	appendTo := func(stream string, expected eventlog.Expected, events ...eventlog.Proposed) func() error {
		return func() error {
			_, err := l.Append(t.Context(), stream, expected, events...)
			return err
		}
	}
	errs := asOneBatch(t, l,
		appendTo("a", eventlog.NoStream, event("1"), event("2")),
		appendTo("s", eventlog.NoStream, event("conflict")),
		appendTo("a", eventlog.NoStream, event("conflict with its own batch")),
		appendTo("s", eventlog.NoStream, first),
		appendTo("a", eventlog.Exactly(1), event("3")),
		appendTo("a", eventlog.Exactly(7), event("conflict")),
		appendTo("b", eventlog.Any, event("1")),
	)
	for i, err := range errs {
		if conflict := i == 1 || i == 2 || i == 5; conflict != eventlog.IsConflict(err) || !conflict && err != nil {
			t.Errorf("append %d: error is %v, want a conflict: %v", i, err, conflict)
		}
	}
	if got := l.Stats().Batches; got != 2 {
		t.Fatalf("the appends made %d batches, want 1 after the first", got)
	}
	for stream, want := range map[string]int{"s": 1, "a": 3, "b": 1} {
		if got := count(t, l.ReadStream(t.Context(), stream, 0)); got != want {
			t.Errorf("stream %s has %d events, want %d", stream, got, want)
		}
	}
}

// When the disk fails under a COMMIT, whoever added something is told that the
// outcome is unknown. A conflict with what may not exist is not told as one.
// The next append works, and repeating records each event once.
func TestFailedSyncIsUnknownAndHealsItself(t *testing.T) {
	b := openBroken(t, newPath(t))
	mustAppend(t, b.Log, "first", eventlog.NoStream, event("x"))
	ours, theirs := event("ours"), event("theirs")
	appendOf := func(e eventlog.Proposed) func() error {
		return func() error {
			_, err := b.Append(t.Context(), "contended", eventlog.NoStream, e)
			return err
		}
	}
	b.disk.walSyncFailsOnce.Store(sqlite3.SQLITE_IOERR_FSYNC)
	errs := asOneBatch(t, b.Log, appendOf(ours), appendOf(ours), appendOf(theirs))
	for i, err := range errs[:2] {
		if !eventlog.IsUnknown(err) || errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("append %d: error is %v, want an unknown outcome", i, err)
		}
	}
	wantUnavailable(t, errs[2])

	mustAppend(t, b.Log, "next", eventlog.NoStream, event("x"))
	mustAppend(t, b.Log, "contended", eventlog.NoStream, ours)
	mustAppend(t, b.Log, "contended", eventlog.NoStream, ours)
	if err := appendOf(theirs)(); !eventlog.IsConflict(err) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if got := countAll(t, b.Log); got != 3 {
		t.Errorf("the log has %d events, want 3", got)
	}
}

// A connection in doubt that cannot be opened again at once is opened later.
func TestReconnectsWhenTheFileComesBack(t *testing.T) {
	b := openBroken(t, newPath(t))
	b.disk.walSyncFailsOnce.Store(sqlite3.SQLITE_IOERR_FSYNC)
	b.lost = errors.New("lost") // not reached by the failed COMMIT, so spent on the next one
	if _, err := b.Append(t.Context(), "a", eventlog.NoStream, event("x")); !eventlog.IsUnknown(err) {
		t.Fatalf("error is %v, want an unknown outcome", err)
	}
	if _, err := b.Append(t.Context(), "b", eventlog.NoStream, event("x")); !eventlog.IsUnknown(err) {
		t.Fatalf("error is %v, want an unknown outcome", err)
	}
	b.disk.openFails.Store(sqlite3.SQLITE_CANTOPEN)
	_, err := b.Append(t.Context(), "c", eventlog.NoStream, event("x"))
	wantUnavailable(t, err)
	b.disk.openFails.Store(0)
	mustAppend(t, b.Log, "c", eventlog.NoStream, event("x"))
}

// An append that still waits when its context ends is withdrawn and is not
// recorded later; one that finds the queue full waits outside it.
func TestWaitingAppendsAreWithdrawn(t *testing.T) {
	l := open(t, newPath(t), Options{QueueLength: 2})
	person := stranger(t, l.path)
	mustExec(t, person, "BEGIN IMMEDIATE")
	waiting, stop := context.WithCancel(t.Context())
	const appends = 6 // one with the writer, two in the queue, three outside
	errs := make(chan error, appends)
	for i := range appends {
		go func() {
			_, err := l.Append(waiting, name(i), eventlog.NoStream, event("x"))
			errs <- err
		}()
	}
	eventually(t, "a full queue", func() bool { return l.Stats().Queued == 3 })
	stop()
	for range appends {
		err := <-errs
		wantUnavailable(t, err)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want it to name the context's", err)
		}
	}
	mustExec(t, person, "ROLLBACK")
	mustAppend(t, l, "after", eventlog.NoStream, event("x"))
	if got := countAll(t, l); got != 1 {
		t.Errorf("the log has %d events, want only the last one", got)
	}
}

// A lock that is not given back in time is ErrUnavailable for all who wait,
// after one time-out and not one for each.
func TestLockNotGivenBack(t *testing.T) {
	const appends = 50
	l := open(t, newPath(t), Options{BusyTimeout: 200 * time.Millisecond})
	person := stranger(t, l.path)
	mustExec(t, person, "BEGIN IMMEDIATE")
	start := time.Now()
	errs := make(chan error, appends)
	for i := range appends {
		go func() {
			_, err := l.Append(t.Context(), name(i), eventlog.NoStream, event("x"))
			errs <- err
		}()
	}
	for range appends {
		wantUnavailable(t, <-errs)
	}
	if took := time.Since(start); took > 20*l.opts.BusyTimeout {
		t.Errorf("%d appends failed after %v, want about %v", appends, took, l.opts.BusyTimeout)
	}
	mustExec(t, person, "ROLLBACK")
	mustAppend(t, l, "s", eventlog.NoStream, event("x"))
	if got := countAll(t, l); got != 1 {
		t.Errorf("the log has %d events, want only the last one", got)
	}
}

// Close records what waits, and refuses what comes later.
func TestCloseDrains(t *testing.T) {
	path := newPath(t)
	l := open(t, path, Options{})
	person := stranger(t, path)
	mustExec(t, person, "BEGIN IMMEDIATE")
	const appends = 20
	errs := make(chan error, appends)
	for i := range appends {
		go func() {
			_, err := l.Append(t.Context(), name(i), eventlog.NoStream, event("x"))
			errs <- err
		}()
	}
	eventually(t, "all to wait", func() bool { return l.Stats().Queued == appends })
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	<-l.closed
	mustExec(t, person, "ROLLBACK")
	for range appends {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	_, err := l.Append(t.Context(), "late", eventlog.NoStream, event("x"))
	wantUnavailable(t, err)
	for _, err := range l.ReadAll(t.Context(), eventlog.Start) {
		wantUnavailable(t, err)
	}
	wantUnavailable(t, l.Subscribe(t.Context(), eventlog.Start, nil))
	if got := countAll(t, open(t, path, Options{})); got != appends {
		t.Errorf("the log has %d events, want %d", got, appends)
	}
}

// The limits of a batch split what waits, and lose nothing.
func TestBatchLimits(t *testing.T) {
	l := open(t, newPath(t), Options{})
	const appends, each = 25, eventlog.MaxEvents
	calls := make([]func() error, appends)
	for i := range calls {
		events := make([]eventlog.Proposed, each)
		for j := range events {
			events[j] = event(fmt.Sprint(j))
		}
		calls[i] = func() error {
			_, err := l.Append(t.Context(), name(i), eventlog.NoStream, events...)
			return err
		}
	}
	if err := errors.Join(asOneBatch(t, l, calls...)...); err != nil {
		t.Fatal(err)
	}
	if got, want := l.Stats(), (Stats{Batches: 3, Events: appends * each}); got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
}
