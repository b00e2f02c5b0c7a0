package sim

import "iter"

// stage is the coroutines of runs that follow each other. One that has played its
// part waits there for the next: to begin one costs as much as several calls.
type stage struct {
	idle []*coroutine
	kept bool // beyond the end of a run
}

// coroutine plays one part after the other. It stands still wherever a part
// yields, and between two parts.
type coroutine struct {
	part   func()
	yield  func(point) bool
	resume func() (point, bool)
	end    func()
}

// enter is a coroutine that will play the part once it is resumed. A part must not
// panic.
func (s *stage) enter(part func()) *coroutine {
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		c.part = part
		return c
	}
	c := &coroutine{part: part}
	c.resume, c.end = iter.Pull(func(yield func(point) bool) {
		c.yield = yield
		grow()
		for c.play() {
		}
	})
	return c
}

// play plays one part, and reports whether there is to be another.
func (c *coroutine) play() bool {
	c.part()
	c.part = nil
	return c.yield(point{port: ended})
}

// leave takes back a coroutine whose part has ended.
func (s *stage) leave(c *coroutine) { s.idle = append(s.idle, c) }

func (s *stage) close() {
	for _, c := range s.idle {
		c.end()
	}
	s.idle = nil
}

// grow makes room on the coroutine's stack at once, while there is nothing on it
// that would have to be copied.
//
//go:noinline
func grow() byte {
	var room [12 << 10]byte
	return room[len(noon.Location().String())]
}
