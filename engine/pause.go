package engine

import (
	"sync/atomic"
	"time"
)

// pause is until when the CRM is left alone: because it asked for that, or
// because it cannot be reached. It spares the CRM and the log, and is no part of
// correctness: another process learns it from its own answers.
type pause struct {
	untilNanos  atomic.Int64
	unreachable atomic.Int64 // pauses in a row because no request could leave
}

func (p *pause) until() time.Time {
	if n := p.untilNanos.Load(); n > 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (p *pause) extend(to time.Time) {
	for {
		old := p.untilNanos.Load()
		if to.UnixNano() <= old || p.untilNanos.CompareAndSwap(old, to.UnixNano()) {
			return
		}
	}
}

// lost notes that no request could leave. Requests that were under way together
// lengthen the pause once.
func (p *pause) lost(now time.Time, length func(inARow int) time.Duration) {
	if !now.Before(p.until()) {
		p.extend(now.Add(length(int(p.unreachable.Add(1)))))
	}
}

// met notes that a request could leave.
func (p *pause) met() { p.unreachable.Store(0) }
