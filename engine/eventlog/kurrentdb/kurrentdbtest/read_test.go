package kurrentdbtest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestReadStream(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	for range 10 {
		mustAppend(t, c, "order-1", esdb.Any{}, ids(10)...)
		mustAppend(t, c, "order-2", esdb.Any{}, ids(1)...)
	}
	for _, c2 := range []struct {
		from      esdb.StreamPosition
		direction esdb.Direction
		count     uint64
		want      []uint64
	}{
		{esdb.Start{}, esdb.Forwards, math.MaxUint64, span(0, 99)},
		{esdb.Start{}, esdb.Forwards, 5, span(0, 4)},
		{esdb.Start{}, esdb.Forwards, 64, span(0, 63)},
		{esdb.Revision(33), esdb.Forwards, 40, span(33, 72)},
		{esdb.Revision(99), esdb.Forwards, 40, span(99, 99)},
		{esdb.Revision(100), esdb.Forwards, 40, nil},
		{esdb.End{}, esdb.Backwards, math.MaxUint64, span(99, 0)},
		{esdb.End{}, esdb.Backwards, 1, span(99, 99)},
		{esdb.Revision(50), esdb.Backwards, 40, span(50, 11)},
		{esdb.Revision(500), esdb.Backwards, 40, span(99, 60)},
	} {
		t.Run(fmt.Sprintf("%v %v %d", c2.from, c2.direction, c2.count), func(t *testing.T) {
			got, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: c2.from, Direction: c2.direction}, c2.count)
			if err != nil || !slices.Equal(revisions(got), c2.want) {
				t.Errorf("read %v, %v, want %v", revisions(got), err, c2.want)
			}
		})
	}
	if _, err := readStream(t, c, "order-3", esdb.ReadStreamOptions{From: esdb.Start{}}, 5); codeOf(err) != esdb.ErrorCodeResourceNotFound {
		t.Errorf("a stream that is not there answers %v", err)
	}
	if _, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 0); err == nil {
		t.Error("a read of 0 events is no error")
	}
}

func TestEveryFieldIsRead(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	id := ids(1)[0]
	w, err := c.AppendToStream(soon(t), "order-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}},
		esdb.EventData{EventID: id, EventType: "Made", ContentType: esdb.ContentTypeBinary, Data: []byte{0, 1, 255}, Metadata: []byte("why")})
	if err != nil {
		t.Fatal(err)
	}
	fromStream, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 5)
	if err != nil {
		t.Fatal(err)
	}
	fromAll, err := readAll(t, c, esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*esdb.RecordedEvent{fromStream[0], fromAll[0]} {
		if e.EventID != id || e.EventType != "Made" || e.ContentType != "application/octet-stream" || string(e.Data) != "\x00\x01\xff" ||
			string(e.UserMetadata) != "why" || e.StreamID != "order-1" || e.Position.Commit != w.CommitPosition || e.Position.Prepare != w.PreparePosition {
			t.Errorf("read %+v", e)
		}
	}
}

func TestReadAll(t *testing.T) {
	s := Start(t, Options{StatsEvery: 10})
	c := connect(t, s)
	for range 35 {
		mustAppend(t, c, "order-1", esdb.Any{}, ids(2)...)
	}
	want := s.Events()
	forwards, err := readAll(t, c, esdb.ReadAllOptions{From: esdb.Start{}}, math.MaxUint64)
	if err != nil || len(forwards) != len(want) {
		t.Fatalf("read %d of %d events, %v", len(forwards), len(want), err)
	}
	for i, e := range forwards {
		if e.EventID.String() != want[i].ID || e.Position.Commit != want[i].Position || e.Position.Prepare != want[i].Position {
			t.Fatalf("event %d is %+v, want %+v", i, e, want[i])
		}
	}
	const middle = 40
	at := forwards[middle].Position
	got, err := readAll(t, c, esdb.ReadAllOptions{From: at}, 3)
	if err != nil || len(got) != 3 || got[0].EventID != forwards[middle].EventID {
		t.Errorf("forwards from a position begins elsewhere than at it: %v, %v", got, err)
	}
	got, err = readAll(t, c, esdb.ReadAllOptions{From: at, Direction: esdb.Backwards}, math.MaxUint64)
	if err != nil || len(got) != middle || got[0].EventID != forwards[middle-1].EventID {
		t.Errorf("backwards from a position begins elsewhere than before it: %d, %v", len(got), err)
	}
	got, err = readAll(t, c, esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
	if err != nil || len(got) != 1 || got[0].EventID != forwards[len(forwards)-1].EventID {
		t.Errorf("the newest event is %v, %v", got, err)
	}
	for name, from := range map[string]esdb.AllPosition{"the end": esdb.End{}, "beyond the end": esdb.Position{Commit: 1 << 40, Prepare: 1 << 40}} {
		if got, err = readAll(t, c, esdb.ReadAllOptions{From: from}, 5); err != nil || len(got) != 0 {
			t.Errorf("from %s there are %v, %v", name, got, err)
		}
	}
	for name, from := range map[string]esdb.Position{
		"the middle of a record":             {Commit: at.Commit + 1, Prepare: at.Prepare + 1},
		"a prepare position behind commit's": {Commit: at.Commit, Prepare: at.Prepare + 1},
	} {
		if _, err = readAll(t, c, esdb.ReadAllOptions{From: from}, 5); err == nil {
			t.Errorf("%s is a position to read from", name)
		}
	}
}

// rawRead returns all messages of a read.
func rawRead(t *testing.T, c streams.StreamsClient, o *streams.ReadReq_Options) ([]*streams.ReadResp, error) {
	t.Helper()
	call, err := c.Read(soon(t), &streams.ReadReq{Options: o})
	if err != nil {
		t.Fatal(err)
	}
	var got []*streams.ReadResp
	for {
		m, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, m)
	}
}

