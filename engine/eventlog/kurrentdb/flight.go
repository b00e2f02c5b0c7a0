package kurrentdb

import (
	"context"
	"sync"
)

// flights let one append at a time go to a stream. Two of them with the same
// ids at the same time stall the server for 2 s, and then abort (H8).
type flights struct {
	mu      sync.Mutex
	streams map[string]*flight // those that someone is in or waits for
}

type flight struct {
	turn  chan struct{} // holds one token while an append is under way
	users int
}

// enter waits for the stream's turn. Its error is the context's.
func (f *flights) enter(ctx context.Context, stream string) (leave func(), err error) {
	f.mu.Lock()
	s := f.streams[stream]
	if s == nil {
		s = &flight{turn: make(chan struct{}, 1)}
		if f.streams == nil {
			f.streams = make(map[string]*flight)
		}
		f.streams[stream] = s
	}
	s.users++
	f.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn; f.forget(stream, s) }, nil
	case <-ctx.Done():
		f.forget(stream, s)
		return nil, ctx.Err()
	}
}

func (f *flights) forget(stream string, s *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(f.streams, stream)
	}
}
