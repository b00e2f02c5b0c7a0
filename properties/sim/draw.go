package sim

import (
	"math/rand/v2"

	"github.com/leadonce/leadonce/engine/crm"
)

// Source draws numbers from [0,n). *rand.Rand is one, and so is rapid.
type Source interface{ IntN(n int) int }

// Seeded is the source of a run by its number.
func Seeded(seed uint64) Source { return rand.New(rand.NewPCG(seed, 0x6c6561646f6e6365)) }

// Draw draws a plan for a CRM of the class; of any class when it is empty. Some plans
// are a swarm: each leaves out whole kinds of steps and of faults, and varies how
// often the rest happens, so that rare combinations are met. The others are about one
// thing, and go deep: see draw_focus.go and draw_steps.go.
func Draw(r Source, class crm.Class) Plan {
	if class == "" {
		class = crm.Classes[max(r.IntN(len(crm.Classes)+1)-1, 0)] // the first has the most rules
	}
	switch n := r.IntN(17); {
	case n == 0:
		return drawIntake(r, class)
	case n == 1:
		return drawRestart(r, class)
	case n == 2:
		return drawOutage(r, class)
	case n == 3:
		return drawLife(r, class)
	case n < 8:
		return drawRounds(r, class)
	case n < 10:
		return drawRace(r, class)
	case n == 10:
		return drawSteps(r, class)
	default:
		return drawSwarm(r, class)
	}
}

func drawSwarm(r Source, class crm.Class) Plan {
	p := Plan{Setup: drawSetup(r, class)}
	s := swarm{
		kinds: drawKinds(r), burst: []int{1, 4, 12, 25}[r.IntN(4)], rate: []int{0, 3, 6, 9}[r.IntN(4)],
		far: r.IntN(4) == 0,
	}
	if r.IntN(2) == 0 { // a storm: everything at once
		p.Faults, p.Attempts, s.kinds, s.rate = AllFaults, 4, everyKind, 9
		p.drawStepped(r, 2) // more requests, and so more of what can happen to one
		p.Updates = append(p.Updates, r.IntN(UpdatesKnown), r.IntN(UpdatesKnown), r.IntN(UpdatesKnown))
		for range 70 {
			p.Steps = append(p.Steps, s.step(r))
		}
		return p
	}
	for range 3 + r.IntN([]int{6, 14, 30}[r.IntN(3)]) {
		p.Steps = append(p.Steps, s.step(r))
	}
	return p
}

func drawSetup(r Source, class crm.Class) Setup {
	s := Setup{
		Class: class, Processes: []int{2, 2, 2, 1, 3}[r.IntN(5)], Workers: 1 + r.IntN(4)/3,
		Attempts: []int{3, 2, 1, 4}[r.IntN(4)], Snapshots: r.IntN(8) == 0, Share: r.IntN(4) == 0, Limited: r.IntN(4) == 0, Steady: r.IntN(2) == 0,
	}
	if r.IntN(3) == 0 {
		for range s.Processes {
			s.Clocks = append(s.Clocks, r.IntN(len(skews)))
		}
	}
	switch r.IntN(4) {
	case 0:
		s.Updates = []int{r.IntN(UpdatesKnown)}
	case 1:
		s.Updates = []int{1, 2} // one operation
	default:
		for range 2 + r.IntN(4) {
			s.Updates = append(s.Updates, r.IntN(UpdatesKnown))
		}
	}
	if r.IntN(4) == 0 {
		s.Refused = 1 << r.IntN(len(s.Updates))
	}
	s.drawStepped(r, 5)
	switch keep := r.IntN(3); keep {
	case 0:
		s.Faults = AllFaults
	default: // a quarter or a half of them
		for f := range faults {
			if r.IntN(2*keep) == 0 {
				s.Faults |= 1 << f
			}
		}
	}
	return s
}

// drawStepped makes one world in so many stepped.
func (s *Setup) drawStepped(r Source, oneIn int) {
	s.Stepped, s.Culprit = r.IntN(oneIn) == 0, 0
	if s.Stepped {
		s.Culprit = r.IntN(len(leadSteps))
	}
}

// drawKinds is the list from which the kinds of steps are drawn.
func drawKinds(r Source) []Kind {
	list := []Kind{Deliver, Deliver, Until, Until, Work, Pass}
	for _, more := range [][]Kind{
		{Run, Run, Run}, {Until, Until, Until}, {Post, Run}, {Crash}, {Pass, Pass}, {Land}, {Operate, Operate},
		{Terminate}, {Work, Work}, {Copy}, {Future},
	} {
		if r.IntN(3) > 0 && (more[0] != Future || r.IntN(4) == 0) {
			list = append(list, more...)
		}
	}
	return list
}

// everyKind is the same for a plan that leaves nothing out.
var everyKind = []Kind{
	Deliver, Deliver, Deliver, Until, Until, Until, Until, Until, Until, Until, Until, Run, Run, Work, Pass, Pass, Pass,
	Post, Crash, Terminate, Land, Operate, Copy, Future,
}

// swarm is what one plan draws its steps from.
type swarm struct {
	kinds []Kind
	burst int
	rate  int // of ten calls, how many meet a fault
	far   bool
}

func (s swarm) step(r Source) Step {
	step := Step{Kind: s.kinds[r.IntN(len(s.kinds))], A: r.IntN(6)}
	fault := func() int {
		if r.IntN(10) < s.rate {
			return 1 + r.IntN(len(createTwiceFaults))
		}
		return 0
	}
	switch step.Kind {
	case Deliver, Post:
		step.N = r.IntN(MaxProcesses)
		step.F = fault()
	case Run:
		step.N = r.IntN(s.burst)
		step.F = fault()
	case Until:
		step.N = min(r.IntN(len(targets)), r.IntN(len(targets)))
		step.F = fault()
	case Pass:
		step.N = r.IntN(len(durations) - 1)
		if s.far {
			step.N = r.IntN(len(durations))
		}
	case Operate:
		step.N, step.F = r.IntN(acts), r.IntN(2)
	}
	return step
}
