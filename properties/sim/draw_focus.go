package sim

import (
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Indices of targets.
var (
	toCreating  = slices.Index(targets, creating)
	toAppending = slices.Index(targets, appending)
	toCreated   = slices.Index(targets, created)
	toFinding   = slices.Index(targets, finding)
	toReading   = slices.Index(targets, reading)
	toSweeping  = slices.Index(targets, sweeping)
	toIdle      = slices.Index(targets, idle)
)

// UntilCreate and UntilLookup are the N of an Until that goes on to the next create, or
// to the next lookup.
var UntilCreate, UntilLookup = toCreating, toFinding

// Indices of durations.
var (
	aMinute  = lasting(61 * time.Second)
	threeMin = lasting(3 * time.Minute)
	elevenM  = lasting(11 * time.Minute)
)

func lasting(d time.Duration) int { return slices.Index(durations, d) }

// The faults of a create that prove that nothing was made, and say nothing of when to
// try again, as a step names them.
var (
	notExecuted = 1 + slices.Index(createFaults, NotExecuted)
	refusedNow  = 1 + slices.Index(createFaults, RefusedNow)
)

// aLife is one job from its first request to its end: kinds of steps, more often what
// matters more.
var aLife = []Step{
	{Kind: Until, N: toCreating}, {Kind: Until, N: toCreating}, {Kind: Until, N: toCreating}, {Kind: Until, N: toCreated},
	{Kind: Until, N: toFinding}, {Kind: Until, N: toFinding}, {Kind: Until, N: toAppending}, {Kind: Until, N: toReading},
	{Kind: Run}, {Kind: Work}, {Kind: Work}, {Kind: Pass}, {Kind: Pass}, {Kind: Pass},
	{Kind: Operate}, {Kind: Operate}, {Kind: Crash}, {Kind: Land}, {Kind: Copy},
}

var (
	alone    = []int{0, 3, 6, 11}               // updates whose operation is their own
	together = [][]int{{1, 2}, {1, 2}, {9, 10}} // and those that share one
)

// focus is what one plan keeps to: few faults, few waits and few acts of an operator,
// for what needs the same to happen twice.
type focus struct {
	faults []int
	rate   int // of six calls, how many meet a fault
	waits  []int
	burst  int
	acts   []int
}

func drawFocus(r Source) focus {
	f := focus{rate: 2 + r.IntN(4), burst: []int{4, 12, 24}[r.IntN(3)]}
	for range 1 + r.IntN(3) {
		f.faults = append(f.faults, 1+r.IntN(len(createTwiceFaults)))
		f.waits = append(f.waits, r.IntN(len(durations)-1))
		f.acts = append(f.acts, r.IntN(acts))
	}
	if r.IntN(2) == 0 {
		f.waits = []int{[]int{aMinute, threeMin, elevenM, elevenM}[r.IntN(4)]}
	}
	return f
}

// setupFor is a small world in which every fault may happen.
func setupFor(r Source, class crm.Class, updates []int) Setup {
	s := Setup{
		Class: class, Processes: 1 + r.IntN(2), Workers: 1, Attempts: 1 + r.IntN(4), Updates: slices.Clone(updates),
		Faults: AllFaults, Steady: r.IntN(4) > 0,
	}
	if r.IntN(4) == 0 {
		s.Clocks = []int{r.IntN(len(skews)), r.IntN(len(skews))}
	}
	s.drawStepped(r, 5)
	return s
}

// drawLife draws a plan about one job, to which anything may happen in any order.
func drawLife(r Source, class crm.Class) Plan {
	p := Plan{Setup: setupFor(r, class, alone[r.IntN(len(alone)):][:1]), Steps: []Step{{Kind: Deliver}}}
	f := drawFocus(r)
	for range 2 + r.IntN(14) {
		if last := p.Steps[len(p.Steps)-1]; r.IntN(4) == 0 && last.Kind != Deliver {
			p.Steps = append(p.Steps, last)
			continue
		}
		p.Steps = append(p.Steps, f.step(r, aLife))
	}
	return p
}

// drawOutage draws a plan in which one thing fails again and again: the log is down,
// or the CRM, for a while.
func drawOutage(r Source, class crm.Class) Plan {
	p := Plan{Setup: setupFor(r, class, alone[r.IntN(len(alone)):][:1]), Steps: []Step{{Kind: Deliver}}}
	p.Processes = 1
	if r.IntN(2) == 0 {
		p.Steps = append(p.Steps, Step{Kind: Until, N: toCreating})
	}
	targets := []int{toAppending, toAppending, toReading, toSweeping, toFinding, toCreating}
	down := Step{Kind: Until, N: targets[r.IntN(len(targets))], F: 1 + r.IntN(4)}
	wait := Step{Kind: Pass, N: r.IntN(3)}
	for range 4 + r.IntN(9) {
		if p.Steps = append(p.Steps, down); wait.N > 0 {
			p.Steps = append(p.Steps, wait)
		}
	}
	return p
}

// drawRounds draws a plan about the attempts of one job: each meets a fault, and then
// time passes.
func drawRounds(r Source, class crm.Class) Plan {
	p := Plan{Setup: setupFor(r, class, alone[r.IntN(len(alone)):][:1]), Steps: []Step{{Kind: Deliver}}}
	f := drawFocus(r)
	rounds := 1 + r.IntN(5)
	switch r.IntN(7) {
	case 0:
		p.Processes = 1
		p.Steps = append(p.Steps, f.interruptedTurn(r)...)
	case 1, 2:
		for range rounds {
			p.Steps = append(p.Steps, f.looseRound(r)...)
		}
	case 3, 4:
		passes, wait := []int{1, 1, 2, 3}[r.IntN(4)], []int{0, aMinute, threeMin, elevenM}[r.IntN(4)]
		for i := range rounds {
			p.Steps = append(p.Steps, f.strictRound(r, i, passes, wait)...)
		}
	default:
		p.Processes = 2
		for range 1 + rounds/2 {
			p.Steps = append(p.Steps, f.overtakenRound(r)...)
		}
	}
	return p
}

func (f focus) looseRound(r Source) (steps []Step) {
	call := Step{Kind: Until, N: []int{toCreating, toCreating, toCreating, toFinding, toAppending}[r.IntN(5)], A: r.IntN(2)}
	if call.N != toAppending && r.IntN(4) > 0 {
		call.F = f.faults[r.IntN(len(f.faults))]
	}
	steps = append(steps, call)
	if r.IntN(2) == 0 {
		steps = append(steps, Step{Kind: Until, N: toAppending, A: call.A})
	}
	steps = append(steps, Step{Kind: Pass})
	for range r.IntN(3) {
		steps = append(steps, Step{Kind: Pass, N: f.waits[r.IntN(len(f.waits))]})
	}
	if r.IntN(3) == 0 {
		steps = append(steps, f.step(r, aLife))
	}
	return steps
}

// strictRound is an attempt like the last one: its fault, its outcome, the same wait.
// Now and then the worker is paused behind its claim instead.
func (f focus) strictRound(r Source, i, passes, wait int) []Step {
	steps := []Step{{Kind: Until, N: toCreating, F: f.faults[min(i, len(f.faults)-1)]}, {Kind: Until, N: toAppending}}
	if r.IntN(4) == 0 {
		return append(steps[1:], Step{Kind: Pass, N: []int{aMinute, threeMin, elevenM, elevenM}[r.IntN(4)]})
	}
	for range passes {
		steps = append(steps, Step{Kind: Pass, N: wait})
	}
	if i > 0 && r.IntN(3) == 0 {
		steps = append(steps, Step{Kind: Operate, N: requeues})
	}
	if r.IntN(4) == 0 {
		steps = append(steps, f.step(r, aLife))
	}
	return steps
}

// overtakenRound is an attempt whose worker is paused while it awaits the answer: the
// other process takes the job over, and a person may have a word.
func (f focus) overtakenRound(r Source) []Step {
	a := r.IntN(2)
	call := Step{Kind: Until, N: toCreating, A: a}
	if r.IntN(2) == 0 {
		call.F = f.faults[0]
	}
	if r.IntN(3) == 0 { // the other one has been given the job, and looks at it when it was tried
		other := Step{Kind: Until, A: 1 - a}
		taken, acts := other, other
		taken.N, acts.N = toSweeping, toAppending
		return []Step{taken, call, {Kind: Until, A: a, N: toAppending}, acts}
	}
	steps := []Step{call, {Kind: Pass, N: aMinute + r.IntN(3)}, {Kind: Work, A: 1 - a}}
	if r.IntN(2) == 0 {
		steps = append(steps, Step{Kind: Operate, N: f.acts[0]})
	}
	if r.IntN(3) == 0 {
		steps = append(steps, f.step(r, aLife))
	}
	return steps
}

// interruptedTurn is a worker that has been given a job, and people who act on it
// before it looks and before it is done.
func (f focus) interruptedTurn(r Source) []Step {
	act := func() Step { return Step{Kind: Operate, N: requeues + r.IntN(2)} }
	return []Step{{Kind: Until, N: toSweeping}, act(), {Kind: Until, N: toReading}, act(), f.step(r, aLife)}
}

// drawIntake draws a plan about two updates under one id, of which the second comes
// while the log has trouble with the first.
func drawIntake(r Source, class crm.Class) Plan {
	p := Plan{Setup: setupFor(r, class, []int{0, 4})}
	p.Processes = 1
	for _, s := range []Step{
		{Kind: Post}, {Kind: Until, A: 1, N: toAppending, F: r.IntN(5)},
		{Kind: Post, A: 1}, {Kind: Until, A: 2, N: toAppending, F: r.IntN(5) * r.IntN(2)}, {Kind: Until, A: 2, N: toReading, F: r.IntN(4)},
	} {
		if r.IntN(8) > 0 {
			p.Steps = append(p.Steps, s)
		}
	}
	return p
}

// drawRestart draws a plan about a process with two workers that keeps a snapshot, and
// dies while one of them has a job in hand.
func drawRestart(r Source, class crm.Class) Plan {
	p := Plan{Setup: setupFor(r, class, alone[:2+r.IntN(3)])}
	p.Processes, p.Workers, p.Snapshots = 1, 2, true
	for i := range p.Updates {
		p.Steps = append(p.Steps, Step{Kind: Deliver, A: i})
	}
	f := drawFocus(r)
	p.Steps = append(p.Steps, Step{Kind: Until, N: []int{toSweeping, toReading, toCreating}[r.IntN(3)]})
	for range 1 + r.IntN(2) {
		p.Steps = append(p.Steps, Step{Kind: Until, A: 1, N: toIdle})
	}
	for range r.IntN(3) {
		p.Steps = append(p.Steps, f.step(r, aLife))
	}
	p.Steps = append(p.Steps, Step{Kind: Crash})
	return p
}

// drawRace draws a plan about two jobs of one operation: the first ends, and while the
// second one takes over, a person starts the first one again.
func drawRace(r Source, class crm.Class) Plan {
	p := Plan{Setup: setupFor(r, class, together[r.IntN(len(together))]), Steps: []Step{{Kind: Deliver}, {Kind: Deliver, A: 1}}}
	p.Processes, p.Attempts, p.Refused = 2, 1+r.IntN(4)/3, uint64(r.IntN(8)/7)
	f := drawFocus(r)
	add := func(s ...Step) {
		if r.IntN(8) > 0 {
			p.Steps = append(p.Steps, s...)
		}
		if r.IntN(8) == 0 {
			p.Steps = append(p.Steps, f.step(r, aLife))
		}
	}
	first := r.IntN(2)
	fault := []int{notExecuted, refusedNow, f.faults[0]}[r.IntN(3)]
	if r.IntN(4) == 0 {
		add(Step{Kind: Until, A: 1 - first, N: toReading}, Step{Kind: Until, A: 1 - first, N: toReading}) // both at once
	}
	add(Step{Kind: Until, A: first, N: toCreating, F: fault})
	add(Step{Kind: Until, A: first, N: toAppending})
	if r.IntN(3) == 0 {
		add(Step{Kind: Pass, N: f.waits[0]})
	}
	for range r.IntN(4) {
		add(Step{Kind: Until, A: 1 - first, N: toReading})
	}
	add(Step{Kind: Operate, A: r.IntN(2), N: requeues})
	for range 1 + r.IntN(2) {
		add(Step{Kind: Until, A: first, N: toAppending})
	}
	for range r.IntN(3) {
		add(f.step(r, aLife))
	}
	return p
}

// step is one of the menu's, with the plan's faults, waits and acts.
func (f focus) step(r Source, menu []Step) Step {
	step := menu[r.IntN(len(menu))]
	step.A = r.IntN(3)
	if r.IntN(6) < f.rate {
		step.F = f.faults[r.IntN(len(f.faults))]
	}
	switch step.Kind {
	case Run:
		step.N = r.IntN(f.burst)
	case Pass:
		step.A, step.F = 0, 0
		if r.IntN(2) == 0 {
			step.N = f.waits[r.IntN(len(f.waits))]
		}
	case Operate:
		step.N, step.F = f.acts[r.IntN(len(f.acts))], r.IntN(3)/2
	case Work, Crash, Land, Copy:
		step.F = 0
	}
	return step
}
