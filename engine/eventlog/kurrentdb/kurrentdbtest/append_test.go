package kurrentdbtest

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func named(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

func header(o *streams.AppendReq_Options) *streams.AppendReq {
	return &streams.AppendReq{Content: &streams.AppendReq_Options_{Options: o}}
}

func message(m *streams.AppendReq_ProposedMessage) *streams.AppendReq {
	return &streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: m}}
}

func plain(id uuid.UUID) *streams.AppendReq_ProposedMessage {
	return &streams.AppendReq_ProposedMessage{
		Id: idTo(id, true), Metadata: map[string]string{"type": "Happened", "content-type": "application/json"}, Data: []byte("{}"),
	}
}

// rawAppend sends messages and returns what came back, trailers too.
func rawAppend(t *testing.T, c streams.StreamsClient, messages ...*streams.AppendReq) (*streams.AppendResp, metadata.MD, error) {
	t.Helper()
	var trailers metadata.MD
	call, err := c.Append(soon(t), grpc.Trailer(&trailers))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if call.Send(m) != nil {
			break // the answer says why
		}
	}
	resp, err := call.CloseAndRecv()
	return resp, trailers, err
}

func TestAppendAnswers(t *testing.T) {
	s := Start(t, Options{})
	c := rawClient(t, s)
	empty := &shared.Empty{}
	newStream := header(&streams.AppendReq_Options{StreamIdentifier: named("order-1"), ExpectedStreamRevision: &streams.AppendReq_Options_NoStream{NoStream: empty}})
	resp, _, err := rawAppend(t, c, newStream, message(plain(uuid.New())), message(plain(uuid.New())))
	success := resp.GetSuccess()
	if err != nil || success.GetCurrentRevision() != 1 {
		t.Fatalf("answered %v, %v", resp, err)
	}
	all := s.Events()
	if newest := all[len(all)-1]; success.GetPosition().GetCommitPosition() != newest.Position || success.GetPosition().GetPreparePosition() != newest.Position {
		t.Errorf("the position is %v, want that of the newest event, %d", success.GetPosition(), newest.Position)
	}

	resp, _, err = rawAppend(t, c, newStream, message(plain(uuid.New())))
	wrong := resp.GetWrongExpectedVersion()
	if err != nil || wrong.GetCurrentRevision() != 1 || wrong.GetExpectedNoStream() == nil || wrong.GetCurrentRevision_20_6_0() != 1 || wrong.GetExpectedRevision_20_6_0() != math.MaxUint64 {
		t.Errorf("a conflict answers %v, %v", resp, err)
	}
	at := header(&streams.AppendReq_Options{StreamIdentifier: named("order-2"), ExpectedStreamRevision: &streams.AppendReq_Options_Revision{Revision: 7}})
	resp, _, err = rawAppend(t, c, at, message(plain(uuid.New())))
	wrong = resp.GetWrongExpectedVersion()
	if err != nil || wrong.GetCurrentNoStream() == nil || wrong.GetExpectedRevision() != 7 {
		t.Errorf("a conflict without a stream answers %v, %v", resp, err)
	}

	resp, _, err = rawAppend(t, c, header(&streams.AppendReq_Options{StreamIdentifier: named("order-3"), ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: empty}}))
	if _, none := resp.GetSuccess().GetCurrentRevisionOption().(*streams.AppendResp_Success_NoStream); err != nil || !none {
		t.Errorf("an append of nothing answers %v, %v", resp, err)
	}
}

