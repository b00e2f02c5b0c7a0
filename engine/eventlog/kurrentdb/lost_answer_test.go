package kurrentdb

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// TestEveryWayToLoseAnAnswer: the append finds out by itself what became of it,
// and is recorded once.
func TestEveryWayToLoseAnAnswer(t *testing.T) {
	for _, point := range []kurrentdbtest.Point{
		kurrentdbtest.AppendLost, kurrentdbtest.AppendCut, kurrentdbtest.AppendNotIndexed, kurrentdbtest.AppendTimeout,
		kurrentdbtest.AppendNotReady, kurrentdbtest.AppendNotLeader, kurrentdbtest.AppendHang, kurrentdbtest.AppendLate,
	} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			server := kurrentdbtest.Start(t, kurrentdbtest.Options{CommitTimeout: 50 * time.Millisecond})
			config := testConfig(server)
			config.AppendTimeout = 150 * time.Millisecond
			l := openLog(t, config)
			var want []eventlog.Proposed
			for i, expected := range []eventlog.Expected{eventlog.NoStream, eventlog.Exactly(1), eventlog.Any} {
				events := batch("e", 2)
				want = append(want, events...)
				met := server.Inject(kurrentdbtest.Fault{Point: point, Delay: 100 * time.Millisecond})
				at := mustAppend(t, l, "s", expected, events...)
				if at.Revision != uint64(len(want)-1) {
					t.Errorf("append %d ended at revision %d, want %d", i, at.Revision, len(want)-1)
				}
				tail, err := l.Tail(t.Context())
				if err != nil || tail != at.Position {
					t.Errorf("append %d says position %s, the tail is %s (error %v)", i, at.Position, tail, err)
				}
				if met.Fired() != 1 {
					t.Errorf("append %d met the fault %d times", i, met.Fired())
				}
			}
			holds(t, server, "s", want...)
		})
	}
}

// TestRefusalsAreNotRepeated, and never unknown.
func TestRefusalsAreNotRepeated(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	denied := server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendDenied, Probability: 1})
	_, err := l.Append(t.Context(), "s", eventlog.NoStream, event("x"))
	if !errors.Is(err, eventlog.ErrUnavailable) || eventlog.IsUnknown(err) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	if denied.Fired() > 2 { // a second one when the first was refused before it was complete
		t.Errorf("%d attempts", denied.Fired())
	}
}

// TestEndedContextIsUnknownAtOnce: once a request may have left, the end of the
// context is no proof of anything.
func TestEndedContextIsUnknownAtOnce(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	hanging := server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendHang})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		eventually(t, "the append under way", func() bool { return hanging.Fired() == 1 })
		cancel()
	}()
	_, err := l.Append(ctx, "s", eventlog.NoStream, event("x"))
	if !eventlog.IsUnknown(err) || !errors.Is(err, context.Canceled) || errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("error is %v, want an unknown outcome and the context's error", err)
	}
}

// TestLargeAppendIsKnownAgain: an append of more than a page of a read is compared
// whole with what is there (H25).
func TestLargeAppendIsKnownAgain(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	var events []eventlog.Proposed
	for range 3 {
		events = append(events, event(strings.Repeat("x", 5<<19)))
	}
	for stream, expected := range map[string]eventlog.Expected{"none": eventlog.NoStream, "any": eventlog.Any} {
		server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendLost})
		first, err := l.Append(t.Context(), stream, expected, events...)
		again, errAgain := l.Append(t.Context(), stream, expected, events...)
		if err != nil || errAgain != nil || first != again {
			t.Errorf("%s: %+v (%v), and again %+v (%v)", expected, first, err, again, errAgain)
		}
	}
}