func rawStream(stream string, from, count uint64, compatibility uint32) *streams.ReadReq_Options {
	return &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
			StreamIdentifier: named(stream), RevisionOption: &streams.ReadReq_Options_StreamOptions_Revision{Revision: from}}},
		CountOption:   &streams.ReadReq_Options_Count{Count: count},
		FilterOption:  &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		UuidOption:    &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_String_{String_: &shared.Empty{}}},
		ControlOption: &streams.ReadReq_Options_ControlOption{Compatibility: compatibility},
	}
}

func TestReadWithCompatibility(t *testing.T) {
	s := Start(t, Options{})
	c, lib := rawClient(t, s), connect(t, s)
	list := ids(10)
	mustAppend(t, lib, "order-1", esdb.NoStream{}, list...)
	var m esdb.StreamMetadata
	m.SetTruncateBefore(5)
	if _, err := lib.SetStreamMetadata(soon(t), "order-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, m); err != nil {
		t.Fatal(err)
	}
	got, err := rawRead(t, c, rawStream("order-1", 7, 9, 1))
	if err != nil || len(got) != 4 || got[3].GetLastStreamPosition() != 9 || got[0].GetEvent().GetEvent().GetId().GetString_() != list[7].String() {
		t.Errorf("read %v, %v", got, err)
	}
	got, err = rawRead(t, c, rawStream("order-1", 0, 3, 1)) // its first page is all below $tb
	if err != nil || len(got) != 5 || got[0].GetFirstStreamPosition() != 5 || got[4].GetLastStreamPosition() != 9 {
		t.Errorf("read from below the first event %v, %v", got, err)
	}
	if got, err = rawRead(t, c, rawStream("order-1", 7, 9, 0)); err != nil || len(got) != 3 {
		t.Errorf("without compatibility there are %d messages, %v", len(got), err)
	}
	o := rawStream("order-1", 0, 3, 0)
	o.UuidOption = nil
	if _, err = rawRead(t, c, o); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without uuid option it answers %v", err)
	}
}

func TestReadAllFiltered(t *testing.T) {
	s := Start(t, Options{StatsEvery: 3})
	c, lib := rawClient(t, s), connect(t, s)
	for i := range 50 {
		mustAppend(t, lib, fmt.Sprintf("order-%d", i%2), esdb.Any{}, ids(1)...)
	}
	filtered := func(f *streams.ReadReq_Options_FilterOptions) int {
		t.Helper()
		f.Window = &streams.ReadReq_Options_FilterOptions_Max{Max: 7}
		o := rawStream("", 0, math.MaxUint64, 0)
		o.StreamOption = &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}}}}
		o.FilterOption = &streams.ReadReq_Options_Filter{Filter: f}
		got, err := rawRead(t, c, o)
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	type expression = streams.ReadReq_Options_FilterOptions_Expression
	streamIs := func(e *expression) *streams.ReadReq_Options_FilterOptions {
		return &streams.ReadReq_Options_FilterOptions{Filter: &streams.ReadReq_Options_FilterOptions_StreamIdentifier{StreamIdentifier: e}}
	}
	typeIs := func(e *expression) *streams.ReadReq_Options_FilterOptions {
		return &streams.ReadReq_Options_FilterOptions{Filter: &streams.ReadReq_Options_FilterOptions_EventType{EventType: e}}
	}
	for _, c2 := range []struct {
		name string
		got  int
		want int
	}{
		{"prefix of streams", filtered(streamIs(&expression{Prefix: []string{"order-1"}})), 25},
		{"prefixes of streams", filtered(streamIs(&expression{Prefix: []string{"nothing", "order-"}})), 50},
		{"regex of streams", filtered(streamIs(&expression{Regex: "^order-[0]$"})), 25},
		{"prefix of types", filtered(typeIs(&expression{Prefix: []string{"Hap"}})), 50},
		{"regex of types", filtered(typeIs(&expression{Regex: `^[^\$].*`})), 50},
		{"system events", filtered(typeIs(&expression{Prefix: []string{"$stats"}})), 17},
	} {
		if c2.got != c2.want {
			t.Errorf("%s: %d events, want %d", c2.name, c2.got, c2.want)
		}
	}
}
