package kurrentdb

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// TestWhatFailsBeforeTheLastMessageIsNotRecorded: what the client says when
// the server has ended the call while it still sends (H10). The one error says
// EOF and has no code; that it is wrapped tells it from an answer that was lost.
func TestWhatFailsBeforeTheLastMessageIsNotRecorded(t *testing.T) {
	server := newServer(t)
	var wrapped, bare int
	for range 40 {
		server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendDenied})
		c := bareClient(t, server)
		var events []eventlog.Proposed
		for range 20 {
			events = append(events, event(strings.Repeat("x", 300<<10)))
		}
		_, err := c.AppendToStream(t.Context(), "test.s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, messages(events)...)
		if _, isBare := err.(*esdb.Error); isBare {
			bare++
			continue
		}
		wrapped++
		if v := judge(err); v != notLeft {
			t.Errorf("%v is judged %d, want %d", err, v, notLeft)
		}
	}
	if wrapped == 0 {
		t.Errorf("none of %d attempts failed while it was sent", bare)
	}
	if got := ids(server, "s"); len(got) > 0 {
		t.Errorf("%d events were recorded", len(got))
	}
}

// TestLostAnswersAreUnclear: bare errors of an append whose request was
// complete, whether it was recorded or not.
func TestLostAnswersAreUnclear(t *testing.T) {
	server := kurrentdbtest.Start(t, kurrentdbtest.Options{CommitTimeout: 50 * time.Millisecond})
	for _, point := range []kurrentdbtest.Point{kurrentdbtest.AppendLost, kurrentdbtest.AppendCut, kurrentdbtest.AppendTimeout, kurrentdbtest.AppendNotReady} {
		server.Inject(kurrentdbtest.Fault{Point: point})
		_, err := bareClient(t, server).AppendToStream(t.Context(), "test."+string(point), esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, messages(batch("e", 1))...)
		if v := judge(err); v != unclear {
			t.Errorf("%s: %v is judged %d, want %d", point, err, v, unclear)
		}
	}
}

// TestOnlyAMissingStreamIsNotFound: a follower's refusal has the gRPC code
// NotFound too.
func TestOnlyAMissingStreamIsNotFound(t *testing.T) {
	server := newServer(t)
	s, err := bareClient(t, server).ReadStream(t.Context(), "test.missing", esdb.ReadStreamOptions{From: esdb.Start{}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Recv(); !isNotFound(err) || !isNotFound(fmt.Errorf("wrapped: %w", err)) {
		t.Errorf("%v is not taken for a missing stream", err)
	}
	server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.ReadUnavailable, Status: codes.NotFound})
	if s, err = bareClient(t, server).ReadStream(t.Context(), "test.missing", esdb.ReadStreamOptions{From: esdb.Start{}}, 1); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Recv(); status.Code(err) != codes.NotFound || isNotFound(err) {
		t.Errorf("%v is taken for a missing stream", err)
	}
	if isNotFound(errors.New("x")) || isNotFound(nil) {
		t.Error("anything is taken for a missing stream")
	}
}

// TestWrappedErrorsAreSeen: the client wraps what a subscription is refused
// with, and its own FromError then knows nothing (H9).
func TestWrappedErrorsAreSeen(t *testing.T) {
	server := newServer(t)
	server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.SubscribeUnavailable, Status: codes.PermissionDenied})
	_, err := bareClient(t, server).SubscribeToAll(t.Context(), esdb.SubscribeToAllOptions{From: esdb.Start{}})
	if e, _ := esdb.FromError(err); e == nil || e.Code() != esdb.ErrorCodeUnknown {
		t.Errorf("FromError knows %v as %v: the hazard is gone", err, e)
	}
	if v := judge(err); v != refused {
		t.Errorf("%v is judged %d, want %d", err, v, refused)
	}
}

func TestKindsAreNamed(t *testing.T) {
	for kind, want := range map[Kind]string{Connected: "connected", Stalled: "stalled", 0: "kind 0"} {
		if got := kind.String(); got != want {
			t.Errorf("kind %d is called %q, want %q", int(kind), got, want)
		}
	}
}
