package sim

import "github.com/leadonce/leadonce/engine/crm"

// drawSteps draws a plan about leads of several steps: the first ones go well, and what
// can happen to one effect happens to the next.
func drawSteps(r Source, class crm.Class) Plan {
	updates := alone[r.IntN(len(alone)):][:1]
	if r.IntN(4) == 0 {
		updates = together[r.IntN(len(together))]
	}
	p := Plan{Setup: setupFor(r, class, updates)}
	p.Stepped, p.Culprit, p.Processes = true, r.IntN(len(leadSteps)), 2
	if r.IntN(4) == 0 {
		p.Refused = 1
	}
	for i := range updates {
		p.Steps = append(p.Steps, Step{Kind: Deliver, A: i})
	}
	f := drawFocus(r)
	worker := r.IntN(2)
	for range r.IntN(len(leadSteps)) {
		p.Steps = append(p.Steps, Step{Kind: Until, A: worker, N: toCreating})
	}
	if r.IntN(3) == 0 {
		p.Attempts, p.Refused = 1, 0
		p.Steps = append(p.Steps, f.contradictedRound(r)...)
		return p
	}
	for range 1 + r.IntN(3) {
		switch r.IntN(5) {
		case 0:
			p.Steps = append(p.Steps, Step{Kind: Until, A: worker, N: toAppending}, Step{Kind: Crash, A: worker})
		case 1:
			p.Steps = append(p.Steps, f.overtakenRound(r)...)
		case 2:
			p.Steps = append(p.Steps, f.doubtedRound(r)...)
		case 3:
			p.Steps = append(p.Steps, f.refusedRound(r)...)
		default:
			p.Steps = append(p.Steps, f.looseRound(r)...)
		}
	}
	return p
}

// contradictedRound is an attempt whose worker is paused while it awaits the answer. A
// person gives a wrong one, and the job goes on, before the right one is there; or the
// person is about to give the right one.
func (f focus) contradictedRound(r Source) []Step {
	a := r.IntN(2)
	steps := []Step{
		{Kind: Until, A: a, N: toCreating}, {Kind: Pass, N: aMinute}, {Kind: Until, A: 1 - a, N: toAppending}, {Kind: Operate, N: errs},
	}
	if r.IntN(3) == 0 {
		steps[3] = Step{Kind: Operate, N: resolves, F: 1}
		late := Step{Kind: Until, A: a, N: toAppending}
		steps = append(steps, late, late) // the first one finds the claim lost
	}
	if r.IntN(3) > 0 { // the next step: its answer is lost, or under way
		steps = append(steps, Step{Kind: Until, A: 1 - a, N: toCreating, F: r.IntN(2)})
	}
	if r.IntN(2) == 0 {
		steps = append(steps, Step{Kind: Until, A: 1 - a, N: toAppending})
	}
	return append(steps, Step{Kind: Until, A: a, N: toAppending}, f.step(r, aLife))
}

// doubtedRound is an attempt after which the job is doubted, and looked up; or given up
// and started again before.
func (f focus) doubtedRound(r Source) []Step {
	steps := []Step{
		{Kind: Until, N: toCreating, F: f.faults[0]}, {Kind: Until, N: toAppending}, {Kind: Operate, N: doubts}, {Kind: Pass},
	}
	switch r.IntN(3) {
	case 0:
		steps = append(steps, f.step(r, aLife))
	case 1:
		steps = append(steps[:3], Step{Kind: Operate, N: discards}, Step{Kind: Operate, N: requeues})
	}
	return steps
}

// refusedRound is a refusal, and what a person does about it.
func (f focus) refusedRound(r Source) []Step {
	return []Step{
		{Kind: Until, N: toCreating, F: []int{refusedNow, notExecuted}[r.IntN(2)]}, {Kind: Until, N: toAppending},
		{Kind: Operate, N: f.acts[0], F: r.IntN(2)}, f.step(r, aLife),
	}
}
