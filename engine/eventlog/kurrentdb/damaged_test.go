package kurrentdb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

func bareClient(t testing.TB, server *kurrentdbtest.Server) *esdb.Client {
	config, err := clientConfig(server.ConnectionString())
	if err != nil {
		t.Fatal(err)
	}
	c, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func isDamaged(err error) bool {
	var d *DamagedError
	return errors.As(err, &d)
}

func lastError(l *Log, t testing.TB, stream string) (err error) {
	for _, err = range l.ReadStream(t.Context(), stream, 0) {
	}
	return err
}

// TestDeletedStreamIsFoundOut: a stream that was deleted goes on behind its old
// revisions, and "no stream" succeeds on it (H14). That is never taken for a
// first write.
func TestDeletedStreamIsFoundOut(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	mustAppend(t, l, "s", eventlog.NoStream, batch("old", 3)...)
	_, err := bareClient(t, server).DeleteStream(t.Context(), "test.s", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := l.Append(t.Context(), "s", eventlog.NoStream, event("new")); err == nil || !isDamaged(err) {
		t.Errorf("append ended at %+v, error %v; want a damaged stream", at, err)
	}
	if err := lastError(l, t, "s"); !isDamaged(err) {
		t.Errorf("read: error is %v, want a damaged stream", err)
	}
}

func TestTombstonedStreamIsRefused(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	mustAppend(t, l, "s", eventlog.NoStream, event("old"))
	_, err := bareClient(t, server).TombstoneStream(t.Context(), "test.s", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []eventlog.Expected{eventlog.NoStream, eventlog.Exactly(0), eventlog.Any} {
		if _, err := l.Append(t.Context(), "s", expected, event("new")); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("expecting %s: error is %v, want ErrUnavailable", expected, err)
		}
	}
	if err := lastError(l, t, "s"); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("read: error is %v, want ErrUnavailable, not an empty stream", err)
	}
}

// TestTruncatedStreamIsFoundOut: $maxCount makes the server forget what a repeat
// would be compared with (H14).
func TestTruncatedStreamIsFoundOut(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	events := batch("old", 5)
	mustAppend(t, l, "s", eventlog.NoStream, events...)
	var m esdb.StreamMetadata
	m.SetMaxCount(2)
	if _, err := bareClient(t, server).SetStreamMetadata(t.Context(), "test.s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, m); err != nil {
		t.Fatal(err)
	}
	if err := lastError(l, t, "s"); !isDamaged(err) || !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("read: error is %v, want a damaged stream", err)
	}
	if _, err := l.Append(t.Context(), "s", eventlog.NoStream, batch("new", 2)...); !isDamaged(err) {
		t.Errorf("append: error is %v, want a damaged stream", err)
	}
}

// TestForeignEventOnOurStreamIsHandedOn, with the server's time: whoever cannot
// decode it stops at it, and the rest of the log is read.
func TestForeignEventOnOurStreamIsHandedOn(t *testing.T) {
	server := newServer(t)
	l := openLog(t, testConfig(server))
	_, err := bareClient(t, server).AppendToStream(t.Context(), "test.s", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, esdb.EventData{EventType: "Foreign"})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, "other", eventlog.NoStream, event("ours"))
	var types []string
	for r, err := range l.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(r.Time).Abs() > time.Hour && r.Type == "Foreign" {
			t.Errorf("the foreign event is of %s", r.Time)
		}
		types = append(types, r.Type)
	}
	if len(types) != 2 || types[0] != "Foreign" {
		t.Errorf("the log has %v, want the foreign event and ours", types)
	}
}

// TestSizes: what is above the adapter's limit is invalid; what the server does
// not take, though the adapter does, is a server to be set right.
func TestSizes(t *testing.T) {
	server := kurrentdbtest.Start(t, kurrentdbtest.Options{}) // 1 MiB
	l := openLog(t, testConfig(server))
	large := event(strings.Repeat("x", 2<<20))
	_, err := l.Append(t.Context(), "s", eventlog.NoStream, large)
	if !errors.Is(err, eventlog.ErrUnavailable) || eventlog.IsUnknown(err) || !strings.Contains(err.Error(), "--max-append-size") {
		t.Errorf("2 MiB: error is %v, want ErrUnavailable with the mend", err)
	}
	var larger []eventlog.Proposed
	for range 3 {
		larger = append(larger, event(strings.Repeat("x", 3<<20)))
	}
	if _, err := l.Append(t.Context(), "s", eventlog.NoStream, larger...); !errors.Is(err, eventlog.ErrInvalid) {
		t.Errorf("9 MiB: error is %v, want ErrInvalid", err)
	}
	mustAppend(t, l, "s", eventlog.NoStream, event("small"))
}
