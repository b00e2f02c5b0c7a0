package kurrentdb

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// A rival's event is written and not yet replicated: the server answers "wrong
// expected version", and a read shows nothing (H11).
func unseenWinner(t *testing.T, settle time.Duration) (*kurrentdbtest.Server, *Log, func()) {
	server := newServer(t)
	rival := openLog(t, testConfig(server))
	l := openLog(t, func() Config { c := testConfig(server); c.SettleTimeout = settle; return c }())
	written := server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendNotIndexed, Delay: 400 * time.Millisecond})
	var appending sync.WaitGroup
	appending.Go(func() { rival.Append(t.Context(), "s", eventlog.NoStream, event("winner")) })
	eventually(t, "the rival's append", func() bool { return written.Fired() == 1 })
	return server, l, appending.Wait
}

// TestConflictIsSaidWhenTheWinnerIsSeen, and it names the winner's revision.
func TestConflictIsSaidWhenTheWinnerIsSeen(t *testing.T) {
	_, l, wait := unseenWinner(t, 10*time.Second)
	defer wait()
	_, err := l.Append(t.Context(), "s", eventlog.NoStream, event("loser"))
	var c *eventlog.ConflictError
	if !errors.As(err, &c) || !c.Exists || c.Current != 0 {
		t.Fatalf("error is %v, want a conflict with revision 0", err)
	}
	n := 0
	for range l.ReadStream(t.Context(), "s", 0) {
		n++
	}
	if n != 1 {
		t.Errorf("the stream shows %d events after the conflict, want the winner", n)
	}
}

// TestWinnerThatStaysUnseen is ErrUnavailable: nothing was recorded, and there is
// nothing to answer a caller with.
func TestWinnerThatStaysUnseen(t *testing.T) {
	_, l, wait := unseenWinner(t, 100*time.Millisecond)
	defer wait()
	_, err := l.Append(t.Context(), "s", eventlog.NoStream, event("loser"))
	if !errors.Is(err, eventlog.ErrUnavailable) || eventlog.IsConflict(err) || eventlog.IsUnknown(err) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
}

// TestWinnerThatIsLost: the leader dies before its event is replicated, and the
// append that lost to it wins after all.
func TestWinnerThatIsLost(t *testing.T) {
	server, l, wait := unseenWinner(t, 10*time.Second)
	defer wait()
	ours := event("ours")
	var appending sync.WaitGroup
	appending.Go(func() {
		if _, err := l.Append(t.Context(), "s", eventlog.NoStream, ours); err != nil {
			t.Error(err)
		}
	})
	if _, err := server.LoseUnindexed(); err != nil {
		t.Fatal(err)
	}
	appending.Wait()
	if got := ids(server, "s"); len(got) == 0 || got[0] != ours.ID.String() {
		t.Errorf("the stream has %v, want %s first", got, ours.ID)
	}
}

// TestSameIDsAtTheSameTime: on the server the second of two such appends stalls
// until it is aborted (H8). Here it waits for the first and is answered at once.
func TestSameIDsAtTheSameTime(t *testing.T) {
	server := kurrentdbtest.Start(t, kurrentdbtest.Options{CommitTimeout: 300 * time.Millisecond})
	seen := newWatching()
	config := testConfig(server)
	config.Observe = seen.observe
	l := openLog(t, config)
	server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendNotIndexed, Delay: 150 * time.Millisecond})
	events := batch("same", 2)
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() {
			if at, err := l.Append(t.Context(), "s", eventlog.NoStream, events...); err != nil || at.Revision != 1 {
				t.Errorf("ended at %+v, error %v", at, err)
			}
		})
	}
	callers.Wait()
	holds(t, server, "s", events...)
	if n := seen.count(Settling); n > 0 {
		t.Errorf("%d appends did not get their answer", n)
	}
}
