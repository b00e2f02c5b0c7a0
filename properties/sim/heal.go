package sim

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/job"
)

// healCalls and healTime bound what a healed world may need until it is quiet.
const (
	healCalls = 2_000
	healTime  = 10 * 24 * time.Hour
)

// heal ends all faults, and lets everything come to its end. What the CRM refuses
// for ever, and what a newer release wrote, stays. A process in two goes on only
// when the others are through, as one that was stopped for long.
func (w *world) heal() {
	w.tell("the world is healed")
	w.digests = false
	w.goOn(func(p *process) bool { return p.number%2 == 0 })
	w.goOn(func(*process) bool { return true })
	for range 4 * len(leadSteps) { // the operators do their part
		w.pass(time.Hour)
		if !w.answerQuestions() || w.broken != nil {
			break
		}
		w.goOn(func(*process) bool { return true })
	}
}

// goOn lets those processes come to where nothing is due any more.
func (w *world) goOn(alive func(*process) bool) {
	limit, end := w.calls+healCalls, w.now.Add(healTime)
	w.finishAll(alive) // before Telegram sends again what they may have lost
	w.redeliver(alive)
	for w.broken == nil {
		w.finishAll(alive)
		w.settleDown(alive)
		wait, ok := w.wait(alive)
		if !ok || w.quiet() {
			break
		}
		w.pass(wait)
		w.breaks(w.calls > limit || w.now.After(end), Ends, "no end in sight after %d calls; it is %s", w.calls, w.now)
	}
	w.settleDown(alive)
}

// finishAll lets the deliveries and the operators of those processes come to their end.
func (w *world) finishAll(alive func(*process) bool) {
	for _, a := range slices.Clone(w.actors) {
		if alive(a.process) && !a.worker {
			w.finish(a)
		}
	}
}

// quiet reports whether nothing is under way, and every job is final or before a
// human, or waits for a release that can read what this one cannot.
func (w *world) quiet() bool {
	for _, v := range w.jobs {
		if !v.state.Phase.Final() && !w.unread(v) && !w.asks(v) {
			return false
		}
	}
	return len(w.crm.late) == 0 && len(w.late) == 0
}

// unread reports whether the job, or one that it shares its operation with, has
// an event of a newer release.
func (w *world) unread(v *view) bool {
	return v.stopped || v.enquiry != nil && w.any(v.enquiry.operation, func(v *view) bool { return v.stopped })
}

// asks reports whether the job, or one that it shares its operation with, stands
// before a human.
func (w *world) asks(v *view) bool {
	return v.state.Human || v.enquiry != nil && w.any(v.enquiry.operation, func(v *view) bool { return v.state.Human })
}

// settleDown lets the workers do what is due now.
func (w *world) settleDown(alive func(*process) bool) {
	for limit := w.calls + healCalls; w.calls < limit; {
		busy := false
		for _, p := range w.processes {
			if alive(p) && w.broken == nil && w.hasWork(p) {
				w.work(p)
				busy = busy || p.due()
			}
		}
		if !busy || w.broken != nil {
			return
		}
	}
}

// hasWork reports whether a worker of the process would find something to do: a job
// in hand, one that is due, or news in the log.
func (w *world) hasWork(p *process) bool {
	for _, a := range w.actors {
		if a.process == p && a.worker && a.at.port != idle {
			return true
		}
	}
	return p.due() || p.behind()
}

// wait is how long until something is due, or arrives.
func (w *world) wait(alive func(*process) bool) (d time.Duration, ok bool) {
	sooner := func(at time.Duration) {
		if at = max(at, time.Millisecond); !ok || at < d {
			d, ok = at, true
		}
	}
	for _, p := range w.processes {
		if at, due := p.agenda.NextDue(); due && alive(p) {
			sooner(at.Sub(p.now()))
		}
	}
	for _, l := range w.crm.late {
		sooner(l.by.Sub(w.now))
	}
	for _, l := range w.late {
		sooner(l.by.Sub(w.now))
	}
	return d, ok
}

// redeliver is Telegram, which sends what it has no 2xx for until it has one.
func (w *world) redeliver(alive func(*process) bool) {
	for _, e := range w.chats.enquiries {
		for i := 0; !e.acknowledged && !e.expired(w.now) && w.broken == nil; i++ {
			p := w.processes[i%len(w.processes)]
			if !alive(p) {
				continue
			}
			w.finish(w.deliver(w.chats.next(e, w.now), p))
			w.breaks(i > 20, StoredIsAnswered, "%s is never answered 2xx", e.label())
		}
	}
}

// answerQuestions lets an honest operator answer what waits for one, and give up the
// rest of a lead that the CRM refuses. It reports whether there was a question.
func (w *world) answerQuestions() bool {
	asked := false
	for _, v := range w.jobs {
		if !v.state.Human || v.state.Phase != job.NeedsReconciliation || w.unread(v) || w.broken != nil {
			continue
		}
		asked = true
		act := resolves
		if _, made := v.has(job.LeadStep); made && w.crm.refused[w.at(v).id] {
			act = discards
		}
		w.finish(w.operator(v, act))
		w.breaks(v.state.Human, Ends, "the operator's right answer on %s is refused: %s", v.stream, v.state.LastError)
	}
	return asked
}

