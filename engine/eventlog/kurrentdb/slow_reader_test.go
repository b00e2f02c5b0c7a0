package kurrentdb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// TestSlowReaderHoldsNothing: what a page has brought does not depend on the
// server any more (H15).
func TestSlowReaderHoldsNothing(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	mustAppend(t, l, "s", eventlog.NoStream, batch("e", 50)...)
	for name, read := range map[string]func(func(eventlog.Recorded, error) bool){
		"stream": l.ReadStream(t.Context(), "s", 0), "all": l.ReadAll(t.Context(), eventlog.Start),
	} {
		n := 0
		for _, err := range read {
			if err != nil {
				t.Fatalf("%s: after %d events: %v", name, n, err)
			}
			if n++; n == 1 {
				server.Stop()
			}
		}
		if n != 50 {
			t.Errorf("%s: %d events, want 50", name, n)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPagesCutByTheirSizeLeakNothing: such a page leaves the client's read before
// its end (H4).
func TestPagesCutByTheirSizeLeakNothing(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	for range 6 {
		mustAppend(t, l, "s", eventlog.Any, event(strings.Repeat("x", 3<<20)))
	}
	before := goleak.IgnoreCurrent()
	// A connection that a client left behind in another test, as it can (DESIGN.md), tries
	// to connect now and then, in a goroutine that is new each time. One that is left here
	// would have more goroutines than this.
	elsewhere := goleak.IgnoreTopFunction("google.golang.org/grpc.(*addrConn).resetTransportAndUnlock")
	for range 10 {
		n := 0
		for _, err := range l.ReadStream(t.Context(), "s", 0) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 6 {
			t.Errorf("read %d events, want 6", n)
		}
	}
	if err := goleak.Find(before, elsewhere); err != nil {
		t.Error(err)
	}
}

// TestReadGoesOnBehindABreak: each page is asked for again, from where the last
// one ended.
func TestReadGoesOnBehindABreak(t *testing.T) {
	server := newServer(t)
	config := testConfig(server)
	l := openLog(t, config)
	var want []eventlog.Proposed
	for range 45 { // more than a page
		events := batch("e", 100)
		want = append(want, events...)
		mustAppend(t, l, "s", eventlog.Any, events...)
	}
	for name, read := range map[string]func(func(eventlog.Recorded, error) bool){
		"stream": l.ReadStream(t.Context(), "s", 0), "all": l.ReadAll(t.Context(), eventlog.Start),
	} {
		cut := server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.ReadCut, After: 700, Times: 2})
		n := 0
		for r, err := range read {
			if err != nil || r.ID != want[n].ID {
				t.Fatalf("%s: event %d is %s (error %v), want %s", name, n, r.ID, err, want[n].ID)
			}
			if n++; n == 3000 {
				server.DropConnections()
			}
		}
		if n != len(want) || cut.Fired() != 2 {
			t.Errorf("%s: %d events over %d breaks, want %d over 2", name, n, cut.Fired(), len(want))
		}
	}
}

// TestOthersEventsAreReadOnce: whoever asks again for what is new does not receive
// again what others wrote (H21), and sees what is new.
func TestOthersEventsAreReadOnce(t *testing.T) {
	server := newServer(t)
	ours, theirs := testConfig(server), testConfig(server)
	theirs.Namespace = "others"
	l, other := openLog(t, ours), openLog(t, theirs)
	at := mustAppend(t, l, "s", eventlog.NoStream, event("first")).Position
	for n := range 90 {
		mustAppend(t, other, fmt.Sprint("s", n), eventlog.NoStream, batch(fmt.Sprint("theirs", n), 100)...)
	}
	pages := func(after eventlog.Position) (n int) {
		before := len(server.Calls())
		for r, err := range l.ReadAll(t.Context(), after) {
			t.Errorf("behind the log's newest event there is %v, error %v", r, err)
		}
		return len(server.Calls()) - before
	}
	if first, again := pages(at), pages(at); first < 3 || again != 1 {
		t.Errorf("%d pages at first, and %d again; want 3 or more, and 1", first, again)
	}
	newest := mustAppend(t, l, "s", eventlog.Exactly(0), event("second")).Position
	var seen []eventlog.Position
	for _, after := range []eventlog.Position{at, eventlog.Start, at} {
		for r, err := range l.ReadAll(t.Context(), after) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, r.Position)
		}
	}
	if want := []eventlog.Position{newest, at, newest, newest}; !slices.Equal(seen, want) {
		t.Errorf("read %v, want %v", seen, want)
	}
}

// TestStreamOfAnotherLogIsRefused: none of its events would ever be handed out.
func TestStreamOfAnotherLogIsRefused(t *testing.T) {
	server := newServer(t)
	config := testConfig(server)
	config.Streams = []string{"update-"}
	l := openLog(t, config)
	n := 0
	for _, err := range l.ReadStream(t.Context(), "other-1", 0) {
		if n++; !errors.Is(err, eventlog.ErrInvalid) || n > 1 {
			t.Fatalf("answer %d is %v, want one, invalid", n, err)
		}
	}
	if n != 1 {
		t.Errorf("%d answers, want one", n)
	}
}
