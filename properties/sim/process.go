package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// process is one `leadonce serve`: a handler for deliveries, and workers with
// their agenda. When it dies, only the log is left, and perhaps a snapshot.
type process struct {
	w          *world
	number     int
	generation int
	skew       time.Duration
	name       string

	ctx      context.Context
	cancel   context.CancelFunc
	handle   eventlog.Log
	log      *log // the handle, with its faults
	engine   *engine.Engine
	agenda   *engine.Agenda
	handler  *telegram.Handler
	snapshot []byte
	turns    int
	told     uint64 // digest of what the CRM said, for the explorer

	circuit   circuit
	leftAlone time.Time // until when the CRM asked this process to wait
	asked     int       // calls of ports before it did: a turn that had begun goes on
}

// now is the time by the process's own clock.
func (p *process) now() time.Time { return p.w.now.Add(p.skew) }

// start begins a new life of the process, under another host's name.
func (p *process) start() {
	w := p.w
	p.generation++
	p.name = processNames[p.number][min(p.generation, len(processNames[0]))-1]
	p.leftAlone = time.Time{} // it is told in every answer
	p.circuit = circuit{}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.handle = w.parts.store.Handle(p.number)
	p.log = &log{p.handle, p}
	c := &clock{p}
	connector, err := p.connect()
	must(err)
	p.engine, err = engine.New(engine.Config{
		Log: p.log, CRM: connector, Clock: c, IDs: &w.ids, Observer: &observer{w},
		Plan: p.plan, Policy: w.policy(), Worker: p.name,
	})
	must(err)
	p.handler, err = telegram.New(telegram.Config{
		Bots: bots, Accepter: p.engine, AcceptTimeout: time.Hour, ProofTimeout: time.Hour,
	})
	must(err)
	p.agenda = engine.NewAgenda()
	if p.snapshot != nil {
		if p.agenda, err = engine.RestoreAgenda(context.Background(), w.store, p.snapshot); err != nil {
			w.breaks(true, SnapshotsHold, "%s: %v", p.name, err)
			p.agenda = engine.NewAgenda()
		}
	}
	if w.plan.Share {
		p.agenda.Share(p.name)
	}
	for i := range min(max(w.plan.Workers, 1), MaxWorkers) {
		a := &actor{name: p.name + workerNames[i], process: p, worker: true}
		w.spawn(a, func() { p.work(a) })
	}
}

var (
	bots        = []telegram.Bot{{ID: 7, Secrets: []string{"secret"}}, {ID: 8, Secrets: []string{"secret"}}}
	workerNames = [MaxWorkers]string{"/a", "/b"}

	processNames = func() (names [MaxProcesses][9]string) {
		for i := range names {
			for g := range names[i] {
				names[i][g] = fmt.Sprintf("p%d.%d", i+1, g+1)
			}
		}
		return names
	}()
)

// connect makes the process's connector: the one to the simulated CRM, or to one
// from outside.
func (p *process) connect() (crm.Connector, error) {
	if p.w.parts.crm != nil {
		return p.connectOutside()
	}
	described := p.limits().described
	if p.w.stepped {
		described = p.limits().inSteps[p.w.plan.Class]
	}
	c, err := restcrm.New(described, restcrm.Config{
		BaseURL: "http://crm", Class: p.w.plan.Class, Settle: settle, KeyValidity: keyValidity,
		Sender: &network{p}, Now: p.now, Sleep: p.turn,
	})
	if err != nil || !p.w.stepped {
		return &witnessed{c, p.w}, err
	}
	return p.inSteps(c), nil
}

// work is what the program's runner does with the engine and the agenda, one
// worker's share of it.
func (p *process) work(a *actor) {
	for {
		var stream string
		busy := false
		if p.sweep() {
			stream, busy = p.agenda.Next(p.now())
		}
		if !busy {
			if !a.pauses(point{port: idle}) {
				return
			}
			continue
		}
		a.fence, a.fenced, a.troubled, a.failures, a.receipts = 0, "", false, 0, a.receipts[:0]
		a.began = p.w.calls
		ctx := p.ctx
		turn := p.engine.Take(ctx, stream)
		p.w.turned(a, turn)
		for !p.sweep() { // the runner sweeps before it takes the job back
		}
		p.agenda.Conclude(turn)
		if p.turns++; p.w.plan.Snapshots && p.turns%2 == 0 {
			var err error
			p.snapshot, err = p.agenda.Snapshot()
			must(err)
		}
	}
}

// sweep reports whether the agenda could read the log.
func (p *process) sweep() bool {
	return p.agenda.Sweep(context.Background(), p.log, nil) == nil
}

// die ends everything of the process at once.
func (p *process) die() {
	w := p.w
	for _, a := range slices.Clone(w.actors) {
		if a.process == p {
			w.stop(a)
		}
	}
	p.cancel()
}

// crash is SIGKILL and a new start.
func (p *process) crash() {
	p.w.tell("%s dies", p.name)
	p.w.happen(Crashed)
	p.die()
	p.w.reopen(p.number)
	p.start()
}

// terminate is SIGTERM: requests are cut, what is in hand comes to its end, and
// another process starts.
func (p *process) terminate() {
	w := p.w
	w.tell("%s is terminated", p.name)
	w.happen(Terminated)
	p.cancel()
	for _, a := range slices.Clone(w.actors) {
		if a.process == p {
			w.finish(a)
		}
	}
	p.die()
	p.start()
}

// observer counts what the engine tells.
type observer struct{ w *world }

func (o *observer) Recorded(job.State, []job.Event) {}

func (o *observer) Called(_ job.State, r engine.Request, _ time.Duration, err *crm.Error) {
	o.w.cover.called(r, err)
}

func (o *observer) Troubled(string, error) {}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
