package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Subscribe implements eventlog.Log. It returns ErrUnavailable, too, when the
// log cannot be read or is closed; the caller subscribes again.
func (l *Log) Subscribe(ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	poll := time.NewTicker(l.opts.PollInterval)
	defer poll.Stop()
	for {
		// Before the read, so that what is appended during it is not missed.
		news := l.news.next()
		for e, err := range l.ReadAll(ctx, after) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return err
			}
			if err := handler(ctx, e); err != nil {
				return err
			}
			after = e.Position
		}
		select {
		case <-news:
		case <-poll.C: // another process may have appended
		case <-l.closed:
			return unavailable("subscribe", errClosed)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// signal wakes everyone who waits for the next broadcast.
type signal struct {
	mu      sync.Mutex
	waiting chan struct{} // nil: nobody waits
}

// next is closed by the next broadcast.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}
