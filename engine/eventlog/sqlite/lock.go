package sqlite

import (
	"context"
	"errors"
	"time"
)

// lockPoll is how often a lock that another process holds is tried again.
// SQLite's own handler waits up to 100 ms between tries, so it seldom meets the
// short gaps that a busy neighbour leaves; DESIGN.md has the figures.
const lockPoll = time.Millisecond

// errBusy: another connection kept a lock for the whole time.
var errBusy = errors.New("locked by another process: end it, or try again")

// whileBusy repeats try until it is not busy any more.
func whileBusy(ctx context.Context, limit time.Duration, try func() (busy bool, err error)) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	retry := time.NewTicker(lockPoll)
	defer retry.Stop()
	for {
		busy, err := try()
		if !busy || err != nil {
			return err
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			return errBusy
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
