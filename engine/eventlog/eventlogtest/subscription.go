package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// follower is a subscription that hands over its events one at a time.
type follower struct {
	s      *scene
	events chan eventlog.Recorded
	done   chan error // receives once, when Subscribe has returned
	stop   context.CancelFunc
}

// follow subscribes until the case ends.
func (s *scene) follow(log eventlog.Log, after eventlog.Position) *follower {
	ctx, stop := context.WithCancel(s.ctx)
	f := &follower{s: s, events: make(chan eventlog.Recorded), done: make(chan error, 1), stop: stop}
	over := make(chan struct{})
	s.Cleanup(func() { // before the log is closed
		stop()
		select {
		case <-over:
		case <-time.After(s.backend.Patience):
			s.Error("subscription did not return")
		}
	})
	var inside atomic.Int32
	go func() {
		defer close(over)
		f.done <- log.Subscribe(ctx, after, func(ctx context.Context, r eventlog.Recorded) error {
			if inside.Add(1) > 1 {
				s.Error("the handler was called while it was running")
			}
			defer inside.Add(-1)
			select {
			case f.events <- r:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return f
}

// next is the next event, which must come.
func (f *follower) next() eventlog.Recorded {
	f.s.Helper()
	select {
	case r := <-f.events:
		return r
	case err := <-f.done:
		f.s.Fatalf("subscription ended: %v", err)
	case <-f.s.ctx.Done():
		f.s.Fatal("subscription did not bring the next event")
	}
	panic("unreachable")
}

// expect fails the case unless these events come next.
func (f *follower) expect(want ...eventlog.Proposed) {
	f.s.Helper()
	for i, p := range want {
		r := f.next()
		if why := differs(r, r.Stream, p); why != "" {
			f.s.Fatalf("subscription, event %d of %d: %s", i, len(want), why)
		}
	}
}

// end stops the subscription and fails the case unless it says so.
func (f *follower) end() {
	f.s.Helper()
	f.stop()
	if err := f.s.wait(f.done); !errors.Is(err, context.Canceled) {
		f.s.Errorf("subscription ended with %v, want %v", err, context.Canceled)
	}
}

func (s *scene) wait(done <-chan error) error {
	s.Helper()
	select {
	case err := <-done:
		return err
	case <-s.ctx.Done():
		s.Fatal("subscription did not return")
		return nil
	}
}

// until waits for c to close.
func (s *scene) until(c <-chan struct{}) {
	s.Helper()
	select {
	case <-c:
	case <-s.ctx.Done():
		s.Fatal("what the subscription should bring about did not happen")
	}
}

func subscribeFrom(s *scene) {
	empty := s.follow(s.log, eventlog.Start)
	var want []eventlog.Proposed
	for i := range 10 {
		events := batch(fmt.Sprintf("e%d", i), 1+i%2)
		want = append(want, events...)
		s.append(fmt.Sprintf("followed-%d", i%3), eventlog.Any, events...)
	}
	all := s.allOf(len(want))
	followers := []*follower{empty}
	empty.expect(want...)
	for _, from := range []int{0, 1, 2, len(all) / 2, len(all) - 1, len(all)} {
		after := eventlog.Start
		if from > 0 {
			after = all[from-1].Position
		}
		f := s.follow(s.log, after)
		f.expect(want[from:]...)
		followers = append(followers, f)
	}
	for i := range 20 { // now that all of them wait for what is new
		events := batch(fmt.Sprintf("live%d", i), 1+i%3)
		s.append(fmt.Sprintf("followed-%d", i%4), eventlog.Any, events...)
		for _, f := range followers {
			f.expect(events...)
		}
	}
	for _, f := range followers {
		f.end()
	}
}

func subscribeUnderWriters(s *scene) {
	const each = 6
	before := s.follow(s.log, eventlog.Start)
	middle, written := make(chan struct{}), make(chan error, 1)
	go func() {
		written <- together(writers, func(w int) error {
			for k := range each {
				if w == 0 && k == each/2 {
					close(middle)
				}
				if _, err := s.log.Append(s.ctx, fmt.Sprintf("busy-%d", w%3), eventlog.Any, proposed(fmt.Sprintf("w%d %d", w, k))); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	seen := [2][]eventlog.Recorded{{before.next()}}
	s.until(middle)
	amid := s.follow(s.log, eventlog.Start)
	for len(seen[0]) < writers*each || len(seen[1]) < writers*each {
		if len(seen[0]) < writers*each {
			seen[0] = append(seen[0], before.next())
		}
		if len(seen[1]) < writers*each {
			seen[1] = append(seen[1], amid.next())
		}
	}
	if err := s.wait(written); err != nil {
		s.Fatal(err)
	}
	all := s.allOf(writers * each)
	if why := inWritersOrder(all); why != "" {
		s.Error(why)
	}
	for i, events := range seen {
		if !slices.EqualFunc(events, all, equal) {
			s.Errorf("subscription %d saw other events, or in another order, than read all", i)
		}
	}
	last := proposed("last")
	s.append("busy-0", eventlog.Any, last)
	before.expect(last)
	amid.expect(last)
}

func blockedHandler(s *scene) {
	var calls atomic.Int32
	entered, release := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	done := make(chan error, 1)
	var seen []eventlog.Recorded
	const n = 60
	go func() {
		done <- s.log.Subscribe(ctx, eventlog.Start, func(ctx context.Context, r eventlog.Recorded) error {
			if calls.Add(1) == 1 {
				close(entered)
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			if seen = append(seen, r); len(seen) == n {
				cancel()
			}
			return nil
		})
	}()
	var want []eventlog.Proposed
	other := s.follow(s.log, eventlog.Start)
	for i := range n {
		event := proposed(fmt.Sprintf("e%d", i))
		want = append(want, event)
		s.append("pressed", eventlog.Any, event)
		other.expect(event)
		if i == 0 {
			s.until(entered)
		}
	}
	s.holds("pressed", want...)
	if got := calls.Load(); got != 1 {
		s.Errorf("the handler was called %d times while it was in its first call", got)
	}
	close(release)
	if err := s.wait(done); !errors.Is(err, context.Canceled) {
		s.Errorf("subscription ended with %v, want %v", err, context.Canceled)
	}
	if !slices.EqualFunc(seen, s.all(), equal) {
		s.Errorf("the handler saw %d events that are not the %d recorded", len(seen), n)
	}
}

func handlerMayAppend(s *scene) {
	const n = 20
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.append("counted", eventlog.NoStream, proposed("0"))
	done := make(chan error, 1)
	go func() {
		done <- s.log.Subscribe(ctx, eventlog.Start, func(ctx context.Context, r eventlog.Recorded) error {
			if r.Revision == n {
				cancel()
				return nil
			}
			_, err := s.log.Append(ctx, "counted", eventlog.Exactly(r.Revision), proposed(fmt.Sprint(r.Revision+1)))
			return err
		})
	}()
	if err := s.wait(done); !errors.Is(err, context.Canceled) {
		s.Errorf("subscription ended with %v, want %v", err, context.Canceled)
	}
	s.eachOnce("counted", n+1)
}

func returnsHandlersError(s *scene) {
	const recorded = 5
	full := errors.New("handler is full")
	s.append("failing", eventlog.NoStream, batch("e", recorded)...)
	for _, failing := range []int{1, 3, recorded, recorded + 1} { // the last one comes live
		calls := 0
		done := make(chan error, 1)
		caughtUp := make(chan struct{})
		go func() {
			done <- s.log.Subscribe(s.ctx, eventlog.Start, func(_ context.Context, r eventlog.Recorded) error {
				if calls++; calls == failing {
					return fmt.Errorf("call %d: %w", calls, full)
				}
				if calls == recorded {
					close(caughtUp)
				}
				return nil
			})
		}()
		if failing > recorded {
			s.until(caughtUp)
			s.append("failing", eventlog.Any, batch("live", 3)...)
		}
		if err := s.wait(done); !errors.Is(err, full) {
			s.Errorf("failed at event %d, the subscription ended with %v, want %v", failing, err, full)
		}
		if calls != failing {
			s.Errorf("the handler failed at event %d and was called %d times", failing, calls)
		}
	}
}

func returnsContextsError(s *scene) {
	called := func(context.Context, eventlog.Recorded) error {
		s.Error("the handler was called though the context had ended")
		return nil
	}
	s.follow(s.log, eventlog.Start).end() // with nothing there
	s.append("ending", eventlog.NoStream, batch("e", 5)...)
	if err := s.log.Subscribe(ended(s.ctx), eventlog.Start, called); !errors.Is(err, context.Canceled) {
		s.Errorf("with an ended context: subscription ended with %v, want %v", err, context.Canceled)
	}
	waiting := s.follow(s.log, eventlog.Start)
	for range 5 {
		waiting.next()
	}
	waiting.end()
	inHandler := s.follow(s.log, eventlog.Start)
	inHandler.next()
	inHandler.end()

	expired, cancel := context.WithTimeout(s.ctx, 1)
	defer cancel()
	if err := s.log.Subscribe(expired, s.allOf(5)[4].Position, called); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("with an expired context: subscription ended with %v, want %v", err, context.DeadlineExceeded)
	}
}

func subscribeLeavesNothing(s *scene) {
	s.append("leaving", eventlog.NoStream, batch("e", 3)...)
	before := goleak.IgnoreCurrent()
	for i := range 20 {
		f := s.follow(s.log, eventlog.Start)
		for range i % 4 {
			f.next()
		}
		f.end()
	}
	if err := goleak.Find(before); err != nil {
		s.Errorf("ended subscriptions leave goroutines: %v", err)
	}
	s.append("leaving", eventlog.Exactly(2), proposed("still works"))
}
