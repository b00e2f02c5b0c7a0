package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// world is one job with everything around it that can go wrong: two processes
// whose clocks differ, requests that land late or are lost, answers that come
// after the claim is gone, an honest operator, and the truth in the CRM.
type world struct {
	choose func(n int) int // 0 to n-1
	fail   func(string)

	policy  Policy
	steps   []string              // empty: the lead is made by one effect
	can     map[string]Capability // of each step
	now     time.Time
	skew    [2]time.Duration
	log     []recorded
	history []State
	state   State
	due     Schedule
	dueAt   time.Time

	leads    map[string][]string // the truth, by step
	keyFirst map[string]time.Time
	landings []landing
	answers  []answer
	asked    map[uint64]bool // claims whose one request is made
	unproven map[uint64]bool // claims not proven to be without effect
	healing  bool
	counts   map[string]int
}

type recorded struct {
	event Event
	at    time.Time
}

// landing is a request on its way that will have its effect at a time.
type landing struct {
	at      time.Time
	process int
	fence   uint64
	step    string
	answers bool
}

type answer struct {
	process int
	fence   uint64
	outcome Outcome
}

var worldPlan = Plan{Effect: true, Action: CreateLead, BusinessKey: "telegram/7/42"}

// newWorld is a CRM of the capability; every other time a lead takes three effects
// there, and the first and the last of them have capabilities of their own.
func newWorld(c Capability, choose func(int) int, fail func(string), counts map[string]int) *world {
	p := patient
	p.ClockSkew = 4 * time.Second
	w := &world{
		choose: choose, fail: fail, policy: p, now: epoch, counts: counts,
		can: map[string]Capability{"": c}, leads: map[string][]string{}, keyFirst: map[string]time.Time{},
		skew:  [2]time.Duration{p.ClockSkew / 2, -p.ClockSkew / 2},
		asked: map[uint64]bool{}, unproven: map[uint64]bool{},
	}
	if choose(2) == 1 {
		w.steps = []string{"contact", LeadStep, "link"}
		w.can = map[string]Capability{"contact": sharp[choose(len(sharp))], LeadStep: c, "link": sharp[choose(len(sharp))]}
	}
	w.append(0, UpdateReceived{Key: Key{Bot: 7, Update: 42}, Fingerprint: "f", Kind: "message", Update: "{}"})
	return w
}

func (w *world) clock(process int) time.Time { return w.now.Add(w.skew[process]) }

func (w *world) share() float64 { return float64(w.choose(1000)) / 1000 }

// rules are those for the step that the job stands at.
func (w *world) rules() Rules { return w.rulesOf(w.state.Step) }

func (w *world) rulesOf(step string) Rules { return Rules{w.policy, w.can[step]} }

// append records events as the engine does: all or none, if the table allows it.
func (w *world) append(process int, events ...Event) {
	if err := Allowed(w.state.Now(), events...); err != nil {
		w.fail(fmt.Sprintf("a decision is not allowed: %v", err))
		return
	}
	for _, e := range events {
		at := w.clock(process)
		w.log = append(w.log, recorded{e, at})
		w.history = append(w.history, w.state)
		w.counts[e.Name()]++
		if schedule, due := Due(e, at); schedule != Unchanged {
			w.due, w.dueAt = schedule, due
		}
		switch e.(type) {
		case JobClaimed:
			w.unproven[w.state.EventCount] = true
		case LeadAbsent, StepConfirmed:
			clear(w.unproven)
		case ReconciliationNeeded:
			if _, made := w.state.Has(LeadStep); len(w.unproven) == 0 && !made {
				w.fail("nothing was ambiguous")
			}
		case ReceiptConflicted:
			w.unproven[w.state.EventCount] = true
		}
		w.state = w.state.Evolve(e, at)
	}
}

// step is one thing that happens. Every choice is possible; what does not fit
// the moment does nothing.
func (w *world) step() {
	process := w.choose(2)
	switch w.choose(12) {
	case 0, 1:
		w.advance([]time.Duration{time.Second, 7 * time.Second, 21 * time.Second, 40 * time.Second, 2 * time.Minute, 25 * time.Minute, 50 * time.Hour}[w.choose(7)])
	case 2:
		w.claim(process)
	case 3, 4:
		w.send(process, w.choose(7))
	case 5:
		w.record(w.choose(8), w.choose(8) == 0)
	case 6:
		w.expire(process)
	case 7:
		w.lookup(process)
	case 8:
		w.operator(process, w.choose(4))
	case 9:
		w.deliver(process)
	case 10:
		w.claim(process)
		w.send(process, w.choose(7))
		w.record(len(w.answers)-1, false)
	case 11:
		if w.owns(process) {
			w.append(process, Renew(w.clock(process), w.policy))
		}
	}
}

func (w *world) owns(process int) bool {
	return w.state.Phase == Claimed && w.state.Claim.Worker == fmt.Sprint("w", process)
}

func (w *world) claim(process int) {
	if w.state.Phase != Pending {
		return
	}
	step, finished := w.state.NextStep(w.steps)
	if finished {
		w.append(process, w.state.Finish(Signature{})...)
		return
	}
	w.append(process, w.state.ClaimBy(fmt.Sprint("w", process), worldPlan, step, w.clock(process), w.policy))
}