func TestAppendRefuses(t *testing.T) {
	s := Start(t, Options{MaxAppendSize: 100})
	c := rawClient(t, s)
	expect := func(e *streams.AppendReq_Options) *streams.AppendReq { return header(e) }
	anyOf := func(stream string) *streams.AppendReq {
		return expect(&streams.AppendReq_Options{StreamIdentifier: named(stream), ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: &shared.Empty{}}})
	}
	changed := func(f func(*streams.AppendReq_ProposedMessage)) *streams.AppendReq {
		m := plain(uuid.New())
		f(m)
		return message(m)
	}
	type refusal struct {
		name      string
		messages  []*streams.AppendReq
		code      codes.Code
		exception string
	}
	for _, c2 := range []refusal{
		{"the events are too large together", []*streams.AppendReq{anyOf("a"),
			changed(func(m *streams.AppendReq_ProposedMessage) { m.Data = make([]byte, 40) }),
			changed(func(m *streams.AppendReq_ProposedMessage) { m.CustomMetadata = make([]byte, 40) })},
			codes.InvalidArgument, "maximum-append-size-exceeded"},
		{"no type", []*streams.AppendReq{anyOf("a"), changed(func(m *streams.AppendReq_ProposedMessage) { delete(m.Metadata, "type") })},
			codes.InvalidArgument, "missing-required-metadata-property"},
		{"no content type", []*streams.AppendReq{anyOf("a"), changed(func(m *streams.AppendReq_ProposedMessage) { delete(m.Metadata, "content-type") })},
			codes.InvalidArgument, "missing-required-metadata-property"},
		{"the nil id", []*streams.AppendReq{anyOf("a"), message(plain(uuid.Nil))}, codes.Unknown, ""},
		{"no id", []*streams.AppendReq{anyOf("a"), changed(func(m *streams.AppendReq_ProposedMessage) { m.Id = nil })}, codes.Unknown, ""},
		{"no expected revision", []*streams.AppendReq{expect(&streams.AppendReq_Options{StreamIdentifier: named("a")})}, codes.InvalidArgument, ""},
		{"a revision of 2^63", []*streams.AppendReq{expect(&streams.AppendReq_Options{
			StreamIdentifier: named("a"), ExpectedStreamRevision: &streams.AppendReq_Options_Revision{Revision: 1 << 63}})}, codes.Unknown, ""},
		{"no stream name", []*streams.AppendReq{anyOf("")}, codes.Unknown, ""},
		{"$all", []*streams.AppendReq{anyOf("$all"), message(plain(uuid.New()))}, codes.PermissionDenied, "access-denied"},
		{"no header", []*streams.AppendReq{message(plain(uuid.New()))}, codes.Unknown, ""},
	} {
		t.Run(c2.name, func(t *testing.T) {
			before := len(s.Events())
			_, trailers, err := rawAppend(t, c, c2.messages...)
			exception := ""
			if values := trailers.Get("exception"); len(values) > 0 {
				exception = values[0]
			}
			if status.Code(err) != c2.code || exception != c2.exception {
				t.Errorf("answered %v, exception %q, want %v, %q", err, exception, c2.code, c2.exception)
			}
			if len(s.Events()) != before {
				t.Error("something was written")
			}
		})
	}
}

func TestPositionsAreBytesWithGaps(t *testing.T) {
	s := Start(t, Options{StatsEvery: -1})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(2)...)
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, connect(t, s), "order-1", esdb.Revision(1), ids(1)...)
	list := s.Events()
	if list[0].Position == 0 || list[1].Position-list[0].Position < 50 {
		t.Errorf("positions %d, %d are no byte offsets", list[0].Position, list[1].Position)
	}
	if list[2].Position-list[1].Position <= list[1].Position-list[0].Position {
		t.Errorf("a start took no place in the log: %d, %d, %d", list[0].Position, list[1].Position, list[2].Position)
	}
}

func TestCreatedIsTheServersClock(t *testing.T) {
	s := Start(t, Options{})
	s.SetClockSkew(-48 * time.Hour)
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(1)...)
	got, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	created := got[0].CreatedDate
	if age := time.Since(created); age < 47*time.Hour || age > 49*time.Hour {
		t.Errorf("created %v ago", age)
	}
	if created.Nanosecond()%100 != 0 {
		t.Errorf("created %v is finer than 100 ns", created)
	}
}

func TestTheServerWritesEventsOfItsOwn(t *testing.T) {
	s := Start(t, Options{StatsEvery: 2})
	c := connect(t, s)
	for range 4 {
		mustAppend(t, c, "order-1", esdb.Any{}, ids(1)...)
	}
	own := 0
	for _, e := range s.Events() {
		if e.Type == "$statsCollected" {
			own++
		}
	}
	if own != 3 { // one at the start
		t.Errorf("%d events of its own, want 3", own)
	}
}

func TestAnAppendWhoseClientIsGoneIsDropped(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	slow := s.Inject(Fault{Point: AppendSlow, Delay: 3 * within})
	ctx, cancel := context.WithCancel(soon(t))
	ended := make(chan error, 1)
	go func() {
		_, err := c.AppendToStream(ctx, "order-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, events(ids(1)...)...)
		ended <- err
	}()
	until(t, "the append to arrive", func() bool { return slow.Fired() == 1 })
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("it was answered")
	}
	s.Stop() // waits for the handler
	if n := lengthOf(s, "order-1"); n != 0 {
		t.Errorf("%d events were written", n)
	}
}

// until polls a condition.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	ctx := soon(t)
	for !f() {
		if pause(ctx, time.Millisecond) != nil {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
