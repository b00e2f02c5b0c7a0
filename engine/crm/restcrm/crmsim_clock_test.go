package restcrm_test

import (
	"context"
	"slices"
	"sync"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
)

// clock is the time of a world: the engine's, the connector's and the CRM's. It
// moves when told.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []timer
	op     sim.Op        // of the request that arrived last
	grown  chan struct{} // closed by the next timer; nil when nobody waits
	onHang func()        // called when a request begins to hang; set before any does
}

// timer is a late effect of a create, or the late answer to a find.
type timer struct {
	at   time.Time
	op   sim.Op
	fire chan time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep moves the clock, for whoever sleeps is the only one that runs.
func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

// After is what the CRM waits on.
func (c *clock) After(d time.Duration) <-chan time.Time {
	if c.onHang != nil {
		c.onHang() // before the timer can be seen: see world.settle
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := timer{c.now.Add(d), c.op, make(chan time.Time, 1)}
	c.timers = append(c.timers, t)
	if c.grown != nil {
		close(c.grown)
		c.grown = nil
	}
	return t.fire
}

func (c *clock) arrived(op sim.Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.op = op
}

// lateEffects is how many creates wait for their time, and a channel that is
// closed when there are more.
func (c *clock) lateEffects() (int, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.grown == nil {
		c.grown = make(chan struct{})
	}
	n := 0
	for _, t := range c.timers {
		if t.op == sim.Create {
			n++
		}
	}
	return n, c.grown
}

// wake ends the wait of whoever has the channel of lateEffects.
func (c *clock) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.grown != nil {
		close(c.grown)
		c.grown = nil
	}
}

// step moves the clock to the next timer, or to the time when there is none
// before it, and reports whether it is there.
func (c *clock) step(to time.Time) (arrived bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.timers, func(a, b timer) int { return a.at.Compare(b.at) })
	if len(c.timers) > 0 && !c.timers[0].at.After(to) {
		next := c.timers[0]
		c.timers = c.timers[1:]
		if next.at.After(c.now) {
			c.now = next.at
		}
		next.fire <- c.now
		return false
	}
	if to.After(c.now) {
		c.now = to
	}
	return true
}