// send makes a claim's one request, if that is permitted.
func (w *world) send(process, behaviour int) {
	claim := w.state.Claim
	if !w.owns(process) || w.asked[claim.Fence] {
		return
	}
	switch permission := w.state.Permit(w.clock(process), w.rules()); permission {
	case TooLate:
		w.counts["too late"]++
		w.append(process, Renew(w.clock(process), w.policy))
		return
	case MayNever:
		w.counts["may never"]++
		w.settled(claim.Fence)
		w.append(process, w.state.Unrepeatable(w.rules())...)
		return
	}
	w.asked[claim.Fence] = true
	w.counts["sent"]++
	outcome := Outcome{Class: Unknown, Reason: "cut"}
	latest := claim.Deadline.Add(-w.skew[process]).Add(w.rules().Capability.Settle)
	switch behaviour {
	case 0:
		outcome = w.apply(w.state.Step, w.now)
	case 1, 2: // lands some time; behaviour 2: and the answer comes then
		at := w.now.Add(latest.Sub(w.now) * time.Duration(w.choose(5)) / 4)
		w.landings = append(w.landings, landing{at, process, claim.Fence, w.state.Step, behaviour == 2})
		if behaviour == 2 {
			return
		}
	case 3:
		outcome = Outcome{Class: NotApplied, Reason: "429", RetryAfter: time.Duration(w.choose(3)) * time.Minute}
	case 4:
		outcome = Outcome{Class: Refused, Reason: "no e-mail"}
	case 5:
		outcome = Outcome{Class: NotSent, Reason: "dial"}
	}
	outcome.Step = w.state.Step
	w.answers = append(w.answers, answer{process, claim.Fence, outcome})
}

// apply is the effect of a request for the step. Ids of two steps can be equal.
func (w *world) apply(step string, at time.Time) Outcome {
	c, made := w.can[step], w.leads[step]
	if c.Repeatable && len(made) > 0 && (c.Validity == 0 || at.Before(w.keyFirst[step].Add(c.Validity))) {
		return Outcome{Class: Created, Step: step, CRMID: made[len(made)-1], How: ByExists}
	}
	w.keyFirst[step] = at
	id := fmt.Sprint("id-", len(made)+1)
	w.leads[step] = append(made, id)
	return Outcome{Class: Created, Step: step, CRMID: id, How: ByCreate}
}

func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	slices.SortStableFunc(w.landings, func(a, b landing) int { return a.at.Compare(b.at) })
	for len(w.landings) > 0 && !w.landings[0].at.After(w.now) {
		l := w.landings[0]
		w.landings = w.landings[1:]
		if outcome := w.apply(l.step, l.at); l.answers {
			w.answers = append(w.answers, answer{l.process, l.fence, outcome})
		}
	}
}

// record lets a worker record an answer, or lose it by dying.
func (w *world) record(which int, lost bool) {
	if len(w.answers) == 0 {
		return
	}
	which = max(which, 0) % len(w.answers)
	a := w.answers[which]
	w.answers = slices.Delete(w.answers, which, which+1)
	if lost {
		return
	}
	present := w.state.Phase == Claimed && w.state.Claim.Fence == a.fence
	share, now := w.share(), w.clock(a.process)
	rules := w.rulesOf(a.outcome.Step)
	events := w.state.Record(a.fence, a.outcome, now, share, rules)
	if got, want := verdictOf(events), refereeRecord(w.state, present, a.outcome, now, share, rules); got != want {
		w.fail(fmt.Sprintf("%+v comes to %+v, the referee says %+v", a.outcome, got, want))
	}
	if present && a.outcome.Class != Unknown {
		w.settled(a.fence)
	}
	if !present && a.outcome.Class == Created {
		w.counts["late receipt"]++
	}
	w.append(a.process, events...)
	if id := a.outcome.CRMID; id != "" && !w.keeps(a.outcome.Step, id) {
		w.fail("a receipt is dropped")
	}
}

func (w *world) keeps(step, id string) bool {
	if step == "" {
		return w.state.CRMID == id || slices.Contains(w.state.OtherCRMIDs, id)
	}
	m, _ := w.state.Has(step)
	return m.CRMID == id || slices.Contains(w.state.OtherCRMIDs, step+" "+id)
}

// settled notes proof that the claim's request had no effect.
func (w *world) settled(fence uint64) { delete(w.unproven, fence) }

func (w *world) expire(process int) {
	now := w.clock(process)
	if w.state.Phase == Claimed && !now.Before(w.state.ExpiresAt(w.policy)) {
		w.append(process, w.state.Expire(now, w.share(), w.rules())...)
	}
}

func (w *world) lookup(process int) {
	if w.state.Phase == NeedsReconciliation && !w.state.Human && w.rules().Capability.CanFind {
		w.append(process, w.state.Found(w.leads[w.state.Step], w.clock(process), w.rules())...)
	}
}

// operator acts honestly: what the CRM shows is what is said.
func (w *world) operator(process, act int) {
	g := Signature{By: "ann", Reason: "looked"}
	var events []Event
	made := w.leads[w.state.Step]
	switch {
	case act == 0 && len(made) > 0:
		events, _ = w.state.Resolve(w.state.Step, made[0], g)
	case act == 0:
		events, _ = w.state.ResolveAbsent(w.state.Step, w.clock(process), g, w.rules())
	case act == 1:
		events, _ = w.state.Discard(g)
	default:
		events, _ = w.state.Requeue(g)
	}
	w.append(process, events...)
}

func (w *world) deliver(process int) {
	if w.choose(2) == 0 {
		w.append(process, w.state.Repeat()...)
		return
	}
	fingerprint := strings.Repeat(fmt.Sprint(w.choose(4)), 64)
	u := Update{Bot: 7, ID: 42, Fingerprint: fingerprint}
	w.append(process, w.state.Conflict(u, u.VariantKey())...)
}
