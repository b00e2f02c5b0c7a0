package engine

import (
	"sync/atomic"
	"time"
)

// pause is until when the CRM asked to be left alone. It spares the CRM and is
// no part of correctness: another process learns it from its own answers.
type pause struct{ untilNanos atomic.Int64 }

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
