package kurrentdb

import (
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
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// TestReadGoesOnBehindABreak: each page is asked for again, from where the last
// one ended.
func TestReadGoesOnBehindABreak(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	var want []eventlog.Proposed
	for range 25 {
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
			if n++; n == 1500 {
				server.DropConnections()
			}
		}
		if n != len(want) || cut.Fired() != 2 {
			t.Errorf("%s: %d events over %d breaks, want %d over 2", name, n, cut.Fired(), len(want))
		}
	}
}
