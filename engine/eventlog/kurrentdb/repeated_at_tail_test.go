package kurrentdb

import (
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// TestLostAnswerAndARivalBehind: the answer is lost, and before the adapter
// looks, another process appends behind our events. They are no longer the
// newest: an adapter that looked there, or asked for the new tail, would record
// them twice, since the server does so at the tail (H7).
func TestLostAnswerAndARivalBehind(t *testing.T) {
	for name, expected := range map[string]eventlog.Expected{"no stream": eventlog.NoStream, "exactly": eventlog.Exactly(0), "any": eventlog.Any} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			rival := openLog(t, testConfig(server))
			var want []eventlog.Proposed
			if !expected.IsNoStream() {
				first := event("first")
				want = append(want, first)
				mustAppend(t, rival, "s", eventlog.NoStream, first)
			}
			behind := batch("behind", 3)
			config := testConfig(server)
			config.Observe = func(n Notice) {
				if n.Kind == Settling {
					mustAppend(t, rival, "s", eventlog.Any, behind...)
				}
			}
			l := openLog(t, config)
			events := batch("ours", 2)
			server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendLost})
			at := mustAppend(t, l, "s", expected, events...)
			if want := uint64(len(want) + 1); at.Revision != want {
				t.Errorf("ended at revision %d, want %d", at.Revision, want)
			}
			want = append(append(want, events...), behind...)
			holds(t, server, "s", want...)
		})
	}
}

// TestAnyRepeatedAfterTheServersRestart: the server knows a repeat with Any from
// a cache that a restart empties (H7).
func TestAnyRepeatedAfterTheServersRestart(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	mustAppend(t, l, "s", eventlog.NoStream, event("first"))
	events := batch("noted", 2)
	at := mustAppend(t, l, "s", eventlog.Any, events...)
	if err := server.Restart(true); err != nil {
		t.Fatal(err)
	}
	if again := mustAppend(t, l, "s", eventlog.Any, events...); again != at {
		t.Errorf("repeated, the append ends at %+v, want %+v", again, at)
	}
	if got := len(ids(server, "s")); got != 3 {
		t.Errorf("the stream has %d events, want 3", got)
	}
}
