package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// SIGKILL at random moments, from the middle of the start to the middle of the
// work, while updates are delivered as Telegram does: again until a 2xx.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	kills := 8
	if testing.Short() {
		kills = 3
	}
	for _, class := range []string{"idempotency_key", "lookup"} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			const updates = 40
			s := newSite(t, class, brief, "--faults", "0.2")
			v := s.deliverUnderKills(updates, kills)
			s.account(updates)
			s.terminate(v.program)
		})
	}
}

// deliverUnderKills delivers the updates 1 to n to processes that are killed at random
// moments, each of them by SIGKILL. It returns the last one, which lives.
func (s *site) deliverUnderKills(n int64, kills int) server {
	s.t.Helper()
	var base atomic.Value
	v := s.serve()
	base.Store(v.url)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	delivered := deliverAll(ctx, &base, n)
	for range kills {
		pause(ctx, rand.N(300*time.Millisecond))
		v.kill()
		v = s.serve()
		base.Store(v.url)
	}
	delivered()
	if ctx.Err() != nil {
		s.t.Fatal("the updates are not accepted")
	}
	return v
}

// deliverAll delivers the updates 1 to n, four at a time and each until it is
// accepted. wait returns when all are, or ctx has ended.
func deliverAll(ctx context.Context, base *atomic.Value, n int64) (wait func()) {
	var delivering sync.WaitGroup
	for part := range int64(4) {
		delivering.Go(func() {
			for id := part + 1; id <= n; id += 4 {
				insist(ctx, base, message(id))
				pause(ctx, 50*time.Millisecond)
			}
		})
	}
	return delivering.Wait
}

// insist delivers until the answer is 200.
func insist(ctx context.Context, base *atomic.Value, body []byte) {
	for ctx.Err() == nil {
		if status, err := post(base.Load().(string), secret, body); err == nil && status == http.StatusOK {
			return
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// pause is part of what is tested: a moment at which something happens.
func pause(ctx context.Context, d time.Duration) { _ = systemClock{}.Sleep(ctx, d) }
