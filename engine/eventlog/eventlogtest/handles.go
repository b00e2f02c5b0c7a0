package eventlogtest

import (
	"fmt"

	"github.com/leadonce/leadonce/engine/eventlog"
)

func (s *scene) handles() []eventlog.Log {
	return []eventlog.Log{s.log, s.backend.Second(s, s.log)}
}

func handlesExactlyAndReload(s *scene) {
	const each = 4
	logs := s.handles()
	s.together(writers, func(w int) error {
		for k := range each {
			event := proposed(fmt.Sprintf("w%d %d", w, k))
			if err := appendReloading(s.ctx, logs[w%2], "contended", event); err != nil {
				return err
			}
			if _, err := logs[w%2].Append(s.ctx, "any", eventlog.Any, event); err != nil {
				return err
			}
		}
		return nil
	})
	for _, log := range logs {
		s.log = log
		s.eachOnce("contended", writers*each)
		s.eachOnce("any", writers*each)
		if why := inWritersOrder(s.stream("any")); why != "" {
			s.Error(why)
		}
		s.verify()
	}
}

func handlesFirstWrite(s *scene) {
	logs := s.handles()
	for i := range 5 {
		s.oneWins(fmt.Sprintf("first-%d", i), eventlog.NoStream, 2, logs)
		s.oneWins(fmt.Sprintf("first-%d", i), eventlog.Exactly(2), 5, logs)
	}
}

func handlesSeeEachOther(s *scene) {
	logs := s.handles()
	var want []eventlog.Proposed
	for i := range 12 {
		one, other := logs[i%2], logs[1-i%2]
		expected := eventlog.NoStream
		if i > 0 {
			expected = eventlog.Exactly(uint64(len(want) - 1))
		}
		for _, s.log = range logs { // so that both have something to be stale about
			s.holds("both", want...)
		}
		events := batch(fmt.Sprintf("e%d", i), 2)
		want = append(want, events...)
		s.log = one
		at := s.append("both", expected, events...)
		s.log = other
		s.holds("both", want...)
		if tail, err := other.Tail(s.ctx); err != nil || tail != at.Position {
			s.Errorf("the other handle's tail is %s (error %v), want %s", tail, err, at.Position)
		}
		s.repeat(at, "both", expected, events...)
		s.conflict(len(want)-1, "both", eventlog.NoStream, proposed("x"))
		s.allOf(len(want))
	}
}

func handlesSubscribe(s *scene) {
	logs := s.handles()
	followers := []*follower{s.follow(logs[0], eventlog.Start), s.follow(logs[1], eventlog.Start)}
	for i := range 10 {
		events := batch(fmt.Sprintf("e%d", i), 1+i%2)
		s.log = logs[i%2]
		s.append(fmt.Sprintf("shared-%d", i%3), eventlog.Any, events...)
		for _, f := range followers {
			f.expect(events...)
		}
	}
	for _, f := range followers {
		f.end()
	}
}
