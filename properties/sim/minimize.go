package sim

import (
	"slices"
	"time"
)

// Minimize is a plan with a violation of the same property, from which nothing
// can be left out: no step, no update, no process, no fault that may happen. It
// returns p itself when p violates nothing.
func Minimize(p Plan) Plan {
	first := Play(p, &Coverage{})
	if first == nil {
		return p
	}
	m := minimizer{property: first.Property, best: p, budget: minimizeRuns}
	if p.Parts != nil && p.Parts.MinimizeTime > 0 {
		m.until = time.Now().Add(p.Parts.MinimizeTime)
	}
	for m.improved = true; m.improved && m.budget > 0; {
		m.improved = false
		m.dropSteps()
		m.simplifySteps()
		m.simplifySetup()
	}
	return m.best
}

// minimizeRuns bounds the runs of one minimization.
const minimizeRuns = 4000

type minimizer struct {
	property Property
	best     Plan
	improved bool
	budget   int
	until    time.Time // zero for as long as the budget lasts
}

// try takes the plan when it violates the same property.
func (m *minimizer) try(p Plan) bool {
	if m.budget--; m.budget < 0 || !m.until.IsZero() && time.Now().After(m.until) {
		m.budget = 0
		return false
	}
	if v := Play(p, &Coverage{}); v == nil || v.Property != m.property {
		return false
	}
	m.best, m.improved = p, true
	return true
}

// dropSteps leaves out runs of steps, from halves to single ones.
func (m *minimizer) dropSteps() {
	for size := max(len(m.best.Steps)/2, 1); size > 0; size /= 2 {
		for i := 0; i+size <= len(m.best.Steps); {
			shorter := m.best
			shorter.Steps = slices.Concat(m.best.Steps[:i], m.best.Steps[i+size:])
			if !m.try(shorter) {
				i++
			}
		}
	}
}

// simplifySteps makes the numbers of each step as small as they can be, and puts
// plain steps in the place of intricate ones.
func (m *minimizer) simplifySteps() {
	for i := range m.best.Steps {
		for _, simpler := range simplerThan(m.best.Steps[i]) {
			next := m.best
			next.Steps = slices.Clone(next.Steps)
			next.Steps[i] = simpler
			if m.try(next) {
				break
			}
		}
	}
}

func simplerThan(s Step) (list []Step) {
	add := func(change func(*Step)) {
		t := s
		change(&t)
		if t != s {
			list = append(list, t)
		}
	}
	switch s.Kind {
	case Run, Until:
		add(func(t *Step) { *t = Step{Kind: Work, A: s.A} })
		add(func(t *Step) { t.F = 0 })
	case Post:
		add(func(t *Step) { t.Kind = Deliver })
	case Terminate:
		add(func(t *Step) { t.Kind = Crash })
	case Deliver:
		add(func(t *Step) { t.F = 0 })
	}
	for _, n := range []int{0, s.N / 2, s.N - 1} {
		if n >= 0 && n < s.N {
			add(func(t *Step) { t.N = n })
		}
	}
	for a := range min(s.A, 4) {
		add(func(t *Step) { t.A = a })
	}
	return list
}

// simplifySetup makes the world smaller.
func (m *minimizer) simplifySetup() {
	for i := 0; i < len(m.best.Updates) && len(m.best.Updates) > 1; {
		next := m.best
		next.Updates = slices.Concat(next.Updates[:i], next.Updates[i+1:])
		low := next.Refused & (1<<i - 1)
		next.Refused = low | next.Refused>>(i+1)<<i
		if !m.try(next) {
			i++
		}
	}
	for _, change := range []func(*Setup){
		func(s *Setup) { s.Clocks = nil },
		func(s *Setup) { s.Processes = max(1, s.Processes-1) },
		func(s *Setup) { s.Workers = 1 },
		func(s *Setup) { s.Snapshots = false },
		func(s *Setup) { s.Share = false },
		func(s *Setup) { s.Limited = false },
		func(s *Setup) { s.Stepped, s.Culprit = false, 0 },
		func(s *Setup) { s.Culprit = 0 },
		func(s *Setup) { s.Steady = true },
		func(s *Setup) { s.Refused = 0 },
		func(s *Setup) { s.Faults = 0 },
	} {
		next := m.best
		if change(&next.Setup); !equal(next.Setup, m.best.Setup) {
			m.try(next)
		}
	}
	for f := range faults {
		if m.best.Faults>>f&1 == 1 {
			next := m.best
			next.Faults &^= 1 << f
			m.try(next)
		}
	}
}

func equal(a, b Setup) bool {
	return slices.Equal(a.Clocks, b.Clocks) && slices.Equal(a.Updates, b.Updates) &&
		a.Processes == b.Processes && a.Workers == b.Workers && a.Snapshots == b.Snapshots && a.Share == b.Share &&
		a.Limited == b.Limited && a.Steady == b.Steady && a.Stepped == b.Stepped && a.Culprit == b.Culprit && a.Refused == b.Refused && a.Faults == b.Faults
}
