package eventlogtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

func refuseStreamNames(s *scene) {
	names := []string{
		"", strings.Repeat("s", eventlog.MaxStreamName+1),
		" ", "a b", " a", "a ", "a\tb", "a\nb", "a\x00b", "\x00", "a\x1f", "a\x7f", "a\x80",
		"café", "поток", "a\u200bb", "\xff\xfe",
	}
	for _, name := range names {
		if _, err := s.log.Append(s.ctx, name, eventlog.Any, proposed("x")); !errors.Is(err, eventlog.ErrInvalid) {
			s.Errorf("append to %.40q: error is %v, want ErrInvalid", name, err)
		}
		got, err := collect(s.log.ReadStream(s.ctx, name, 0))
		if len(got) > 0 || !errors.Is(err, eventlog.ErrInvalid) {
			s.Errorf("read stream %.40q: %d events and error %v, want none and ErrInvalid", name, len(got), err)
		}
	}
	s.empty()
}

func refuseEvents(s *scene) {
	with := func(change func(*eventlog.Proposed)) []eventlog.Proposed {
		events := batch("refused", 3)
		change(&events[1])
		return events
	}
	twice := batch("twice", 3)
	twice[2].ID = twice[0].ID
	tests := []struct {
		name     string
		expected eventlog.Expected
		events   []eventlog.Proposed
	}{
		{"zero expected revision", eventlog.Expected{}, batch("x", 1)},
		{"no events", eventlog.Any, nil},
		{"too many events", eventlog.Any, batch("x", eventlog.MaxEvents+1)},
		{"same id twice", eventlog.Any, twice},
		{"nil id", eventlog.Any, with(func(e *eventlog.Proposed) { e.ID = eventlog.EventID{} })},
		{"year 10000", eventlog.Any, with(func(e *eventlog.Proposed) { e.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })},
		{"year 0", eventlog.Any, with(func(e *eventlog.Proposed) { e.Time = time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC) })},
		{"zero time", eventlog.Any, with(func(e *eventlog.Proposed) { e.Time = time.Time{} })},
		{"too much data", eventlog.Any, with(func(e *eventlog.Proposed) { e.Data = make([]byte, eventlog.MaxData+1) })},
		{"no type", eventlog.Any, with(func(e *eventlog.Proposed) { e.Type = "" })},
		{"space in type", eventlog.Any, with(func(e *eventlog.Proposed) { e.Type = "a b" })},
		{"type not ASCII", eventlog.Any, with(func(e *eventlog.Proposed) { e.Type = "é" })},
		{"type too long", eventlog.Any, with(func(e *eventlog.Proposed) { e.Type = strings.Repeat("t", eventlog.MaxTypeName+1) })},
	}
	for _, test := range tests {
		_, err := s.log.Append(s.ctx, "refused", test.expected, test.events...)
		if !errors.Is(err, eventlog.ErrInvalid) || errors.Is(err, eventlog.ErrUnavailable) || eventlog.IsConflict(err) || eventlog.IsUnknown(err) {
			s.Errorf("append with %s: error is %v, want ErrInvalid", test.name, err)
		}
	}
	s.empty()
}

// empty fails the case when anything was recorded.
func (s *scene) empty() {
	s.Helper()
	if got := s.all(); len(got) > 0 {
		s.Errorf("%d events were recorded, the first on %q; want none", len(got), got[0].Stream)
	}
	if tail, err := s.log.Tail(s.ctx); err != nil || tail != eventlog.Start {
		s.Errorf("tail is %s (error %v), want the start", tail, err)
	}
}

func acceptLimits(s *scene) {
	longest := strings.Repeat("n", eventlog.MaxStreamName)
	most := batch("most", eventlog.MaxEvents)
	s.append(longest, eventlog.NoStream, most...)
	s.holds(longest, most...)

	largest := proposed(strings.Repeat("\x00\xff", eventlog.MaxData/2))
	largest.Type = strings.Repeat("~", eventlog.MaxTypeName)
	s.append("largest", eventlog.NoStream, largest)
	s.holds("largest", largest)
}

// notConflict says why err is not the conflict that it has to be, or nothing.
// A current below zero stands for a stream that does not exist.
func notConflict(err error, stream string, expected eventlog.Expected, current int) string {
	var c *eventlog.ConflictError
	switch {
	case !errors.As(err, &c):
		return fmt.Sprintf("error is %v, want a conflict", err)
	case eventlog.IsUnknown(err), errors.Is(err, eventlog.ErrUnavailable), errors.Is(err, eventlog.ErrInvalid):
		return fmt.Sprintf("%v is more than a conflict", err)
	case c.Stream != stream || c.Expected != expected:
		return fmt.Sprintf("conflict names %s expecting %s", c.Stream, c.Expected)
	case c.Exists != (current >= 0):
		return fmt.Sprintf("conflict says exists=%t, want %t", c.Exists, current >= 0)
	case c.Exists && c.Current != uint64(current):
		return fmt.Sprintf("conflict says revision %d, want %d", c.Current, current)
	}
	return ""
}
