package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

func event(n int) eventlog.Proposed {
	return eventlog.Proposed{
		ID:   eventlog.EventID{0: 1, 12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)},
		Type: "Tested",
		Time: time.Unix(int64(n), 0),
		Data: []byte(fmt.Sprint(n)),
	}
}

func events(from, to int) (es []eventlog.Proposed) {
	for n := from; n < to; n++ {
		es = append(es, event(n))
	}
	return es
}

// TestHistoryCannotBeChangedByAReader: the port forbids to change what was read;
// this log does not depend on it.
func TestHistoryCannotBeChangedByAReader(t *testing.T) {
	ctx, log := t.Context(), memory.New()
	log.Append(ctx, "s", eventlog.NoStream, events(0, 3)...)
	vandal := func(r eventlog.Recorded) {
		for i := range r.Data {
			r.Data[i] = '!'
		}
	}
	for r := range log.ReadStream(ctx, "s", 0) {
		vandal(r)
	}
	for r := range log.ReadAll(ctx, eventlog.Start) {
		vandal(r)
	}
	subscribed, stop := context.WithCancel(ctx)
	log.Subscribe(subscribed, eventlog.Start, func(_ context.Context, r eventlog.Recorded) error {
		if vandal(r); r.Revision == 2 {
			stop()
		}
		return nil
	})
	for r := range log.ReadStream(ctx, "s", 0) {
		if want := fmt.Sprint(r.Revision); string(r.Data) != want {
			t.Errorf("event %d has data %q, want %q", r.Revision, r.Data, want)
		}
	}
}

// TestReadIsASnapshotOfTheCall: what is appended between the call and the loop,
// or during the loop, is not seen, however often the loop is run.
func TestReadIsASnapshotOfTheCall(t *testing.T) {
	ctx, log := t.Context(), memory.New()
	log.Append(ctx, "s", eventlog.NoStream, events(0, 3)...)
	stream, all := log.ReadStream(ctx, "s", 1), log.ReadAll(ctx, eventlog.NewPosition(1, 1))
	for n := 3; n < 9; n += 3 {
		log.Append(ctx, "s", eventlog.Any, events(n, n+3)...)
		for name, read := range map[string]func(func(eventlog.Recorded, error) bool){"stream": stream, "all": all} {
			seen := 0
			for r, err := range read {
				if seen++; err != nil || r.Revision != uint64(seen) {
					t.Errorf("%s: event %d has revision %d, error %v", name, seen, r.Revision, err)
				}
			}
			if seen != 2 {
				t.Errorf("%s: %d events, want 2", name, seen)
			}
		}
	}
}

// TestRepeats pins what the port leaves open about repeats.
func TestRepeats(t *testing.T) {
	type step struct {
		expected eventlog.Expected
		events   []eventlog.Proposed
		revision int // at which it ends, or -1 for a conflict
	}
	tests := map[string][]step{
		"a first part, expecting no stream":         {{eventlog.NoStream, events(0, 3), 2}, {eventlog.NoStream, events(0, 2), 1}},
		"a first part, expecting a revision":        {{eventlog.NoStream, events(0, 3), 2}, {eventlog.Exactly(0), events(1, 2), 1}},
		"a last part, expecting any":                {{eventlog.NoStream, events(0, 3), 2}, {eventlog.Any, events(1, 3), 2}},
		"a first part, expecting any":               {{eventlog.NoStream, events(0, 3), 2}, {eventlog.Any, events(0, 2), -1}},
		"one recorded and one new, expecting any":   {{eventlog.NoStream, events(0, 3), 2}, {eventlog.Any, events(2, 4), -1}},
		"expecting any, no longer the newest":       {{eventlog.Any, events(0, 2), 1}, {eventlog.Any, events(2, 4), 3}, {eventlog.Any, events(0, 2), 5}},
		"behind the tail, recorded further up":      {{eventlog.NoStream, events(0, 2), 1}, {eventlog.Exactly(1), events(0, 2), 3}},
		"more than there is, expecting no stream":   {{eventlog.NoStream, events(0, 2), 1}, {eventlog.NoStream, events(0, 3), -1}},
		"more than there is, expecting a revision":  {{eventlog.NoStream, events(0, 2), 1}, {eventlog.Exactly(0), events(1, 3), -1}},
		"recorded with no stream, repeated as any":  {{eventlog.NoStream, events(0, 2), 1}, {eventlog.Any, events(0, 2), 1}},
		"recorded with any, repeated as no stream":  {{eventlog.Any, events(0, 2), 1}, {eventlog.NoStream, events(0, 2), 1}},
		"recorded with any, repeated at a revision": {{eventlog.Any, events(0, 1), 0}, {eventlog.Any, events(1, 2), 1}, {eventlog.Exactly(0), events(1, 2), 1}},
	}
	for name, steps := range tests {
		log := memory.New()
		for i, s := range steps {
			at, err := log.Append(t.Context(), "s", s.expected, s.events...)
			switch {
			case s.revision < 0 && !eventlog.IsConflict(err):
				t.Errorf("%s, step %d: %+v and error %v, want a conflict", name, i, at, err)
			case s.revision >= 0 && (err != nil || at.Revision != uint64(s.revision)):
				t.Errorf("%s, step %d: %+v and error %v, want revision %d", name, i, at, err, s.revision)
			}
		}
	}
}

// TestCallsAreSteps: a scheduler that runs one call at a time relies on calls
// that start nothing.
func TestCallsAreSteps(t *testing.T) {
	ctx, log := t.Context(), memory.New()
	before := goleak.IgnoreCurrent()
	for n := range 1000 {
		log.Append(ctx, fmt.Sprint(n%7), eventlog.Any, event(n))
		for range log.ReadStream(ctx, fmt.Sprint(n%7), 0) {
			break
		}
		log.Tail(ctx)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func BenchmarkAppend(b *testing.B) {
	ctx, log := b.Context(), memory.New()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("update-1-%d", i)
	}
	e := event(0)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		e.ID[0], e.ID[1], e.ID[2], e.ID[3] = byte(n), byte(n>>8), byte(n>>16), 1
		if _, err := log.Append(ctx, names[n%len(names)], eventlog.Any, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadStream(b *testing.B) {
	ctx, log := b.Context(), memory.New()
	log.Append(ctx, "s", eventlog.NoStream, events(0, 10)...)
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range log.ReadStream(ctx, "s", 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
