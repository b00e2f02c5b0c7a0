package memory

import (
	"context"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Append records the events at the end of the stream. It never ends in an
// *eventlog.UnknownError.
func (l *Log) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	if err := eventlog.CheckAppend(stream, expected, events); err != nil {
		return eventlog.Appended{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return eventlog.Appended{}, unavailable("append to "+stream, err)
	}
	recorded := l.streams[stream]
	if first, ok := l.repeated(recorded, expected, events); ok {
		last := first + len(events) - 1
		return eventlog.Appended{Revision: uint64(last), Position: position(recorded[last])}, nil
	}
	if !matches(len(recorded), expected) || expected.IsAny() && l.overlaps(recorded, events) {
		return eventlog.Appended{}, conflict(stream, expected, len(recorded))
	}
	return l.record(stream, recorded, events), nil
}

// repeated reports whether this append was done before (G5), and at which
// revision. It compares ids only, at the one place where that append can be.
func (l *Log) repeated(recorded []uint64, expected eventlog.Expected, events []eventlog.Proposed) (first int, ok bool) {
	n := len(recorded)
	switch r, exactly := expected.Revision(); {
	case exactly && r >= uint64(n):
		return 0, false
	case exactly:
		first = int(r) + 1
	case expected.IsAny():
		first = n - len(events)
	}
	if first < 0 || first+len(events) > n {
		return 0, false
	}
	for i, e := range events {
		if l.all[recorded[first+i]-1].ID != e.ID {
			return 0, false
		}
	}
	return first, true
}

// overlaps reports whether some of the events are among the stream's newest
// ones. With Any, that is the only trace of an append repeated in part.
func (l *Log) overlaps(recorded []uint64, events []eventlog.Proposed) bool {
	for _, p := range recorded[max(0, len(recorded)-len(events)):] {
		for _, e := range events {
			if l.all[p-1].ID == e.ID {
				return true
			}
		}
	}
	return false
}

func matches(n int, expected eventlog.Expected) bool {
	if r, ok := expected.Revision(); ok {
		return n > 0 && r == uint64(n-1)
	}
	return expected.IsAny() || n == 0
}

func conflict(stream string, expected eventlog.Expected, n int) error {
	c := &eventlog.ConflictError{Stream: stream, Expected: expected, Exists: n > 0}
	if c.Exists {
		c.Current = uint64(n - 1)
	}
	return c
}

func (l *Log) record(stream string, recorded []uint64, events []eventlog.Proposed) eventlog.Appended {
	for _, e := range events {
		l.all = append(l.all, eventlog.Recorded{
			Stream:   stream,
			Revision: uint64(len(recorded)),
			Position: position(uint64(len(l.all)) + 1),
			ID:       e.ID,
			Type:     e.Type,
			Time:     e.Time.Round(0).UTC(),
			Data:     copyOf(e.Data),
		})
		recorded = append(recorded, uint64(len(l.all)))
	}
	l.streams[stream] = recorded
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
	return eventlog.Appended{Revision: uint64(len(recorded) - 1), Position: position(uint64(len(l.all)))}
}

// copyOf is never nil, also for no bytes (G7).
func copyOf(data []byte) []byte { return append(make([]byte, 0, len(data)), data...) }
