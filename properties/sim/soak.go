package sim

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Soak is a long search. Its zero values mean: without that limit.
type Soak struct {
	Seed  uint64 // of the first run; the others follow
	Runs  int
	Time  time.Duration
	Class crm.Class // empty: all of them

	// Progress, which may be nil, is called about once a second.
	Progress func(runs int, took time.Duration)
}

// Found is a run that violates.
type Found struct {
	Seed uint64
	Plan Plan
}

// Run plays plans on every processor until a limit is reached, ctx ends, or one
// violates; it returns the one with the lowest seed of those that were met, and
// what was covered. Which plan a seed stands for depends on the seed and the class
// only.
func (s Soak) Run(ctx context.Context) (*Found, *Coverage) {
	if s.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Time)
		defer cancel()
	}
	var next, done atomic.Int64
	var stop atomic.Bool
	var mu sync.Mutex
	var found *Found
	total := &Coverage{}
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			cover := &Coverage{}
			player := NewPlayer(cover)
			defer player.Close()
			for !stop.Load() && ctx.Err() == nil {
				n := next.Add(1) - 1
				if s.Runs > 0 && n >= int64(s.Runs) {
					break
				}
				seed := s.Seed + uint64(n)
				p := Draw(Seeded(seed), s.Class)
				if player.Play(p) != nil {
					stop.Store(true)
					mu.Lock()
					if found == nil || seed < found.Seed {
						found = &Found{seed, p}
					}
					mu.Unlock()
				}
				done.Add(1)
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(cover)
		})
	}
	s.report(&players, &done)
	return found, total
}

// report calls Progress until the players have ended.
func (s Soak) report(players *sync.WaitGroup, done *atomic.Int64) {
	ended := make(chan struct{})
	go func() {
		players.Wait()
		close(ended)
	}()
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if s.Progress != nil {
				s.Progress(int(done.Load()), time.Since(began))
			}
		}
	}
}
