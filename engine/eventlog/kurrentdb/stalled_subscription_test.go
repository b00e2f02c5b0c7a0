package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// follower is one call of Subscribe.
type follower struct {
	t      testing.TB
	events chan eventlog.Recorded
	done   chan error
	stop   context.CancelFunc
}

func follow(t testing.TB, l *Log, after eventlog.Position) *follower {
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{t: t, events: make(chan eventlog.Recorded), done: make(chan error, 1), stop: stop}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.done <- l.Subscribe(ctx, after, func(ctx context.Context, r eventlog.Recorded) error {
			select {
			case f.events <- r:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	t.Cleanup(func() { stop(); <-ended })
	return f
}

// expect fails the test unless exactly these events come next.
func (f *follower) expect(want ...eventlog.Proposed) {
	f.t.Helper()
	for i, e := range want {
		select {
		case r := <-f.events:
			if r.ID != e.ID {
				f.t.Fatalf("event %d of %d is %s (%s), want %s (%s)", i, len(want), r.ID, r.Data, e.ID, e.Data)
			}
		case err := <-f.done:
			f.t.Fatalf("subscription ended before event %d of %d: %v", i, len(want), err)
		case <-time.After(20 * time.Second):
			f.t.Fatalf("event %d of %d did not come", i, len(want))
		}
	}
}

// TestSubscriptionResumes after whatever ends or silences it, without a gap and
// without a repetition.
func TestSubscriptionResumes(t *testing.T) {
	tests := map[string]struct {
		fault   kurrentdbtest.Fault
		watched bool // only the watchdog finds it out
	}{
		"stalled":             {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeStall, After: 2}, true},
		"stalled at once":     {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeStall}, true},
		"never confirmed":     {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeUnconfirmed}, true},
		"not to be had":       {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeUnavailable, Times: 3}, false},
		"dropped":             {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeDrop, After: 3, Times: 2}, false},
		"dropped as aborted":  {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeDrop, After: 1, Status: codes.Aborted}, false},
		"dropped as canceled": {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeDrop, After: 1, Status: codes.Canceled}, false},
		"connection reset":    {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeCut, After: 3, Times: 2}, false},
		"bogus checkpoint":    {kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeCheckpoint, After: 1}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			seen := newWatching()
			config := testConfig(server)
			config.Observe, config.Watchdog = seen.observe, time.Hour
			if test.watched {
				config.Watchdog = 100 * time.Millisecond
			}
			l := openLog(t, config)
			old := batch("old", 5)
			mustAppend(t, l, "s", eventlog.NoStream, old...)
			met := server.Inject(test.fault)
			f := follow(t, l, eventlog.Start)
			f.expect(old...)
			for i := range 5 {
				live := batch(fmt.Sprint("live", i), 2)
				mustAppend(t, l, fmt.Sprint("s-", i), eventlog.NoStream, live...)
				f.expect(live...)
			}
			server.DropConnections() // behind a checkpoint, bogus or not
			last := batch("last", 3)
			mustAppend(t, l, "s", eventlog.Exactly(4), last...)
			f.expect(last...)
			if met.Fired() == 0 {
				t.Error("the fault did not happen")
			}
			if seen.count(Resuming) == 0 {
				t.Error("no notice of resuming")
			}
		})
	}
}

// TestStallBetweenEvents: nothing comes and nothing fails, while the log grows
// (H12).
func TestStallBetweenEvents(t *testing.T) {
	server := newServer(t)
	seen := newWatching()
	config := testConfig(server)
	config.Observe, config.Watchdog = seen.observe, 50*time.Millisecond
	l := openLog(t, config)
	server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeStall, After: 1})
	f := follow(t, l, eventlog.Start)
	first, second := event("first"), event("second")
	mustAppend(t, l, "a", eventlog.NoStream, first)
	f.expect(first)
	mustAppend(t, l, "b", eventlog.NoStream, second)
	f.expect(second)
	if seen.count(Stalled) == 0 {
		t.Error("no notice of the stall")
	}
}

// TestRightlySilent: with nothing new, the watchdog leaves the subscription
// alone, and it does not end either.
func TestRightlySilent(t *testing.T) {
	server := newServer(t)
	seen := newWatching()
	config := testConfig(server)
	config.Observe, config.Watchdog, config.ResumeTimeout = seen.observe, 10*time.Millisecond, 50*time.Millisecond
	l := openLog(t, config)
	f := follow(t, l, eventlog.Start)
	seen.until(t, CaughtUp, 1)
	reads := func() int {
		n := 0
		for _, c := range server.Calls() {
			if c.Method == "Read" {
				n++
			}
		}
		return n
	}
	before, resumed := reads(), seen.count(Resuming) // it may do so while it is being confirmed
	eventually(t, "twenty looks of the watchdog", func() bool { return reads() >= before+20 })
	if n := seen.count(Resuming) - resumed; n > 0 {
		t.Errorf("resumed %d times without need", n)
	}
	live := event("live")
	mustAppend(t, l, "s", eventlog.NoStream, live)
	f.expect(live)
}

// TestSubscriptionOverRestarts of the server, and behind a position that the
// log has not reached.
func TestSubscriptionOverRestarts(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	first := mustAppend(t, l, "s", eventlog.NoStream, event("first"))
	f := follow(t, l, first.Position)
	for i := range 5 {
		if err := server.Restart(true); err != nil {
			t.Fatal(err)
		}
		e := event(fmt.Sprint(i))
		mustAppend(t, l, "s", eventlog.Any, e)
		f.expect(e)
	}
	commit, _ := first.Position.Parts()
	ahead := follow(t, l, eventlog.NewPosition(commit+1<<20, commit+1<<20))
	mustAppend(t, l, "s", eventlog.Any, event("not yet there"))
	select {
	case r := <-ahead.events:
		t.Errorf("an event at %s came to a subscription far behind it", r.Position)
	case err := <-ahead.done:
		t.Errorf("subscription ended: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
}

// TestWhereResumingEnds: the server is away for too long, or refuses.
func TestWhereResumingEnds(t *testing.T) {
	server := newServer(t)
	config := testConfig(server)
	config.ResumeTimeout = 200 * time.Millisecond
	l := openLog(t, config)
	denied := server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeUnavailable, Status: codes.PermissionDenied})
	f := follow(t, l, eventlog.Start)
	if err := <-f.done; !errors.Is(err, eventlog.ErrUnavailable) || denied.Fired() != 1 {
		t.Errorf("refused, the subscription ended with %v after %d attempts", err, denied.Fired())
	}
	f = follow(t, l, eventlog.Start)
	e := event("x")
	mustAppend(t, l, "s", eventlog.NoStream, e)
	f.expect(e)
	server.Stop()
	if err := <-f.done; !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("without a server, the subscription ended with %v", err)
	}
}

// TestNoEventIsHandedTwice, whatever the server sends behind a position.
func TestNoEventIsHandedTwice(t *testing.T) {
	l := openLog(t, testConfig(newServer(t)))
	var handed []uint64
	s := &subscription{log: l, handler: func(_ context.Context, r eventlog.Recorded) error {
		handed = append(handed, r.Revision)
		return nil
	}}
	for _, n := range []uint64{1, 2, 2, 1, 3} {
		e := &esdb.RecordedEvent{
			StreamID: "test.s", EventNumber: n, Position: esdb.Position{Commit: n, Prepare: n}, UserMetadata: []byte(timeBegins + "2026-03-01T12:00:00Z" + timeEnds),
		}
		if err := s.hand(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(handed, []uint64{1, 2, 3}) {
		t.Errorf("handed over %v, want 1 2 3", handed)
	}
}
