package eventlogtest

import (
	"fmt"
	"slices"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// repeat fails the case unless the append answers what it answered before.
func (s *scene) repeat(want eventlog.Appended, stream string, expected eventlog.Expected, events ...eventlog.Proposed) {
	s.Helper()
	got, err := s.log.Append(s.ctx, stream, expected, events...)
	if err != nil {
		s.Errorf("repeated append to %s expecting %s: %v", stream, expected, err)
	} else if got != want {
		s.Errorf("repeated append to %s expecting %s answers %+v, want %+v", stream, expected, got, want)
	}
}

func repeatAddsNothing(s *scene) {
	for _, n := range []int{1, 3, eventlog.MaxEvents} {
		stream := fmt.Sprintf("repeated-%d", n)
		var want []eventlog.Proposed
		for _, expected := range []eventlog.Expected{eventlog.NoStream, eventlog.Exactly(uint64(n - 1)), eventlog.Any} {
			events := batch("e", n)
			want = append(want, events...)
			first := s.append(stream, expected, events...)
			for range 3 {
				s.repeat(first, stream, expected, events...)
			}
			s.holds(stream, want...)
		}
		missing := stream + "-any"
		events := batch("any", n)
		first := s.append(missing, eventlog.Any, events...)
		s.repeat(first, missing, eventlog.Any, events...)
		s.holds(missing, events...)
	}
}

func repeatAfterLaterAppends(s *scene) {
	a, b, c, d := batch("a", 2), batch("b", 1), batch("c", 3), batch("d", 1)
	atA := s.append("later", eventlog.NoStream, a...)
	atB := s.append("later", eventlog.Exactly(1), b...)
	atC := s.append("later", eventlog.Exactly(2), c...)
	s.append("elsewhere", eventlog.Any, proposed("x"))
	atD := s.append("later", eventlog.Any, d...)
	for range 2 {
		s.repeat(atA, "later", eventlog.NoStream, a...)
		s.repeat(atB, "later", eventlog.Exactly(1), b...)
		s.repeat(atC, "later", eventlog.Exactly(2), c...)
		s.repeat(atD, "later", eventlog.Any, d...)
	}
	s.holds("later", slices.Concat(a, b, c, d)...)
}

func repeatComparesIDsOnly(s *scene) {
	first := batch("first", 2)
	at := s.append("content", eventlog.NoStream, first...)
	other := slices.Clone(first)
	for i := range other {
		other[i].Type, other[i].Data, other[i].Time = "Other", []byte("other"), noon.AddDate(1, 0, 0)
	}
	s.repeat(at, "content", eventlog.NoStream, other...)
	s.holds("content", first...)
}

func partialOverlapConflicts(s *scene) {
	a, b, c := proposed("a"), proposed("b"), proposed("c")
	s.append("overlap", eventlog.NoStream, a, b, c)
	n := func() eventlog.Proposed { return proposed("new") }
	tests := []struct {
		name     string
		expected eventlog.Expected
		events   []eventlog.Proposed
	}{
		{"the recorded ones and one more", eventlog.NoStream, []eventlog.Proposed{a, b, c, n()}},
		{"a new one first", eventlog.NoStream, []eventlog.Proposed{n(), b, c}},
		{"a new one in the middle", eventlog.NoStream, []eventlog.Proposed{a, n(), c}},
		{"a new one last", eventlog.NoStream, []eventlog.Proposed{a, b, n()}},
		{"not from the start", eventlog.NoStream, []eventlog.Proposed{b, c}},
		{"with a gap", eventlog.NoStream, []eventlog.Proposed{a, c}},
		{"the recorded ones and one more", eventlog.Exactly(0), []eventlog.Proposed{b, c, n()}},
		{"a new one first", eventlog.Exactly(0), []eventlog.Proposed{n(), c}},
		{"a new one last", eventlog.Exactly(1), []eventlog.Proposed{c, n()}},
		{"with a gap", eventlog.Exactly(0), []eventlog.Proposed{c}},
	}
	for _, test := range tests {
		_, err := s.log.Append(s.ctx, "overlap", test.expected, test.events...)
		if why := notConflict(err, "overlap", test.expected, 2); why != "" {
			s.Errorf("%s, expecting %s: %s", test.name, test.expected, why)
		}
	}
	s.holds("overlap", a, b, c)
}

// partialOverlapWithAny: some of the events are the newest of the stream, so this
// is an append repeated in part, and no part of it is recorded again.
func partialOverlapWithAny(s *scene) {
	a, b, c := proposed("a"), proposed("b"), proposed("c")
	s.append("any-overlap", eventlog.NoStream, a, b)
	s.conflict(1, "any-overlap", eventlog.Any, b, c)
	s.holds("any-overlap", a, b)
}

func otherOrderConflicts(s *scene) {
	a, b, c := proposed("a"), proposed("b"), proposed("c")
	s.append("order", eventlog.NoStream, a)
	s.append("order", eventlog.Exactly(0), b, c)
	s.conflict(2, "order", eventlog.Exactly(0), c, b)
	s.conflict(2, "order", eventlog.NoStream, b, c)
	s.conflict(2, "order", eventlog.NoStream, b, a)
	s.conflict(2, "order", eventlog.Exactly(1), b, c)
	s.conflict(2, "order", eventlog.Exactly(3), b, c)
	s.conflict(2, "order", eventlog.Exactly(1), a)
	s.holds("order", a, b, c)
}

func sameIDsElsewhere(s *scene) {
	events := batch("same", 3)
	for i, expected := range []eventlog.Expected{eventlog.NoStream, eventlog.NoStream, eventlog.Any, eventlog.Any} {
		at := s.append(fmt.Sprintf("stream-%d", i), expected, events...)
		if at.Revision != 2 {
			s.Errorf("append %d ended at revision %d, want 2", i, at.Revision)
		}
		s.holds(fmt.Sprintf("stream-%d", i), events...)
	}
	s.allOf(12)
}

func concurrentRepeats(s *scene) {
	first, next, last := batch("first", 2), batch("next", 2), batch("last", 2)
	for _, step := range []struct {
		expected eventlog.Expected
		events   []eventlog.Proposed
		revision uint64
	}{{eventlog.NoStream, first, 1}, {eventlog.Exactly(1), next, 3}, {eventlog.Any, last, 5}} {
		answers := make([]eventlog.Appended, 10)
		s.together(len(answers), func(i int) (err error) {
			answers[i], err = s.log.Append(s.ctx, "at-once", step.expected, step.events...)
			return err
		})
		for _, at := range answers {
			if at != answers[0] || at.Revision != step.revision {
				s.Errorf("expecting %s: answers are %+v, want all the same at revision %d", step.expected, answers, step.revision)
				break
			}
		}
	}
	s.holds("at-once", slices.Concat(first, next, last)...)
}

func repeatAfterUnknown(s *scene) {
	var want []eventlog.Proposed
	for i, loss := range []Loss{AfterCommit, BeforeCommit, AfterCommit, BeforeCommit, AfterCommit, BeforeCommit} {
		expected := eventlog.Any
		switch {
		case i == 0:
			expected = eventlog.NoStream
		case i < 4:
			expected = eventlog.Exactly(uint64(len(want) - 1))
		}
		events := batch(fmt.Sprintf("e%d", i), 2)
		want = append(want, events...)
		s.backend.LoseAck(s, s.log, loss)
		if _, err := s.log.Append(s.ctx, "uncertain", expected, events...); !eventlog.IsUnknown(err) {
			s.Errorf("append %d: error is %v, want an unknown outcome", i, err)
		}
		at := s.append("uncertain", expected, events...)
		if at.Revision != uint64(len(want)-1) {
			s.Errorf("repeat %d ended at revision %d, want %d", i, at.Revision, len(want)-1)
		}
		s.repeat(at, "uncertain", expected, events...)
		s.holds("uncertain", want...)
	}
}
