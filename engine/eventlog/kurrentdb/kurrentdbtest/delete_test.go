package kurrentdbtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

func remove(t *testing.T, c *esdb.Client, stream string) {
	t.Helper()
	if _, err := c.DeleteStream(soon(t), stream, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}}); err != nil {
		t.Fatal(err)
	}
}

func TestASoftDeletedStreamGoesOn(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	old := ids(3)
	mustAppend(t, c, "order-1", esdb.NoStream{}, old...)
	remove(t, c, "order-1")
	if _, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 9); codeOf(err) != esdb.ErrorCodeResourceNotFound {
		t.Errorf("reading it answers %v", err)
	}
	if _, err := append1(t, c, "order-1", esdb.StreamExists{}, ids(1)...); codeOf(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("stream exists answers %v", err)
	}
	if w := mustAppend(t, c, "order-1", esdb.NoStream{}, old...); w.NextExpectedVersion != 2 || w.CommitPosition != 0 {
		t.Errorf("the deleted events again answer %+v, want success without a position", w)
	}
	if w := mustAppend(t, c, "order-1", esdb.NoStream{}, ids(2)...); w.NextExpectedVersion != 4 {
		t.Errorf("new events answer %d, want 4: revisions go on", w.NextExpectedVersion)
	}
	got, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 9)
	if want := span(3, 4); err != nil || !slices.Equal(revisions(got), want) {
		t.Errorf("read %v, %v, want %v", revisions(got), err, want)
	}
}

func TestATombstoneIsForEver(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	old := ids(2)
	mustAppend(t, c, "order-1", esdb.NoStream{}, old...)
	if _, err := c.TombstoneStream(soon(t), "order-1", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Revision(1)}); err != nil {
		t.Fatal(err)
	}
	for _, expected := range []esdb.ExpectedRevision{esdb.NoStream{}, esdb.Any{}, esdb.StreamExists{}, esdb.Revision(1)} {
		if _, err := append1(t, c, "order-1", expected, old...); codeOf(err) != esdb.ErrorCodeStreamDeleted {
			t.Errorf("append at %v answers %v", expected, err)
		}
	}
	if _, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 9); codeOf(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("reading it answers %v", err)
	}
	all, err := readAll(t, c, esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
	if err != nil || all[0].EventType != "$streamDeleted" || all[0].EventNumber != deletedStream {
		t.Errorf("the newest event is %+v, %v", all, err)
	}
}

func TestDeleteWantsTheRevision(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(2)...)
	for stream, expected := range map[string]esdb.ExpectedRevision{"order-1": esdb.Revision(0), "order-2": esdb.Any{}} {
		if _, err := c.DeleteStream(soon(t), stream, esdb.DeleteStreamOptions{ExpectedRevision: expected}); err == nil {
			t.Errorf("%s was deleted at %v", stream, expected)
		}
	}
}

// TestMaxCountEndsIdempotency: it hides events from readers at once, and from
// the comparison of ids when the log is scavenged.
func TestMaxCountEndsIdempotency(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	old := ids(5)
	mustAppend(t, c, "order-1", esdb.NoStream{}, old...)
	var m esdb.StreamMetadata
	m.SetMaxCount(2)
	if _, err := c.SetStreamMetadata(soon(t), "order-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, m); err != nil {
		t.Fatal(err)
	}
	got, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 9)
	if want := span(3, 4); err != nil || !slices.Equal(revisions(got), want) {
		t.Errorf("read %v, %v, want %v", revisions(got), err, want)
	}
	got, err = readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards}, 9)
	if want := span(4, 3); err != nil || !slices.Equal(revisions(got), want) {
		t.Errorf("read backwards %v, %v, want %v", revisions(got), err, want)
	}
	if w := mustAppend(t, c, "order-1", esdb.NoStream{}, old[0]); w.NextExpectedVersion != 0 || w.CommitPosition != 0 {
		t.Errorf("a hidden event again answers %+v, want success without a position", w)
	}
	if err := s.Scavenge(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(true); err != nil { // forgets the cache of ids
		t.Fatal(err)
	}
	c = connect(t, s)
	if _, err := append1(t, c, "order-1", esdb.NoStream{}, old[0]); codeOf(err) != conflict {
		t.Errorf("a scavenged event again answers %v, want a conflict", err)
	}
	all, err := readAll(t, c, esdb.ReadAllOptions{From: esdb.Start{}}, 99)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all {
		if e.StreamID == "order-1" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("$all has %d of the events, want 2", n)
	}
}

func TestAMetastreamShowsItsNewestEvent(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	for n := range uint64(3) {
		var m esdb.StreamMetadata
		m.SetMaxCount(n + 1)
		if _, err := c.SetStreamMetadata(soon(t), "order-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readStream(t, c, "$$order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 9)
	if err != nil || !slices.Equal(revisions(got), span(2, 2)) {
		t.Errorf("read %v, %v", revisions(got), err)
	}
}

func TestTruncateBeforeHides(t *testing.T) {
	s := Start(t, Options{})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(100)...)
	var m esdb.StreamMetadata
	m.SetTruncateBefore(70)
	if _, err := c.SetStreamMetadata(soon(t), "order-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, m); err != nil {
		t.Fatal(err)
	}
	got, err := readStream(t, c, "order-1", esdb.ReadStreamOptions{From: esdb.Start{}}, 1000)
	if want := span(70, 99); err != nil || !slices.Equal(revisions(got), want) {
		t.Errorf("read %v, %v, want %v", revisions(got), err, want)
	}
	meta, err := c.GetStreamMetadata(soon(t), "order-1", esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards})
	if err != nil || fmt.Sprint(*meta.TruncateBefore()) != "70" {
		t.Errorf("metadata is %v, %v", meta, err)
	}
}
