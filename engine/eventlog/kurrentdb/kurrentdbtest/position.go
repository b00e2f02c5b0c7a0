package kurrentdbtest

import "math"

// position is a place in the log. Records that commit themselves, and there are
// no others here, are at the same commit and prepare position.
type position struct{ commit, prepare int64 }

// headOfLog stands for no position at all: before the first record.
var headOfLog = position{-1, -1}

func (p position) less(q position) bool {
	return p.commit < q.commit || p.commit == q.commit && p.prepare < q.prepare
}

// wire is the position as two numbers of the protocol, where -1 is the largest
// number there is.
func (p position) wire() (commit, prepare uint64) {
	return uint64(p.commit), uint64(p.prepare)
}

// fromWire takes a number of the protocol; the largest means -1, anything else
// beyond 63 bits is refused.
func fromWire(n uint64) (int64, bool) {
	if n > math.MaxInt64 && n != math.MaxUint64 {
		return 0, false
	}
	return int64(n), true
}

func positionFromWire(commit, prepare uint64) (position, bool) {
	c, ok1 := fromWire(commit)
	p, ok2 := fromWire(prepare)
	return position{c, p}, ok1 && ok2 && commit >= prepare
}
