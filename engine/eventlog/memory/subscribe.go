package memory

import (
	"context"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Subscribe calls handler, in the caller's goroutine and outside the mutex, for
// every event behind after.
func (l *Log) Subscribe(ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	for {
		for _, r := range l.behind(after) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := handler(ctx, handOut(r)); err != nil {
				return err
			}
			after = r.Position
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.growth(after):
		}
	}
}

// growth is a channel that closes once there is an event behind after.
func (l *Log) growth(after eventlog.Position) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, _ := after.Parts(); n < uint64(len(l.all)) {
		ready := make(chan struct{})
		close(ready)
		return ready
	}
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.grown
}