// judgeEnd judges what a healed and quiet world has come to.
func (w *world) judgeEnd() {
	defer func() { // here the engine's code runs outside of every actor
		if p := recover(); p != nil {
			w.breaks(true, NoPanic, "%v", p)
		}
	}()
	for _, e := range w.chats.enquiries {
		w.breaks(!w.stored(e) && !e.expired(w.now), NothingDiscarded, "%s is in no stream", e.label())
	}
	for _, v := range w.jobs {
		if v.enquiry == nil || w.unread(v) {
			continue
		}
		w.inspect(w.crm.op(v.enquiry.operation))
		w.breaks(!v.state.Phase.Final(), Ends, "%s never ends: it is in %s: %s", v.stream, v.state.Phase, v.state.LastError)
		w.judgeVerdict(v)
	}
	if w.broken == nil {
		w.judgeFold()
	}
	if w.broken == nil {
		w.judgeReplay()
	}
}

// judgeVerdict demands the ending that the CRM's answers and the people's acts
// allow.
func (w *world) judgeVerdict(v *view) {
	o := w.crm.op(v.enquiry.operation) // the lead's own, also where it takes several steps
	switch {
	case v.discarded:
	case v.enquiry.wish == nothing:
		w.breaks(v.state.Phase != job.Done || v.state.Attempts > 0, VerdictIsRight, "%s asks for nothing and ends in %s", v.stream, v.state.Phase)
	case v.enquiry.wish == unreadable:
		w.breaks(v.state.Phase != job.DeadLetter, VerdictIsRight, "%s cannot be read and ends in %s", v.stream, v.state.Phase)
	case v.state.Phase == job.Done && !w.careless(o.of):
		given := w.any(o.of, func(v *view) bool { return v.givenUp })
		for _, step := range w.crm.steps(o.of) {
			if given && step.place > o.place {
				continue
			}
			w.breaks(len(step.made()) == 0, DoneIfAnswered, "%s is done, and there is no %s", v.stream, step.makes())
			w.breaks(w.crm.refused[step.id], VerdictIsRight, "%s is done, and the CRM refuses it", v.stream)
		}
	case v.state.Phase == job.DeadLetter:
		w.breaks(!w.mayGiveUp(v), DoneIfAnswered, "%s is a dead letter without need: %s", v.stream, v.state.LastError)
	}
	for _, r := range o.requests {
		w.breaks(r.answered && r.stream == v.stream && v.state.Phase == job.DeadLetter && !w.discarded(o.of), DoneIfAnswered, "%s is a dead letter, and the CRM answered with its lead", v.stream)
	}
}

// mayGiveUp reports whether a dead letter is the right end.
func (w *world) mayGiveUp(v *view) bool {
	return w.at(v).refusals || v.tries >= w.plan.Attempts || w.discarded(v.enquiry.operation) || w.blocked(v)
}

// careless reports whether an operator gave a wrong answer about the operation.
func (w *world) careless(operation string) bool {
	return w.any(operation, func(v *view) bool { return v.careless })
}

func (w *world) discarded(operation string) bool {
	return w.any(operation, func(v *view) bool { return v.discarded })
}

func (w *world) any(operation string, is func(*view) bool) bool {
	for _, v := range w.jobs {
		if v.enquiry != nil && v.enquiry.operation == operation && is(v) {
			return true
		}
	}
	return false
}

// judgeFold compares the state as the engine reads it with the one that was
// followed event by event, of one job: another one in another run.
func (w *world) judgeFold() {
	if v := w.job(w.calls); v != nil {
		read, err := engine.Load(context.Background(), w.store, v.stream)
		if v.stopped {
			w.breaks(!engine.IsStopped(err), FoldIsTheState, "%s has an unknown event and is read: %v", v.stream, err)
			return
		}
		w.breaks(err != nil || !reflect.DeepEqual(read, v.state), FoldIsTheState, "%s is read as %+v, and was followed to %+v (%v)", v.stream, read, v.state, err)
	}
}

// judgeReplay starts a process that has only the log: it finds nothing to do, and
// one more delivery of everything adds nothing but a note.
func (w *world) judgeReplay() {
	fresh := engine.NewAgenda()
	if err := fresh.Sweep(context.Background(), w.store, nil); err != nil {
		w.breaks(true, AgendaIsComplete, "a new agenda cannot read the log: %v", err)
		return
	}
	backlog := fresh.Backlog()
	for _, v := range w.jobs {
		if w.unread(v) && !v.stopped && !v.state.Phase.Final() {
			return // it is still to be done
		}
	}
	w.breaks(backlog.Open+backlog.Human > 0, AgendaIsComplete, "a new agenda has %+v, and every job is final", backlog)
	before := make([]int, len(w.jobs))
	for i, v := range w.jobs {
		before[i] = len(v.events)
	}
	for _, e := range w.chats.enquiries {
		if !w.stored(e) {
			continue // Telegram has given it up
		}
		e.acknowledged = false
		w.finish(w.deliver(e, w.processes[0]))
		w.breaks(!e.acknowledged, StoredIsAnswered, "%s is stored, and its next delivery is not answered 2xx", e.label())
	}
	w.work(w.processes[0])
	for i, v := range w.jobs {
		if v.stopped || i >= len(before) {
			continue
		}
		for _, event := range v.events[before[i]:] {
			_, repeated := event.(job.DeliveryRepeated)
			_, conflicted := event.(job.KeyConflicted)
			w.breaks(!repeated && !conflicted, ReplayIsIdle, "a delivery of what is known records %s on %s", event.Name(), v.stream)
		}
	}
	w.breaks(len(w.jobs) > len(before), AcceptedOnce, "a delivery of what is known makes a job")
}
