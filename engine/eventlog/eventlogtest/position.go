package eventlogtest

import (
	"context"
	"fmt"
	"slices"

	"github.com/leadonce/leadonce/engine/eventlog"
)

func suffixAfterEachPosition(s *scene) {
	for i := range 15 {
		s.append(fmt.Sprintf("suffix-%d", i%4), eventlog.Any, batch("s", 1+i%3)...)
	}
	all := s.allOf(30)
	last := eventlog.Start
	for i, r := range all {
		if r.Position.Compare(last) <= 0 {
			s.Errorf("event %d has position %s, not behind %s", i, r.Position, last)
		}
		last = r.Position
		parsed, err := eventlog.ParsePosition(r.Position.String())
		if err != nil || parsed != r.Position {
			s.Errorf("position %s parses as %s (error %v)", r.Position, parsed, err)
		}
		got := s.collect("all", s.log.ReadAll(s.ctx, parsed))
		if !slices.EqualFunc(got, all[i+1:], equal) {
			s.Errorf("behind %s: %d events, want the last %d", r.Position, len(got), len(all)-i-1)
		}
	}
}

// nothingAppearsBehindReader is the fear of every log whose numbers are given
// out before they are committed: a reader passes a place that is filled later.
func nothingAppearsBehindReader(s *scene) {
	const each, readers = 10, 2
	writing, stop := context.WithCancel(s.ctx)
	defer stop()
	var seen [readers][]eventlog.Recorded
	s.together(1+readers, func(i int) error {
		if i == readers {
			defer stop()
			return together(writers, func(w int) error {
				for k := range each {
					if _, err := s.log.Append(s.ctx, fmt.Sprintf("w-%d", w%5), eventlog.Any, proposed(fmt.Sprintf("w%d %d", w, k))); err != nil {
						return err
					}
				}
				return nil
			})
		}
		after := eventlog.Start
		for last := false; ; {
			for r, err := range s.log.ReadAll(s.ctx, after) {
				if err != nil {
					return err
				}
				seen[i] = append(seen[i], r)
				after = r.Position
			}
			if last {
				return nil
			}
			last = writing.Err() != nil // once more, behind the last append
		}
	})
	all := s.allOf(writers * each)
	if why := inWritersOrder(all); why != "" {
		s.Error(why)
	}
	for i := range seen {
		if !slices.EqualFunc(seen[i], all, equal) {
			s.Errorf("a reader that went along saw %d events, not the %d that are there now", len(seen[i]), len(all))
		}
	}
}

func checkpointBelongs(s *scene) {
	for i := range 6 {
		s.append(fmt.Sprintf("checked-%d", i%2), eventlog.Any, batch("c", 2)...)
	}
	other := s.backend.Open(s)
	if _, err := other.Append(s.ctx, "checked-0", eventlog.NoStream, batch("o", 20)...); err != nil {
		s.Fatal(err)
	}
	check := func(name string, c eventlog.Checkpoint, log eventlog.Log, want bool) {
		s.Helper()
		got, err := c.BelongsTo(s.ctx, log)
		if err != nil || got != want {
			s.Errorf("%s: belongs is %t (error %v), want %t", name, got, err, want)
		}
	}
	check("the zero checkpoint", eventlog.Checkpoint{}, s.log, true)
	all := s.allOf(12)
	for i, r := range all {
		c := eventlog.CheckpointOf(r)
		check("own event", c, s.log, true)
		check("event of another log", c, other, false)
		c.EventID = newID()
		check("other id", c, s.log, false)
		c = eventlog.CheckpointOf(r)
		c.Position = all[(i+1)%len(all)].Position
		check("other position", c, s.log, false)
		c = eventlog.CheckpointOf(r)
		c.Revision += 100
		check("revision beyond the end", c, s.log, false)
		c.Stream = "missing"
		check("stream that does not exist", c, s.log, false)
	}
	c := eventlog.CheckpointOf(all[0])
	if _, err := c.BelongsTo(ended(s.ctx), s.log); err == nil {
		s.Error("with an ended context: an answer without an error")
	}
}
