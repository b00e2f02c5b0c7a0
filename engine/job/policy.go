package job

import (
	"fmt"
	"time"
)

// Policy is how patient the engine is. All durations are positive.
type Policy struct {
	MaxAttempts int           // requests for one job before it is given up
	RetryFirst  time.Duration // longest wait before the second attempt
	RetryMax    time.Duration // longest wait before any attempt; also caps Retry-After
	Lease       time.Duration // how long a claim lasts
	CallTimeout time.Duration // how long one request may take
	ClockSkew   time.Duration // how far the clocks of two processes may be apart
}

// Check returns an error that names the relation that does not hold.
func (p Policy) Check() error {
	switch {
	case p.MaxAttempts < 1:
		return fmt.Errorf("retry.attempts is %d, must be at least 1", p.MaxAttempts)
	case p.RetryFirst <= 0 || p.RetryMax < p.RetryFirst:
		return fmt.Errorf("retry.first is %s and retry.max is %s, want 0 < first ≤ max", p.RetryFirst, p.RetryMax)
	case p.CallTimeout <= 0:
		return fmt.Errorf("call_timeout is %s, must be positive", p.CallTimeout)
	case p.ClockSkew < 0:
		return fmt.Errorf("clock_skew is %s, must not be negative", p.ClockSkew)
	case p.Lease < p.CallTimeout+p.LeaseMargin():
		return fmt.Errorf("lease is %s, must be at least call_timeout (%s) and a quarter of it more", p.Lease, p.CallTimeout)
	}
	return nil
}

// LeaseMargin is how long before the lease ends a request is over at the
// latest, so that its outcome can still be recorded under the lease.
func (p Policy) LeaseMargin() time.Duration { return p.CallTimeout / 4 }

// Backoff is the wait before the next try after n tries: full jitter (a share
// drawn from [0,1)) of an exponentially growing bound.
func (p Policy) Backoff(n int, share float64) time.Duration {
	bound := min(p.RetryFirst, p.RetryMax)
	for ; n > 1 && bound < p.RetryMax; n-- {
		bound += min(bound, p.RetryMax-bound) // doubled, and never past a Duration's range
	}
	return time.Duration(share * float64(bound))
}

// Capability is what the CRM's interface allows, as far as a decision needs it.
type Capability struct {
	// Repeatable: the same request under the same operation id makes no second
	// effect.
	Repeatable bool
	// Validity bounds Repeatable in time, from the first request on. Zero: no bound.
	Validity time.Duration
	// CanFind: a lead can be looked up by its operation id.
	CanFind bool
	// Settle is how long after a request's deadline its effect can still appear:
	// the CRM's longest request plus the lag of its index.
	Settle time.Duration
}

// repeatableAt reports whether a request that ends by deadline is still within
// the validity that began at first. The settle time and the clocks' skew are
// the safety: the CRM may see the request that much later than we sent it.
func (c Capability) repeatableAt(first, deadline time.Time, p Policy) bool {
	if !c.Repeatable || c.Validity == 0 {
		return c.Repeatable
	}
	return deadline.Add(c.Settle + p.ClockSkew).Before(first.Add(c.Validity))
}

// SettledAt is from when on a lookup that finds nothing proves that no request
// up to deadline had an effect.
func (c Capability) SettledAt(deadline time.Time, p Policy) time.Time {
	return deadline.Add(c.Settle + p.ClockSkew)
}
