package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// peers are the processes that take jobs, as their claims in the log show them. They
// say which of them a job is for, so that several on one log do not all reach for the
// same job. It is a preference and no more: what the one does not take in time, the
// next one may, and Advance alone decides whether a job can be had.
type peers struct {
	self   string               // empty: this process takes whatever is due
	seen   map[string]time.Time // newest claim
	newest time.Time            // of all events: the log's own clock
	stale  bool                 // a process came after the waits were worked out
}

const (
	// peerLives is for how long after its last claim a process is counted. One that
	// has died holds up the jobs that were for it by handOver, and no longer than this.
	peerLives = time.Minute
	// handOver is how long each process in the order of a job waits for those before
	// it: longer than one takes to learn of a job and claim it. The runner looks four
	// times a second.
	handOver = 500 * time.Millisecond
	// handOvers bounds that wait, whatever number of processes came and went.
	handOvers = 4
)

// at notes the time of an event. A newest one that is far ahead of it was told by a
// clock that is wrong.
func (p *peers) at(t time.Time) {
	if t.After(p.newest) || p.newest.Sub(t) > peerLives {
		p.newest = t
	}
}

// claimed notes a claim; at has been told before.
func (p *peers) claimed(worker string, at time.Time) {
	if p.self == "" || worker == "" {
		return
	}
	if !p.lives(worker) {
		p.bury()
		p.stale = true
	}
	p.seen[worker] = at
}

// bury forgets those that have not claimed anything for long, so that a long history
// does not fill the memory.
func (p *peers) bury() {
	for worker := range p.seen {
		if !p.lives(worker) {
			delete(p.seen, worker)
		}
	}
}

func (p *peers) lives(worker string) bool { return p.newest.Sub(p.seen[worker]).Abs() < peerLives }

// wait is for how long the job is left to those that come before this process. One
// that has claimed nothing lately comes last.
func (p *peers) wait(stream string) time.Duration {
	if len(p.seen) == 0 {
		return 0
	}
	before, own, counted := 0, score(p.self, stream), p.lives(p.self)
	for worker := range p.seen {
		if p.lives(worker) && (!counted || score(worker, stream) > own) {
			before++
		}
	}
	return time.Duration(min(before, handOvers)) * handOver
}

// score is the process's place in the order of the job: the highest comes first
// (rendezvous hashing: https://en.wikipedia.org/wiki/Rendezvous_hashing).
func score(worker, stream string) uint64 {
	sum := sha256.Sum256([]byte(worker + stream))
	return binary.BigEndian.Uint64(sum[:])
}
