package eventlogtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// noon is when everything in this suite happens unless a case is about time.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 123456789, time.UTC)

// proposed is a new event with an id of its own.
func proposed(data string) eventlog.Proposed {
	return eventlog.Proposed{ID: newID(), Type: "Tested", Time: noon, Data: []byte(data)}
}

// batch is n new events that say how many they are: "<name> <i>/<n>".
func batch(name string, n int) []eventlog.Proposed {
	events := make([]eventlog.Proposed, n)
	for i := range events {
		events[i] = proposed(fmt.Sprintf("%s %d/%d", name, i, n))
	}
	return events
}

// newID is random, so that it is also new to a store that outlives the test.
func newID() (id eventlog.EventID) {
	rand.Read(id[:])
	return id
}

// append fails the case when the append does.
func (s *scene) append(stream string, expected eventlog.Expected, events ...eventlog.Proposed) eventlog.Appended {
	s.Helper()
	at, err := s.log.Append(s.ctx, stream, expected, events...)
	if err != nil {
		s.Fatalf("append to %s expecting %s: %v", stream, expected, err)
	}
	return at
}

// conflict fails the case unless the append is a conflict at that revision;
// current < 0 stands for a stream that does not exist.
func (s *scene) conflict(current int, stream string, expected eventlog.Expected, events ...eventlog.Proposed) {
	s.Helper()
	_, err := s.log.Append(s.ctx, stream, expected, events...)
	if why := notConflict(err, stream, expected, current); why != "" {
		s.Errorf("append to %s expecting %s: %s", stream, expected, why)
	}
}

// stream is all that the stream holds.
func (s *scene) stream(name string) []eventlog.Recorded {
	s.Helper()
	return s.collect("stream "+name, s.log.ReadStream(s.ctx, name, 0))
}

// all is the whole log.
func (s *scene) all() []eventlog.Recorded {
	s.Helper()
	return s.collect("all", s.log.ReadAll(s.ctx, eventlog.Start))
}

// allOf is all, of a log that must have n events.
func (s *scene) allOf(n int) []eventlog.Recorded {
	s.Helper()
	events := s.all()
	if len(events) != n {
		s.Fatalf("read all yields %d events, want %d", len(events), n)
	}
	return events
}

func (s *scene) collect(what string, read iter.Seq2[eventlog.Recorded, error]) []eventlog.Recorded {
	s.Helper()
	events, err := collect(read)
	if err != nil {
		s.Fatalf("read %s: after %d events: %v", what, len(events), err)
	}
	return events
}

// collect reads to the end, or to the error.
func collect(read iter.Seq2[eventlog.Recorded, error]) (events []eventlog.Recorded, err error) {
	for r, err := range read {
		if err != nil {
			return events, err
		}
		events = append(events, r)
	}
	return events, nil
}

// holds fails the case unless the stream has exactly these events.
func (s *scene) holds(stream string, want ...eventlog.Proposed) {
	s.Helper()
	got := s.stream(stream)
	if len(got) != len(want) {
		s.Errorf("stream %s has %d events, want %d", stream, len(got), len(want))
		return
	}
	for i := range want {
		if why := differs(got[i], stream, want[i]); why != "" {
			s.Errorf("stream %s, event %d: %s", stream, i, why)
		}
	}
}

// differs says in what r is not p recorded on stream, or nothing.
func differs(r eventlog.Recorded, stream string, p eventlog.Proposed) string {
	want := p.Time.Round(0).UTC()
	switch {
	case r.Stream != stream:
		return fmt.Sprintf("stream is %q, want %q", r.Stream, stream)
	case r.ID != p.ID:
		return fmt.Sprintf("id is %s (%.40q), want %s (%.40q)", r.ID, r.Data, p.ID, p.Data)
	case r.Type != p.Type:
		return fmt.Sprintf("type is %q, want %q", r.Type, p.Type)
	case !r.Time.Equal(want):
		return fmt.Sprintf("time is %s, want %s", r.Time, want)
	case r.Time != want:
		return fmt.Sprintf("time is %s, want it in UTC and without a monotonic part", r.Time)
	case r.Data == nil:
		return "data is nil, want it empty"
	case !bytes.Equal(r.Data, p.Data):
		return fmt.Sprintf("data is %d bytes %.40q, want %d bytes %.40q", len(r.Data), r.Data, len(p.Data), p.Data)
	}
	return ""
}

// together runs f for 0 to n-1 at the same time and fails the case with the
// first error.
func (s *scene) together(n int, f func(i int) error) {
	s.Helper()
	if err := together(n, f); err != nil {
		s.Fatal(err)
	}
}

func together(n int, f func(i int) error) error {
	var group errgroup.Group
	start := make(chan struct{})
	for i := range n {
		group.Go(func() error {
			<-start
			return f(i)
		})
	}
	close(start)
	return group.Wait()
}

// ended is a context that is over.
func ended(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	cancel()
	return ctx
}

// verify checks the whole log, whatever the case has done to it.
func (s *scene) verify() {
	s.Helper()
	if s.Failed() {
		return // what it would find has been said
	}
	for _, fault := range faults(s.ctx, s.log) {
		s.Error(fault)
	}
}

// faults reads the whole log and every stream, and says what contradicts the
// guarantees.
func faults(ctx context.Context, log eventlog.Log) (found []string) {
	all, err := collect(log.ReadAll(ctx, eventlog.Start))
	if err != nil {
		return []string{fmt.Sprintf("G8: read all: %v", err)}
	}
	streams := make(map[string][]eventlog.Recorded)
	last := eventlog.Start
	for i, r := range all {
		if r.Position.Compare(last) <= 0 {
			found = append(found, fmt.Sprintf("G10: event %d of all has position %s behind %s", i, r.Position, last))
		}
		if want := uint64(len(streams[r.Stream])); r.Revision != want {
			found = append(found, fmt.Sprintf("G3: event %d of all is revision %d of %s, want %d", i, r.Revision, r.Stream, want))
		}
		last = r.Position
		streams[r.Stream] = append(streams[r.Stream], r)
	}
	for name, want := range streams {
		got, err := collect(log.ReadStream(ctx, name, 0))
		if err != nil {
			found = append(found, fmt.Sprintf("G8: read stream %s: %v", name, err))
		}
		if !slices.EqualFunc(got, want, equal) {
			found = append(found, fmt.Sprintf("G8: stream %s reads %d events that are not the %d that read all yields for it", name, len(got), len(want)))
		}
	}
	return found
}

func equal(a, b eventlog.Recorded) bool {
	return a.Stream == b.Stream && a.Revision == b.Revision && a.Position == b.Position &&
		a.ID == b.ID && a.Type == b.Type && a.Time == b.Time && bytes.Equal(a.Data, b.Data)
}
