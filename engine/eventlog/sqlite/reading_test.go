package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// A loop over the log that takes its time does not keep the WAL from being
// reused, however much is appended meanwhile.
func TestSlowReaderDoesNotGrowTheWAL(t *testing.T) {
	l := open(t, newPath(t), Options{})
	batch := func() []eventlog.Proposed {
		events := make([]eventlog.Proposed, eventlog.MaxEvents)
		for i := range events {
			events[i] = event(strings.Repeat("x", 8000))
		}
		return events
	}
	mustAppend(t, l, "s", eventlog.Any, batch()...)
	const more = 100 // 80 MB
	read := 0
	for _, err := range l.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if read++; read <= more {
			mustAppend(t, l, "s", eventlog.Any, batch()...)
		}
	}
	if read != eventlog.MaxEvents {
		t.Errorf("the loop met %d events, want the %d of its beginning", read, eventlog.MaxEvents)
	}
	if got, limit := fileSize(t, l.path+"-wal"), int64(2*checkpointPages*pageBytes); got > limit {
		t.Errorf("the WAL has %d bytes, want at most %d", got, limit)
	}
}

// Pages join without a gap, whether their events or their bytes end them.
func TestPagesJoin(t *testing.T) {
	l := open(t, newPath(t), Options{})
	const small = 2*readPageEvents + 500
	for sent := 0; sent < small; sent += eventlog.MaxEvents {
		events := make([]eventlog.Proposed, eventlog.MaxEvents)
		for i := range events {
			events[i] = event("x")
		}
		mustAppend(t, l, "long", eventlog.Any, events...)
	}
	large := strings.Repeat("x", readPageBytes/2+1)
	for range 5 {
		mustAppend(t, l, "long", eventlog.Any, event(large))
	}
	for what, events := range map[string]func(func(eventlog.Recorded, error) bool){
		"stream": l.ReadStream(t.Context(), "long", 0),
		"all":    l.ReadAll(t.Context(), eventlog.Start),
	} {
		next := uint64(0)
		for e, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if e.Revision != next {
				t.Fatalf("%s: revision %d, want %d", what, e.Revision, next)
			}
			next++
		}
		if next != small+5 {
			t.Errorf("%s: %d events, want %d", what, next, small+5)
		}
	}
}

// A page holds no more in memory than its limit and one event.
func TestPagesAreBoundedInBytes(t *testing.T) {
	l := open(t, newPath(t), Options{})
	for range 8 {
		mustAppend(t, l, "s", eventlog.Any, event(strings.Repeat("x", eventlog.MaxData)))
	}
	var p page
	err := l.read(t.Context(), &p, func(r *reader) (*stmt, []driver.Value) {
		return r.stream, []driver.Value{"s", int64(0), int64(readPageEvents)}
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.bytes >= readPageBytes+eventlog.MaxData {
		t.Errorf("a page has %d bytes", p.bytes)
	}
}

// A loop over the log ends at the tail of its beginning, or it might never end.
func TestLoopEndsWhereTheLogEndedWhenItBegan(t *testing.T) {
	l := open(t, newPath(t), Options{})
	const before = 2 * readPageEvents
	for sent := 0; sent < before; sent += eventlog.MaxEvents {
		events := make([]eventlog.Proposed, eventlog.MaxEvents)
		for i := range events {
			events[i] = event("x")
		}
		mustAppend(t, l, "s", eventlog.Any, events...)
	}
	read := 0
	for _, err := range l.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if read++; read%100 == 0 {
			mustAppend(t, l, "s", eventlog.Any, event("later"))
		}
	}
	if read != before {
		t.Errorf("the loop met %d events, want %d", read, before)
	}
}

// A subscription does not wait for its next look at the file to see what this
// process appends.
func TestSubscriptionSeesItsOwnHandleAtOnce(t *testing.T) {
	l := open(t, newPath(t), Options{PollInterval: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const events = 100
	seen := make(chan uint64, events)
	ended := make(chan error, 1)
	go func() {
		ended <- l.Subscribe(ctx, eventlog.Start, func(_ context.Context, e eventlog.Recorded) error {
			seen <- e.Revision
			return nil
		})
	}()
	for i := range events {
		mustAppend(t, l, "s", eventlog.Any, event("x"))
		select {
		case got := <-seen:
			if got != uint64(i) {
				t.Fatalf("saw revision %d, want %d", got, i)
			}
		case err := <-ended:
			t.Fatalf("event %d was not seen: %v", i, err)
		}
	}
	cancel()
	<-ended
}

// A subscription sees what another process appends.
func TestSubscriptionSeesOtherHandles(t *testing.T) {
	path := newPath(t)
	here, there := open(t, path, Options{PollInterval: time.Millisecond}), open(t, path, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan string)
	ended := make(chan error, 1)
	go func() {
		ended <- here.Subscribe(ctx, eventlog.Start, func(_ context.Context, e eventlog.Recorded) error {
			seen <- e.Stream
			return nil
		})
	}()
	for i := range 20 {
		from := there
		if i%2 == 0 {
			from = here
		}
		mustAppend(t, from, name(i), eventlog.NoStream, event("x"))
		if got := <-seen; got != name(i) {
			t.Fatalf("saw %s, want %s", got, name(i))
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want the context's", err)
	}
}

// The ordinary tool shows the log in a form that a person reads, while it is
// open, and cannot change an event.
func TestAuditorReadsTheLog(t *testing.T) {
	tool, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("the sqlite3 tool is not installed")
	}
	l := open(t, newPath(t), Options{})
	e := event(`{"update_id":7,"text":"Grüße"}`)
	mustAppend(t, l, "update-1-7", eventlog.NoStream, e)
	old := event("{}")
	old.Time = time.Date(1, 2, 3, 4, 5, 6, 700, time.UTC)
	mustAppend(t, l, "update-1-7", eventlog.Exactly(0), old)
	run := func(query string, flags ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), tool, append(flags, l.path, query)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	got, err := run("SELECT position, stream, revision, type, time, data, id FROM log", "-readonly")
	want := "1|update-1-7|0|Tested|2026-03-04T05:06:07.000000008Z|" + string(e.Data) + "|" + e.ID.String() + "\n" +
		"2|update-1-7|1|Tested|0001-02-03T04:05:06.000000700Z|{}|" + old.ID.String()
	if err != nil || got != want {
		t.Errorf("the tool shows %q (%v), want %q", got, err, want)
	}
	for _, query := range []string{"DELETE FROM events", "UPDATE events SET data = x''"} {
		if out, err := run(query); err == nil || !strings.Contains(out, "an event is never") {
			t.Errorf("%s: %q (%v), want a refusal", query, out, err)
		}
	}
	if out, err := run("PRAGMA integrity_check"); err != nil || out != "ok" {
		t.Errorf("integrity check: %q (%v)", out, err)
	}
}
