package sim

import (
	"slices"
	"time"
)

// execution is one run of the explorer: it decides who goes on when nothing is
// disturbed.
type execution struct {
	w       *world
	running *actor
	yielded []*actor // until the others have nothing to do at this time
	stalled []*actor // until nothing happens any more
}

// pick is the actor that goes on: the one that ran, else a delivery, else a worker
// with something to do, else one that had yielded. When nobody is left, Telegram
// delivers what it has no answer for, or time passes; then the stalled go on. It is
// nil when the world is quiet.
func (e *execution) pick() *actor {
	w := e.w
	for range executionCalls {
		if e.running != nil && e.busy(e.running) {
			return e.running
		}
		for _, parked := range []bool{false, true} {
			for _, workers := range []bool{false, true} {
				for _, a := range w.actors {
					if a.worker == workers && e.busy(a) && (!slices.Contains(e.yielded, a) || parked) && !slices.Contains(e.stalled, a) {
						e.yielded = without(e.yielded, a)
						e.running = a
						return a
					}
				}
			}
		}
		if e.deliver(false) {
			continue
		}
		if wait, ok := w.wait(func(p *process) bool { return !e.stands(p) }); ok && !w.quiet() {
			w.pass(wait)
			continue
		}
		if len(e.stalled) == 0 {
			return nil
		}
		e.running, e.stalled = e.stalled[0], e.stalled[1:]
	}
	w.breaks(true, Ends, "nobody has anything to do, and time passes for ever")
	return nil
}

// busy reports whether the actor has a call to make: a worker without a job only
// when its process has not seen all of the log, or a job is due.
func (e *execution) busy(a *actor) bool {
	switch a.at.port {
	case ended:
		return false
	case idle:
		return a.process.due() || a.process.behind()
	default:
		return true
	}
}

// behind reports whether the log has something that the process has not seen.
func (p *process) behind() bool {
	c := p.agenda.Checkpoint().Position
	n, _ := c.Parts()
	return n < uint64(p.w.recordedEvents)
}

// stands reports whether the process's worker is stalled.
func (e *execution) stands(p *process) bool {
	return slices.ContainsFunc(e.stalled, func(a *actor) bool { return a.process == p && a.worker })
}

// deliver lets Telegram send the first update that it has no answer for, and that
// is not on its way; or, once more, the first of all.
func (e *execution) deliver(once bool) bool {
	w := e.w
	for _, q := range w.chats.enquiries {
		under := slices.ContainsFunc(w.actors, func(a *actor) bool { return a.enquiry == q && !slices.Contains(e.stalled, a) })
		if once || !q.acknowledged && !under && !q.expired(w.now) {
			e.running = w.deliver(w.chats.next(q, w.now), w.processes[q.deliveries%len(w.processes)])
			return true
		}
	}
	return false
}

