package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/leadonce/leadonce/engine/eventlog"
)

const writers = 20

func revisionsCount(s *scene) {
	var next [2]uint64
	want := [2][]eventlog.Proposed{}
	names := [2]string{"counted-a", "counted-b"}
	for i := range 12 {
		n := i % 2
		expected := eventlog.Any
		if i%3 != 0 && next[n] > 0 {
			expected = eventlog.Exactly(next[n] - 1)
		} else if next[n] == 0 {
			expected = eventlog.NoStream
		}
		events := batch(fmt.Sprintf("c%d", i), 1+i%4)
		at := s.append(names[n], expected, events...)
		next[n] += uint64(len(events))
		want[n] = append(want[n], events...)
		if at.Revision != next[n]-1 {
			s.Errorf("append %d ended at revision %d, want %d", i, at.Revision, next[n]-1)
		}
	}
	for n, name := range names {
		s.holds(name, want[n]...)
		for i, r := range s.stream(name) {
			if r.Revision != uint64(i) {
				s.Errorf("%s: event %d has revision %d", name, i, r.Revision)
			}
		}
	}
}

func exactlyAndReload(s *scene) {
	const each = 4
	s.together(writers, func(w int) error {
		for k := range each {
			if err := appendReloading(s.ctx, s.log, "contended", proposed(fmt.Sprintf("w%d %d", w, k))); err != nil {
				return err
			}
		}
		return nil
	})
	s.eachOnce("contended", writers*each)
}

// appendReloading is the loop of every aggregate: append at the revision that
// was seen last, and on a conflict at the one that it names.
func appendReloading(ctx context.Context, log eventlog.Log, stream string, event eventlog.Proposed) error {
	expected := eventlog.NoStream
	for {
		at, err := log.Append(ctx, stream, expected, event)
		var c *eventlog.ConflictError
		switch {
		case err == nil && expected.IsNoStream() && at.Revision != 0:
			return fmt.Errorf("first write to %s ended at revision %d", stream, at.Revision)
		case err == nil:
			if r, ok := expected.Revision(); ok && at.Revision != r+1 {
				return fmt.Errorf("write to %s behind revision %d ended at %d", stream, r, at.Revision)
			}
			return nil
		case !errors.As(err, &c):
			return err
		case !c.Exists:
			return fmt.Errorf("%w, though it conflicted with another write", err)
		}
		if r, ok := expected.Revision(); ok && c.Current <= r {
			return fmt.Errorf("%w: not newer than what was expected", err)
		}
		expected = eventlog.Exactly(c.Current)
	}
}

// eachOnce fails the case unless the stream holds n events, all different, at
// the revisions 0 to n-1.
func (s *scene) eachOnce(stream string, n int) {
	s.Helper()
	events := s.stream(stream)
	if len(events) != n {
		s.Errorf("stream %s has %d events, want %d", stream, len(events), n)
	}
	seen := make(map[string]bool)
	for i, r := range events {
		if r.Revision != uint64(i) {
			s.Errorf("stream %s: event %d has revision %d", stream, i, r.Revision)
		}
		if seen[string(r.Data)] {
			s.Errorf("stream %s has %q twice", stream, r.Data)
		}
		seen[string(r.Data)] = true
	}
}

func conflictsCarryRevision(s *scene) {
	huge := []uint64{math.MaxUint64, math.MaxUint64 - 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint32}
	for _, r := range append(huge, 0, 1) {
		s.conflict(-1, "missing", eventlog.Exactly(r), proposed("x"))
	}
	first := batch("first", 3)
	s.append("there", eventlog.NoStream, first...)
	s.conflict(2, "there", eventlog.NoStream, proposed("x"))
	for _, r := range append(huge, 0, 1, 3, 4) {
		s.conflict(2, "there", eventlog.Exactly(r), proposed("x"))
	}
	s.holds("missing")
	s.holds("there", first...)
}

func oneFirstWriteWins(s *scene) {
	s.oneWins("first-write", eventlog.NoStream, 2, []eventlog.Log{s.log})
}

func oneWriteAtRevisionWins(s *scene) {
	s.append("at-revision", eventlog.NoStream, batch("before", 2)...)
	s.oneWins("at-revision", eventlog.Exactly(1), 4, []eventlog.Log{s.log})
}

// oneWins lets 20 writers append 3 events each with one expectation. One of
// them wins and ends at revision last; the others get the conflict that says so.
func (s *scene) oneWins(stream string, expected eventlog.Expected, last int, logs []eventlog.Log) {
	s.Helper()
	var won atomic.Int64
	s.together(writers, func(w int) error {
		at, err := logs[w%len(logs)].Append(s.ctx, stream, expected, batch(fmt.Sprintf("w%d", w), 3)...)
		if err == nil {
			won.Add(1)
			if at.Revision != uint64(last) {
				return fmt.Errorf("the winner ended at revision %d, want %d", at.Revision, last)
			}
			return nil
		}
		if why := notConflict(err, stream, expected, last); why != "" {
			return fmt.Errorf("a loser's %s", why)
		}
		return nil
	})
	if won.Load() != 1 {
		s.Errorf("%d of %d writers won, want 1", won.Load(), writers)
	}
	events := s.stream(stream)
	if len(events) != last+1 {
		s.Fatalf("stream has %d events, want %d", len(events), last+1)
	}
	if why := whole(events); why != "" {
		s.Errorf("stream is not the winner's alone: %s", why)
	}
}

func anyNeverConflicts(s *scene) {
	const each = 5
	s.together(writers, func(w int) error {
		for k := range each {
			if _, err := s.log.Append(s.ctx, "any", eventlog.Any, proposed(fmt.Sprintf("w%d %d", w, k))); err != nil {
				return err
			}
		}
		return nil
	})
	s.eachOnce("any", writers*each)
	if why := inWritersOrder(s.stream("any")); why != "" {
		s.Error(why)
	}
}

// inWritersOrder says which writer's events "w<writer> <k>" are not in the
// order 0, 1, 2, … in which it wrote them, or nothing.
func inWritersOrder(events []eventlog.Recorded) string {
	var next [writers]int
	for i, r := range events {
		var w, k int
		if _, err := fmt.Sscanf(string(r.Data), "w%d %d", &w, &k); err != nil {
			return fmt.Sprintf("event %d has data %.40q", i, r.Data)
		}
		if k != next[w] {
			return fmt.Sprintf("event %d is number %d of writer %d, want %d", i, k, w, next[w])
		}
		next[w]++
	}
	return ""
}
