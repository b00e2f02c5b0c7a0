package memory

import (
	"context"
	"fmt"
	"sync"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Log is an eventlog.Log that lives as long as the process.
type Log struct {
	mu sync.Mutex

	// Both only ever grow, and no element is written twice: a slice header that
	// was read under the mutex is a snapshot that needs no mutex any more.
	all     []eventlog.Recorded // the event at position n is all[n-1]
	streams map[string][]uint64 // per stream, the position of each revision

	// grown is closed by the next append; nil when nobody waits for one.
	grown chan struct{}
}

var _ eventlog.Log = (*Log)(nil)

// New is an empty log.
func New() *Log {
	return &Log{streams: make(map[string][]uint64)}
}

// Tail is the position of the newest event.
func (l *Log) Tail(ctx context.Context) (eventlog.Position, error) {
	if err := ctx.Err(); err != nil {
		return eventlog.Start, unavailable("read tail", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return position(uint64(len(l.all))), nil
}

func position(n uint64) eventlog.Position { return eventlog.NewPosition(n, n) }

func unavailable(operation string, cause error) error {
	return fmt.Errorf("%s: %w: %w", operation, eventlog.ErrUnavailable, cause)
}
