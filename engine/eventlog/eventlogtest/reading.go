package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
)

func readYourWrites(s *scene) {
	s.holds("yours")
	var want []eventlog.Proposed
	for i := range 30 {
		events := batch(fmt.Sprintf("e%d", i), 1+i%2)
		want = append(want, events...)
		at := s.append("yours", eventlog.Any, events...)
		s.holds("yours", want...)
		all := s.allOf(len(want))
		if last := all[len(all)-1]; last.Position != at.Position || last.Revision != at.Revision {
			s.Errorf("append %d ended at %+v, but the newest event is at revision %d, position %s", i, at, last.Revision, last.Position)
		}
	}
	s.together(writers, func(w int) error { // each on a stream of its own
		stream := fmt.Sprintf("yours-%d", w)
		for k := range 3 {
			if _, err := s.log.Append(s.ctx, stream, eventlog.Any, proposed("x")); err != nil {
				return err
			}
			got, err := collect(s.log.ReadStream(s.ctx, stream, 0))
			if err != nil || len(got) != k+1 {
				return fmt.Errorf("after append %d to %s: %d events, error %v", k, stream, len(got), err)
			}
		}
		return nil
	})
}

func streamFromEachRevision(s *scene) {
	const n = 25
	want := batch("from", n)
	s.append("from", eventlog.NoStream, want[:10]...)
	s.append("between", eventlog.NoStream, batch("between", 4)...)
	s.append("from", eventlog.Exactly(9), want[10:]...)
	for from := range n + 1 {
		got := s.collect("from", s.log.ReadStream(s.ctx, "from", uint64(from)))
		if len(got) != n-from {
			s.Errorf("from revision %d: %d events, want %d", from, len(got), n-from)
			continue
		}
		for i, r := range got {
			if why := differs(r, "from", want[from+i]); why != "" || r.Revision != uint64(from+i) {
				s.Errorf("from revision %d: event %d has revision %d %s", from, i, r.Revision, why)
			}
		}
	}
}

func nothingBeyondTheEnd(s *scene) {
	other := s.backend.Open(s)
	ahead, err := other.Append(s.ctx, "other", eventlog.NoStream, batch("other", 50)...)
	if err != nil {
		s.Fatal(err)
	}
	s.append("short", eventlog.NoStream, batch("short", 3)...)
	for _, from := range []uint64{3, 4, 100, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		for _, stream := range []string{"short", "missing"} {
			if got := s.collect(stream, s.log.ReadStream(s.ctx, stream, from)); len(got) > 0 {
				s.Errorf("%s from revision %d: %d events, want none", stream, from, len(got))
			}
		}
	}
	if got := s.collect("all", s.log.ReadAll(s.ctx, ahead.Position)); len(got) > 0 {
		s.Errorf("all behind the position %s of a longer log: %d events, want none", ahead.Position, len(got))
	}
}

func loopsLeftEarly(s *scene) {
	s.append("left", eventlog.NoStream, batch("left", 40)...)
	before := goleak.IgnoreCurrent()
	for i := range 200 {
		for _, name := range ways {
			n := 0
			for r, err := range s.read(s.ctx, name, "left") {
				if err != nil {
					s.Fatal(err)
				}
				if r.Revision != uint64(n) {
					s.Fatalf("event %d has revision %d", n, r.Revision)
				}
				if n++; n > i%40 {
					break
				}
			}
		}
		s.read(s.ctx, ways[i%2], "left") // asked for, and never looked at
	}
	if err := goleak.Find(before); err != nil {
		s.Errorf("loops left early leave goroutines: %v", err)
	}
	s.append("left", eventlog.Exactly(39), proposed("still works"))
	if got := len(s.stream("left")); got != 41 {
		s.Errorf("stream has %d events, want 41", got)
	}
}

// ways are the two ways to read the events of a log with one stream.
var ways = [2]string{"stream", "all"}

func (s *scene) read(ctx context.Context, way, stream string) iter.Seq2[eventlog.Recorded, error] {
	if way == "all" {
		return s.log.ReadAll(ctx, eventlog.Start)
	}
	return s.log.ReadStream(ctx, stream, 0)
}

