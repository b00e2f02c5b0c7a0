package sqlite

import (
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Each append that found nobody else waiting costs one sync of the WAL, and is
// not answered before it.
func TestEveryCommitIsSynced(t *testing.T) {
	d := newDisk(t)
	l := open(t, newPath(t), Options{vfs: d.name})
	mustAppend(t, l, "first", eventlog.NoStream, event("the WAL's header is synced too"))
	for i := range 50 {
		before := d.walSyncs.Load()
		mustAppend(t, l, name(i), eventlog.NoStream, event("x"))
		if got := d.walSyncs.Load() - before; got != 1 {
			t.Fatalf("append %d was answered after %d syncs of the WAL, want 1", i, got)
		}
	}
}

// Whatever waits goes into one transaction with one sync.
func TestOneSyncPerBatch(t *testing.T) {
	const appends = 100
	d := newDisk(t)
	l := open(t, newPath(t), Options{vfs: d.name})
	mustAppend(t, l, "first", eventlog.NoStream, event("the WAL's header is synced too"))
	calls := make([]func() error, appends)
	for i := range calls {
		calls[i] = func() error {
			_, err := l.Append(t.Context(), name(i), eventlog.NoStream, event("x"))
			return err
		}
	}
	syncs, batches := d.walSyncs.Load(), l.Stats().Batches
	for _, err := range asOneBatch(t, l, calls...) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := d.walSyncs.Load() - syncs; got != 1 {
		t.Errorf("%d appends that waited together cost %d syncs, want 1", appends, got)
	}
	if got := l.Stats().Batches - batches; got != 1 {
		t.Errorf("%d appends that waited together made %d batches, want 1", appends, got)
	}
	if got := countAll(t, l); got != appends+1 {
		t.Errorf("the log has %d events, want %d", got, appends+1)
	}
}

// A batch without anything to record costs no sync.
func TestConflictsAndRepeatsCostNoSync(t *testing.T) {
	d := newDisk(t)
	l := open(t, newPath(t), Options{vfs: d.name})
	e := event("x")
	mustAppend(t, l, "s", eventlog.NoStream, e)
	before := d.walSyncs.Load()
	mustAppend(t, l, "s", eventlog.NoStream, e)
	if _, err := l.Append(t.Context(), "s", eventlog.NoStream, event("y")); !eventlog.IsConflict(err) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if got := d.walSyncs.Load() - before; got != 0 {
		t.Errorf("a repeat and a conflict cost %d syncs, want none", got)
	}
}
