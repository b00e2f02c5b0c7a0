package eventlogtest

import (
	"fmt"
	"slices"

	"github.com/leadonce/leadonce/engine/eventlog"
)

func reopenKeepsEverything(s *scene) {
	n := 0
	for i := range 20 {
		events := batch(fmt.Sprintf("r%d", i), 1+i%3)
		events[0].Data = []byte{0, byte(i), 0xff}
		events[0].Time = noon.AddDate(-500+40*i, 0, 0)
		s.append(fmt.Sprintf("reopened-%d", i%4), eventlog.Any, events...)
		n += len(events)
	}
	before := s.allOf(n)
	tail, err := s.log.Tail(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	for range 2 {
		s.log = s.backend.Reopen(s, s.log)
		if after := s.all(); !slices.EqualFunc(after, before, equal) {
			s.Errorf("reopened, the log has %d events that are not the %d it had", len(after), len(before))
		}
		if got, err := s.log.Tail(s.ctx); err != nil || got != tail {
			s.Errorf("reopened, the tail is %s (error %v), want %s", got, err, tail)
		}
		got := s.collect("all", s.log.ReadAll(s.ctx, before[9].Position))
		if !slices.EqualFunc(got, before[10:], equal) {
			s.Errorf("reopened, %d events are behind %s, want %d", len(got), before[9].Position, len(before)-10)
		}
	}
}

func reopenContinues(s *scene) {
	a, b, c, d := batch("a", 2), batch("b", 2), batch("c", 2), batch("d", 1)
	atA := s.append("continued", eventlog.NoStream, a...)
	atB := s.append("continued", eventlog.Exactly(1), b...)
	atC := s.append("continued", eventlog.Any, c...)
	s.log = s.backend.Reopen(s, s.log)
	s.repeat(atA, "continued", eventlog.NoStream, a...)
	s.repeat(atB, "continued", eventlog.Exactly(1), b...)
	s.repeat(atC, "continued", eventlog.Any, c...)
	s.conflict(5, "continued", eventlog.NoStream, d...)
	s.conflict(5, "continued", eventlog.Exactly(3), d...)
	at := s.append("continued", eventlog.Exactly(5), d...)
	if at.Revision != 6 || at.Position.Compare(atC.Position) <= 0 {
		s.Errorf("reopened, an append ends at %+v, want revision 6 behind %s", at, atC.Position)
	}
	s.holds("continued", slices.Concat(a, b, c, d)...)

	f := s.follow(s.log, atA.Position)
	f.expect(slices.Concat(b, c, d)...)
}