// appendInsideLoop: an append from within a loop over the same events neither
// waits for the loop nor disturbs it. Whether the loop sees it is left open.
func appendInsideLoop(s *scene) {
	const before, inside = 30, 10
	want := batch("e", before)
	s.append("loop-0", eventlog.NoStream, want...)
	for i, name := range ways {
		n := 0
		for r, err := range s.read(s.ctx, name, "loop-0") {
			if err != nil {
				s.Fatalf("%s: after %d events: %v", name, n, err)
			}
			if r.Stream != "loop-0" || r.Revision != uint64(n) {
				s.Errorf("%s: event %d is revision %d of %s", name, n, r.Revision, r.Stream)
			}
			if n < inside {
				event := proposed("inside")
				want = append(want, event)
				s.append("loop-0", eventlog.Any, event)
			}
			n++
		}
		if n < before+i*inside || n > len(want) {
			s.Errorf("%s: %d events, want %d to %d", name, n, before+i*inside, len(want))
		}
	}
	s.holds("loop-0", want...)
}

func tailFollows(s *scene) {
	s.empty()
	last := eventlog.Start
	for i := range 10 {
		at := s.append(fmt.Sprintf("tail-%d", i%3), eventlog.Any, batch("t", 1+i%3)...)
		tail, err := s.log.Tail(s.ctx)
		if err != nil {
			s.Fatal(err)
		}
		if tail != at.Position || tail.Compare(last) <= 0 {
			s.Errorf("tail is %s behind %s, want the %s of the append", tail, last, at.Position)
		}
		last = tail
	}
	s.conflict(-1, "missing", eventlog.Exactly(1), proposed("x"))
	if tail, err := s.log.Tail(s.ctx); err != nil || tail != last {
		s.Errorf("tail after a conflict is %s (error %v), want %s", tail, err, last)
	}
}

func cutReadIsAnError(s *scene) {
	const n = 40
	want := batch("cut", n)
	s.append("cut", eventlog.NoStream, want...)
	for _, name := range ways {
		for _, after := range []int{0, 1, n / 2, n - 1} {
			s.backend.CutRead(s, s.log, after)
			got, failure := s.drain(s.read(s.ctx, name, "cut"))
			switch {
			case failure == nil:
				s.Fatalf("%s, cut after %d of %d events: the loop ended without an error after %d", name, after, n, len(got))
			case len(got) > after:
				s.Fatalf("%s, cut after %d events: %d came", name, after, len(got))
			}
			for i, r := range got {
				if why := differs(r, "cut", want[i]); why != "" {
					s.Errorf("%s, cut after %d: event %d: %s", name, after, i, why)
				}
			}
			s.holds("cut", want...)
		}
	}
}

// drain is collect, without trust in the loop's end: after an error nothing may
// follow.
func (s *scene) drain(read iter.Seq2[eventlog.Recorded, error]) (events []eventlog.Recorded, failure error) {
	s.Helper()
	for r, err := range read {
		switch {
		case failure != nil:
			s.Errorf("the loop went on after the error %v, with event %q and error %v", failure, r.Data, err)
		case err != nil:
			failure = err
		default:
			events = append(events, r)
		}
	}
	return events, failure
}

func endedContextFailsReads(s *scene) {
	s.append("there", eventlog.NoStream, batch("there", 3)...)
	ctx := ended(s.ctx)
	for name, read := range map[string]iter.Seq2[eventlog.Recorded, error]{
		"stream there":   s.log.ReadStream(ctx, "there", 0),
		"stream missing": s.log.ReadStream(ctx, "missing", 0),
		"stream's end":   s.log.ReadStream(ctx, "there", 3),
		"all":            s.log.ReadAll(ctx, eventlog.Start),
	} {
		got, err := s.drain(read)
		if len(got) > 0 || !errors.Is(err, context.Canceled) {
			s.Errorf("read %s: %d events and error %v, want none and %v", name, len(got), err, context.Canceled)
		}
	}
}

// contextEndsWhileReading: what was fetched already may still come, but a loop
// that ends without an error has had everything.
func contextEndsWhileReading(s *scene) {
	const n = 100
	s.append("long", eventlog.NoStream, batch("long", n)...)
	for _, name := range ways {
		for _, after := range []int{1, n / 2, n - 1} {
			ctx, cancel := context.WithCancel(s.ctx)
			var got []uint64
			_, err := s.drain(func(yield func(eventlog.Recorded, error) bool) {
				s.read(ctx, name, "long")(func(r eventlog.Recorded, err error) bool {
					if err == nil {
						got = append(got, r.Revision)
					}
					if len(got) == after {
						cancel()
					}
					return yield(r, err)
				})
			})
			cancel()
			if err == nil && len(got) != n {
				s.Errorf("%s, cancelled after %d events: the loop ended without an error after %d of %d", name, after, len(got), n)
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				s.Errorf("%s, cancelled after %d events: error is %v, want %v", name, after, err, context.Canceled)
			}
			if !slices.IsSorted(got) || len(got) < after {
				s.Errorf("%s, cancelled after %d events: revisions %v", name, after, got)
			}
		}
	}
}
