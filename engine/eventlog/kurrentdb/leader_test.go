package kurrentdb

import (
	"context"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// TestEveryCallDemandsTheLeader: a follower shows less than was acknowledged
// (G8), and the client's own option for it sends nothing (H5).
func TestEveryCallDemandsTheLeader(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	mustAppend(t, l, "s", eventlog.NoStream, event("x"))
	mustAppend(t, l, "s", eventlog.Any, event("y"))
	for range l.ReadStream(t.Context(), "s", 0) {
	}
	for range l.ReadAll(t.Context(), eventlog.Start) {
	}
	l.Subscribe(t.Context(), eventlog.Start, func(context.Context, eventlog.Recorded) error { return context.Canceled })
	methods := map[string]bool{}
	for _, c := range server.Calls() {
		methods[c.Method] = true
		if !c.RequiresLeader {
			t.Errorf("%s of %s did not demand the leader", c.Method, c.Stream)
		}
	}
	if len(methods) != 3 {
		t.Errorf("saw the methods %v, want appends, reads and subscriptions", methods)
	}
}

// TestNotTheLeader: the client follows the hint and is used on; the call is made
// again. Nothing of it is a missing stream, though the gRPC code is NotFound.
func TestNotTheLeader(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	first := event("x")
	server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendNotLeader, Times: 3})
	mustAppend(t, l, "s", eventlog.NoStream, first)
	server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.ReadStale, Behind: 1, Times: 3})
	n := 0
	for _, err := range l.ReadStream(t.Context(), "s", 0) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("read %d events, want 1", n)
	}
	holds(t, server, "s", first)
}
