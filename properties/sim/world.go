package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// The policy of every run. The numbers are small, so that time passes quickly.
const (
	retryFirst  = time.Second
	retryMax    = time.Minute
	lease       = 30 * time.Second
	callTimeout = 10 * time.Second
	clockSkew   = 30 * time.Second
	settle      = 20 * time.Second
	indexLag    = 5 * time.Second
	keyValidity = 10 * time.Minute
)

var noon = time.Date(2026, 6, 11, 12, 0, 0, 0, time.UTC)

// world is one log, one CRM, one Telegram and one time, and all that acts in
// them. Nothing in it runs by itself: step is the scheduler's.
type world struct {
	plan    Plan
	stepped bool      // a lead takes several steps
	now     time.Time // the true time
	parts   parts
	store   eventlog.Log // the judge's handle
	late    []lateAppend
	landing *lateAppend // that is recorded at this moment
	crm     *simulatedCRM
	chats   *telegramSide
	ids     ids

	stage     *stage
	processes []*process
	actors    []*actor // workers first, then who is alive of the others
	current   *actor
	next      Fault // of the call at which current stands

	jobs     []*view // in the order of their acceptance
	byStream map[string]*view
	cover    *Coverage
	happened uint64 // bit per fault
	calls    int    // of ports
	story    func(string)
	broken   *Violation

	digests        bool // follow what everyone knows, for the explorer
	recordedEvents int
	logHash        uint64
}

// Violation is a promise that was not kept.
type Violation struct {
	Property Property `json:"property"`
	What     string   `json:"what"`
}

func (v *Violation) Error() string { return string(v.Property) + ": " + v.What }

func newWorld(p Plan, cover *Coverage, story func(string), on *stage) *world {
	w := &world{
		plan: p, stage: on, cover: cover, story: story, now: noon, parts: partsOf(p.Parts), ids: ids{steady: p.Steady},
		byStream: make(map[string]*view, len(p.Updates)),
	}
	w.store = w.parts.store.Handle(0)
	w.stepped = p.Stepped && w.parts.crm == nil
	w.crm = newSimulatedCRM(w, p)
	w.chats = newTelegram(w.parts.people, p.Updates, p.Refused)
	for _, e := range w.chats.enquiries {
		if e.refused && !e.own {
			w.crm.refuse(e.operation)
		}
	}
	for i := range min(max(p.Processes, 1), MaxProcesses) {
		var skew time.Duration
		if i < len(p.Clocks) {
			skew = skews[index(p.Clocks[i], len(skews))]
		}
		if skew != 0 {
			w.happen(Skewed)
		}
		w.processes = append(w.processes, &process{w: w, number: i, skew: skew})
	}
	for _, p := range w.processes {
		p.start()
	}
	return w
}

// end stops every actor.
func (w *world) end() {
	for len(w.actors) > 0 {
		w.stop(w.actors[0])
	}
	if !w.stage.kept {
		w.stage.close()
	}
	w.parts.close()
}

// breaks notes the first promise that is not kept.
func (w *world) breaks(when bool, p Property, format string, args ...any) {
	if when && w.broken == nil {
		w.broken = &Violation{p, fmt.Sprintf(format, args...)}
		w.tell("!!! %s", w.broken)
	}
}

func (w *world) tell(format string, args ...any) {
	if w.story != nil {
		w.story(fmt.Sprintf(format, args...))
	}
}

func (w *world) happen(f Fault) { w.happened |= 1 << f }

// pass lets time go by, and what is late by then arrive at its moment.
func (w *world) pass(d time.Duration) {
	if d <= 0 {
		return
	}
	w.now = w.now.Add(d)
	w.tell("%s pass; it is %s", d, w.now.Format(time.TimeOnly))
	w.crm.land(false)
	w.landAppends(false)
}

// index is n modulo size, for any n.
func index(n, size int) int {
	if n %= size; n < 0 {
		n += size
	}
	return n
}

func (w *world) policy() job.Policy {
	return job.Policy{
		MaxAttempts: max(w.plan.Attempts, 1), RetryFirst: retryFirst, RetryMax: retryMax,
		Lease: lease, CallTimeout: callTimeout, ClockSkew: clockSkew,
	}
}

// clock is one process's view of the time.
type clock struct{ p *process }

func (c *clock) Now() time.Time {
	c.p.w.await(point{port: now})
	return c.p.now()
}

// Sleep lets the others go on. Whoever wakes it up lets the time pass.
func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	w := c.p.w
	until := w.now.Add(d)
	w.await(point{port: sleeping})
	if err := ctx.Err(); err != nil {
		return err
	}
	w.pass(until.Sub(w.now))
	return nil
}
