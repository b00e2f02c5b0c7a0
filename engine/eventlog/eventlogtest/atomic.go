package eventlogtest

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// whole says where events, in the order of one stream or of the log, hold a
// batch that is not whole, in order and next to each other; or nothing.
func whole(events []eventlog.Recorded) string {
	for i := 0; i < len(events); {
		var name string
		var index, size int
		if _, err := fmt.Sscanf(string(events[i].Data), "%s %d/%d", &name, &index, &size); err != nil {
			return fmt.Sprintf("event %d has data %.40q", i, events[i].Data)
		}
		for j := range size {
			want := fmt.Sprintf("%s %d/%d", name, j, size)
			if i+j >= len(events) || string(events[i+j].Data) != want {
				return fmt.Sprintf("event %d is not %q", i+j, want)
			}
		}
		i += size
	}
	return ""
}

func batchesStayTogether(s *scene) {
	const writers, each = 10, 5
	total := 0
	for w := range writers {
		total += each * (1 + w%5)
	}
	s.together(writers, func(w int) error {
		for k := range each {
			events := batch(fmt.Sprintf("w%d-%d", w, k), 1+w%5)
			if _, err := s.log.Append(s.ctx, fmt.Sprintf("shared-%d", k%2), eventlog.Any, events...); err != nil {
				return err
			}
		}
		return nil
	})
	all := s.allOf(total)
	for name, events := range map[string][]eventlog.Recorded{
		"all": all, "shared-0": s.stream("shared-0"), "shared-1": s.stream("shared-1"),
	} {
		if why := whole(events); why != "" {
			s.Errorf("%s: an append is not together: %s", name, why)
		}
	}
}

func readersSeeWholeBatches(s *scene) {
	const readers, leastReads, mostBatches = 2, 30, 200
	writing, stop := context.WithCancel(s.ctx)
	defer stop()
	var reads atomic.Int64
	batches := 0
	s.together(1+readers, func(i int) error {
		if i == readers {
			defer stop()
			for batches < mostBatches && reads.Load() < readers*leastReads {
				if _, err := s.log.Append(s.ctx, "read", eventlog.Any, batch(fmt.Sprintf("b%d", batches), 7)...); err != nil {
					return err
				}
				batches++
			}
			return nil
		}
		for writing.Err() == nil {
			events, err := collect(s.log.ReadStream(s.ctx, "read", 0))
			if err != nil {
				return err
			}
			if why := whole(events); why != "" {
				return fmt.Errorf("reader saw half an append: %s", why)
			}
			reads.Add(1)
		}
		return nil
	})
	if got := len(s.stream("read")); got != 7*batches {
		s.Errorf("stream has %d events, want %d", got, 7*batches)
	}
}

func conflictAddsNothing(s *scene) {
	first := batch("first", 3)
	s.conflict(-1, "many", eventlog.Exactly(0), batch("refused", 4)...)
	s.empty()
	s.append("many", eventlog.NoStream, first...)
	s.conflict(2, "many", eventlog.NoStream, batch("refused", 4)...)
	s.conflict(2, "many", eventlog.Exactly(1), batch("refused", 4)...)
	s.conflict(2, "many", eventlog.Exactly(3), batch("refused", 4)...)
	s.holds("many", first...)
	s.allOf(len(first))
}
