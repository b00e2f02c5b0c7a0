package restcrm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leadonce/leadonce/engine/crm"
)

// limits are how often the CRM may be asked, and when it is left alone.
type limits struct {
	perSecond  float64 // requests; 0: no limit
	burst      int
	breakAfter int // failures in a row
	breakFor   time.Duration
}

func (l *loader) limits(n *node) {
	limits := &l.definition.limits
	l.keys(n, map[string]func(*node){
		"per_second":  func(n *node) { limits.perSecond = l.number(n, 1e4) },
		"burst":       func(n *node) { limits.burst = int(l.number(n, 1e4)) },
		"break_after": func(n *node) { limits.breakAfter = int(l.number(n, 1e4)) },
		"break_for":   func(n *node) { limits.breakFor = l.duration(n) },
	})
	if limits.perSecond > 0 {
		limits.burst = max(limits.burst, 1)
	} else if limits.burst > 0 {
		l.fail(n, "burst needs per_second; give it too")
	}
	limits.breakAfter = max(limits.breakAfter, 1)
}

// maxRest is the longest that the CRM is left alone here for one answer; a date
// a year ahead must not stop it for a year. The engine has a limit of its own.
const maxRest = 5 * time.Minute

// gate decides whether a request may leave now. What it holds back is NotSent
// with the time to come back, so that the engine pauses its claims and no
// attempt is spent.
type gate struct {
	limits  limits
	limiter *rate.Limiter // nil: no limit
	now     func() time.Time
	sleep   func(context.Context, time.Duration) error

	mu       sync.Mutex
	rest     time.Time // the CRM asked to be left alone until then
	failures int       // in a row
	opened   time.Time // until when the circuit is open
	probing  bool      // the one request after that is under way
}

func newGate(l limits, now func() time.Time, sleep func(context.Context, time.Duration) error) *gate {
	g := &gate{limits: l, now: now, sleep: sleep}
	if l.perSecond > 0 {
		g.limiter = rate.NewLimiter(rate.Limit(l.perSecond), l.burst)
	}
	return g
}

// enter lets a request pass, or answers a *crm.Error. Whoever may enter leaves.
func (g *gate) enter(ctx context.Context, deadline time.Time) error {
	if err := g.admit(); err != nil {
		return err
	}
	if err := g.wait(ctx, deadline); err != nil {
		g.leave(verdict{}, true)
		return err
	}
	return nil
}

func (g *gate) admit() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	switch {
	case now.Before(g.rest):
		return held("the CRM asked to be left alone", g.rest.Sub(now))
	case g.failures < g.limits.breakAfter:
		return nil
	case now.Before(g.opened):
		return held(fmt.Sprintf("the circuit is open after %d failures in a row", g.failures), g.opened.Sub(now))
	case g.probing:
		return held("the circuit is open, and one request tries it", time.Second)
	}
	g.probing = true
	return nil
}

func held(reason string, wait time.Duration) error {
	return &crm.Error{Outcome: crm.NotSent, Reason: reason, RetryAfter: wait}
}

// wait takes the request's turn when it comes within half of the time that is
// left: the other half is the request's own.
func (g *gate) wait(ctx context.Context, deadline time.Time) error {
	if g.limiter == nil {
		return nil
	}
	now := g.now()
	turn := g.limiter.ReserveN(now, 1)
	delay := turn.DelayFrom(now)
	if delay > deadline.Sub(now)/2 {
		turn.CancelAt(now)
		return held("the rate limit of the file is used up", delay)
	}
	if delay == 0 {
		return nil
	}
	if g.sleep(ctx, delay) != nil {
		turn.CancelAt(g.now())
		return held("cancelled", 0)
	}
	return nil
}

// leave notes what came of a request. One that was given up here says nothing
// of the CRM.
func (g *gate) leave(v verdict, givenUp bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if until := now.Add(min(v.rest, maxRest)); v.rest > 0 && until.After(g.rest) {
		g.rest = until
	}
	g.probing = false
	switch {
	case givenUp:
	case v.healthy:
		g.failures = 0
	default:
		g.failures++
		if g.failures >= g.limits.breakAfter {
			g.opened = now.Add(g.limits.breakFor)
		}
	}
}