func without(list []*actor, a *actor) []*actor {
	if i := slices.Index(list, a); i >= 0 {
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	return list
}

// suffer lets the trouble come to the actor that was about to go on.
func (e *execution) suffer(a *actor, t Trouble) {
	w := e.w
	switch t.Kind {
	case Faulty:
		w.step(a, t.F)
	case Dies:
		a.process.crash()
		e.running = nil
	case Yields:
		w.tell("%s lets others go first", a.name)
		e.yielded, e.running = append(e.yielded, a), nil
	case Stalls:
		w.tell("%s stands still", a.name)
		e.stalled, e.running = append(e.stalled, a), nil
	case Jumps:
		w.pass(durations[t.D])
	case Again:
		e.deliver(true)
	case Lands:
		w.crm.land(true)
		w.landAppends(true)
	}
}

// state is a digest of all that the future depends on: what is recorded, what the
// CRM has, what is on its way, the time, and what each actor has been told. Event
// ids are left out: they are unique, and nothing else about them matters.
func (e *execution) state(shared bool) uint64 {
	w := e.w
	h := digestOf(uint64(w.now.UnixNano()), w.crm.digest(), uint64(len(w.late)))
	for _, l := range w.late {
		r, _ := l.expected.Revision()
		h = mix(h, uint64(l.by.UnixNano()), hashOf(l.stream), r, truth(l.expected.IsAny()), hashOfEvent(l.events[0].Type, l.events[0].Time, l.events[0].Data))
	}
	for _, q := range w.chats.enquiries {
		h = mix(h, uint64(q.deliveries), truth(q.acknowledged), uint64(q.first.UnixNano()))
	}
	for _, v := range w.byStream {
		judged := mix(uint64(v.requests), uint64(v.tries), uint64(v.claim.request), truth(v.lapsed), uint64(v.claim.until.UnixNano()))
		h += mix(v.hash, uint64(v.seen), judged) // the map has no order
	}
	for _, p := range w.processes {
		due, _ := p.agenda.NextDue()
		n, _ := p.agenda.Checkpoint().Position.Parts()
		b := p.agenda.Backlog()
		h = mix(h, p.told, uint64(p.circuit.failures), uint64(p.circuit.until.UnixNano()), uint64(p.leftAlone.UnixNano()), uint64(p.generation), uint64(due.UnixNano()), n, uint64(b.Open), uint64(b.Human))
	}
	for _, a := range w.actors {
		if a.at.port == idle && !shared {
			a.history = 0 // what it knows is in the agenda
		}
		h = mix(h, a.history, hashOf(a.name), uint64(a.asked.UnixNano()), uint64(a.at.port), hashOf(a.at.what), truth(a == e.running),
			truth(slices.Contains(e.yielded, a)), truth(slices.Contains(e.stalled, a)), truth(a.troubled))
	}
	return h
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// learn adds to what the actor has been told: the call that it makes now, what
// happens to it, and all that its answer depends on.
func (w *world) learn(a *actor, f Fault) {
	h := mix(a.history, uint64(a.at.port), uint64(f))
	switch a.at.port {
	case appending, reading:
		if v := w.byStream[a.at.what]; v != nil {
			h = mix(h, v.hash, uint64(v.seen))
		}
	case sweeping:
		h = mix(h, uint64(w.recordedEvents), w.logHash)
	case creating, finding:
		h = mix(h, w.crm.digest(), uint64(w.now.UnixNano()))
		a.process.told = mix(a.process.told, uint64(f), uint64(w.now.UnixNano()))
	case created, found, now:
		// What a process makes of an answer, and how long it leaves the CRM alone then,
		// depends on when its worker goes on.
		h = mix(h, uint64(w.now.UnixNano()))
		if answer := a.at.port != now; answer || a.informed {
			a.process.told = mix(a.process.told, uint64(a.at.port), uint64(f), uint64(w.now.UnixNano()))
		}
		a.informed = a.at.port != now
	default:
		h = mix(h, uint64(w.now.UnixNano()))
	}
	a.history = h
}

// digest is of what the CRM has and will have.
func (c *simulatedCRM) digest() uint64 {
	h := digestOf(uint64(len(c.late)))
	for _, l := range c.late {
		h = mix(h, uint64(l.by.UnixNano()))
	}
	for _, o := range c.ops {
		each := mix(hashOf(o.id), uint64(o.keyAt.UnixNano()), hashOf(o.keyLead))
		for _, l := range o.leads {
			each = mix(each, uint64(l.at.UnixNano()))
		}
		for _, r := range o.requests {
			each = mix(each, uint64(r.deadline.UnixNano()), uint64(r.at.UnixNano()), truth(r.proof), truth(r.answered), truth(r.absent))
		}
		h += each // the map has no order
	}
	return h
}

// mix is a running digest (FNV-1a over words, and a shift to spread the high bits).
func mix(h uint64, words ...uint64) uint64 {
	for _, x := range words {
		h = (h ^ x) * 0x100000001b3
		h ^= h >> 29
		h *= 0xbf58476d1ce4e5b9
	}
	return h
}

func digestOf(words ...uint64) uint64 { return mix(0xcbf29ce484222325, words...) }

func hashOf(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return h
}

func hashOfEvent(typ string, at time.Time, data []byte) uint64 {
	h := mix(hashOf(typ), uint64(at.UnixNano()))
	for _, b := range data {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return h
}
