package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Player plays one plan after the other. It is not safe for concurrent use.
type Player struct {
	cover *Coverage
	stage stage
}

// NewPlayer is a player that adds to cover.
func NewPlayer(cover *Coverage) *Player { return &Player{cover, stage{kept: true}} }

// Play carries out the plan, heals the world, and judges.
func (p *Player) Play(plan Plan) *Violation {
	w := newWorld(plan, p.cover, nil, &p.stage)
	defer w.end()
	w.play()
	return w.broken
}

// Close ends what the player keeps between plans.
func (p *Player) Close() { p.stage.close() }

// Play carries out one plan, heals the world, and judges. It adds to cover, which
// may be shared by runs that follow each other.
func Play(p Plan, cover *Coverage) *Violation {
	player := NewPlayer(cover)
	defer player.Close()
	return player.Play(p)
}

func (w *world) play() {
	for _, s := range w.plan.Steps {
		if w.broken != nil {
			break
		}
		w.do(s)
	}
	w.conclude()
}

// conclude heals the world, judges what it comes to, and counts the run.
func (w *world) conclude() {
	if w.broken == nil {
		w.heal()
	}
	if w.broken == nil {
		w.judgeEnd()
	}
	w.cover.Runs++
	w.cover.Calls += w.calls
	w.cover.together(w.happened)
}

// do carries out one step.
func (w *world) do(s Step) {
	p := w.processes[index(s.A, len(w.processes))]
	switch s.Kind % kinds {
	case Deliver, Post:
		w.post(s)
	case Run:
		if a := w.actor(s.A); a != nil {
			w.run(a, index(s.N, 40), s.F)
		}
	case Until:
		if a := w.actor(s.A); a != nil {
			w.until(a, targets[index(s.N, len(targets))], s.F)
		}
	case Work:
		w.work(p)
	case Pass:
		w.passStep(s.N)
	case Crash:
		p.crash()
	case Terminate:
		p.terminate()
	case Land:
		w.crm.land(true)
		w.landAppends(true)
	case Operate:
		w.operate(s)
	case Copy:
		if v := w.job(s.A); v != nil && v.enquiry != nil && w.plan.Faults>>Copied&1 == 1 {
			list := w.crm.steps(v.enquiry.operation)
			w.crm.copyLead(list[index(s.N, len(list))])
		}
	case Future:
		w.fromFuture(s)
	}
}

func (w *world) actor(n int) *actor {
	if len(w.actors) == 0 {
		return nil
	}
	return w.actors[index(n, len(w.actors))]
}

func (w *world) job(n int) *view {
	if len(w.jobs) == 0 {
		return nil
	}
	return w.jobs[index(n, len(w.jobs))]
}

func (w *world) post(s Step) {
	if len(w.chats.enquiries) == 0 {
		return
	}
	e := w.chats.next(w.chats.enquiries[index(s.A, len(w.chats.enquiries))], w.now)
	switch {
	case e.acknowledged && w.plan.Faults>>Redelivered&1 == 0:
		return
	case e.expired(w.now):
		w.cover.hit(givenUpByTelegram)
		return
	}
	a := w.deliver(e, w.processes[index(s.N, len(w.processes))])
	if s.Kind == Deliver {
		if s.F > 0 {
			w.until(a, appending, s.F)
		}
		w.finish(a)
	}
}

// work lets the process's workers, one after the other, do what there is to do.
func (w *world) work(p *process) {
	for range reach {
		busy := false
		for _, a := range slices.Clone(w.actors) { // one that panics ends, and is no actor any more
			if a.process == p && a.worker && w.broken == nil {
				w.step(a, None) // an idle one looks again
				w.finish(a)
				busy = busy || p.due()
			}
		}
		if !busy || w.broken != nil {
			return
		}
	}
}

func (w *world) passStep(n int) {
	d := durations[index(n, len(durations))]
	if d == 0 {
		for _, p := range w.processes {
			if at, ok := p.agenda.NextDue(); ok {
				if wait := at.Sub(p.now()); wait > 0 && (d == 0 || wait < d) {
					d = wait
				}
			}
		}
	}
	w.pass(d)
}

// due reports whether the process has a job to take.
func (p *process) due() bool {
	at, ok := p.agenda.NextDue()
	return ok && !at.After(p.now())
}

// fromFuture is a process of a newer release, which writes what this one does not
// know.
func (w *world) fromFuture(s Step) {
	v := w.job(s.A)
	if v == nil || w.plan.Faults>>FromFuture&1 == 0 {
		return
	}
	w.happen(FromFuture)
	event := eventlog.Proposed{ID: w.ids.New(), Type: "FromTheFuture.v9", Time: w.now, Data: []byte("{}")}
	// A log from outside may refuse it: then nothing came from the future.
	_, _ = w.append(context.Background(), nil, true, v.stream, eventlog.Any, []eventlog.Proposed{event})
}

// Hash is the digest of everything that a run of the plan leaves in the log, byte
// for byte, and in the CRM.
func Hash(p Plan) [sha256.Size]byte {
	w := newWorld(p, &Coverage{}, nil, &stage{})
	defer w.end()
	w.play()
	h := sha256.New()
	for r, err := range w.store.ReadAll(context.Background(), eventlog.Start) {
		must(err)
		digest(h, r)
	}
	for _, e := range w.chats.enquiries {
		for _, o := range w.crm.steps(e.operation) {
			for _, l := range o.leads {
				h.Write([]byte(l.id + l.at.String()))
			}
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func digest(h hash.Hash, r eventlog.Recorded) {
	h.Write([]byte(r.Stream))
	h.Write(r.ID[:])
	h.Write([]byte(r.Type))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(r.Time.UnixNano())))
	h.Write(r.Data)
}
