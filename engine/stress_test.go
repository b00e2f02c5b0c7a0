package engine_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

const (
	stressSpeed   = 1000 // fake seconds a second
	stressJobs    = 300
	stressEngines = 4
	stressWorkers = 4 // an engine
)

// storm is a world of real goroutines under random faults, until it is healed.
type storm struct {
	*world
	random *rand.Rand
	mu     sync.Mutex
	healed atomic.Bool
	killed atomic.Int64
}

// weather is the interposition: 30 % of the requests and some of the log's calls
// fail, and now and then a process dies.
func (s *storm) weather(point string) fault {
	if s.healed.Load() || point == "now" || point == "sleep" {
		return none
	}
	s.mu.Lock()
	chance, which := s.random.IntN(100), s.random.IntN(100)
	s.mu.Unlock()
	mortal := point == "create" || point == "created" || strings.HasSuffix(point, " JobClaimed")
	limit := 8
	if point == "create" || point == "find" {
		limit = 30
	}
	switch possible := faultsAt(point); {
	case mortal && chance == 99:
		s.killed.Add(1)
		panic(killed{})
	case chance < limit:
		return possible[which%len(possible)]
	}
	return none
}

// killed is the panic by which a process dies.
type killed struct{}

// process is an engine with its workers, and the agenda they share.
type process struct {
	*storm
	engine *engine.Engine
	mu     sync.Mutex
	agenda *engine.Agenda
}

// work takes due jobs until ctx ends.
func (p *process) work(ctx context.Context) {
	clock := &clock{w: p.world}
	for ctx.Err() == nil {
		p.mu.Lock()
		a := p.agenda
		_ = a.Sweep(ctx, p.store, nil)
		stream, ok := a.Next(p.time.Now())
		p.mu.Unlock()
		if !ok {
			_ = clock.Sleep(ctx, time.Second)
			continue
		}
		verdict := p.advance(ctx, stream)
		p.mu.Lock()
		_ = a.Sweep(ctx, p.store, nil)
		a.Done(stream, verdict)
		p.mu.Unlock()
	}
}

// advance survives the death of the process, which forgets all it knew.
func (p *process) advance(ctx context.Context, stream string) (v engine.Verdict) {
	defer func() {
		if dead := recover(); dead == any(killed{}) {
			p.mu.Lock()
			p.agenda = engine.NewAgenda()
			p.mu.Unlock()
		} else if dead != nil {
			panic(dead)
		}
	}()
	v, err := p.engine.Advance(context.WithoutCancel(ctx), stream)
	if err != nil {
		v = engine.Verdict{Schedule: job.DueAt, At: p.time.Now().Add(time.Second), Revision: 1 << 60}
	}
	return v
}

// operators resolve honestly what is in front of them, until all jobs are final.
func (s *storm) operators(t *testing.T, updates []job.Update) {
	clock, console := &clock{w: s.world}, s.engine("console", 0)
	for open := 1; open > 0; {
		if t.Context().Err() != nil {
			return
		}
		open = 0
		_ = clock.Sleep(t.Context(), 10*time.Second)
		for _, u := range updates {
			state := s.state(t, u.Key())
			if !state.Phase.Final() {
				open++
			}
			if state.Human {
				s.wantAmbiguous(t, u.Key(), state)
				if lead := s.crm.effects(state.OperationID); len(lead) > 0 {
					_, _ = console.Resolve(t.Context(), u.Key(), "", lead[0], operator)
				} else {
					_, _ = console.ResolveAbsent(t.Context(), u.Key(), "", operator)
				}
			}
		}
	}
}

func (s *storm) wantAmbiguous(t *testing.T, key job.Key, state job.State) {
	s.crm.mu.Lock()
	sent := s.crm.open[state.OperationID]
	s.crm.mu.Unlock()
	for r := range s.store.ReadStream(t.Context(), key.Stream(), 0) {
		if sent > 0 || strings.Contains(string(r.Data), "expired") {
			return
		}
	}
	t.Errorf("%s needs reconciliation, but nothing was ambiguous: %v", key, s.history(key.Stream()))
}

func TestStress(t *testing.T) {
	for _, class := range crm.Classes {
		t.Run(string(class), func(t *testing.T) { stress(t, class) })
	}
}

func stress(t *testing.T, class crm.Class) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &storm{world: newWorld(class), random: rand.New(rand.NewPCG(seed, 0))}
	s.time.speed, s.time.began = stressSpeed, time.Now()
	s.policy.RetryMax = 10 * time.Second
	s.interpose = s.weather
	var updates []job.Update
	for i := range stressJobs {
		if i%3 == 0 {
			updates = append(updates, press(i, string(rune('a'+i/15)))) // five of each
		} else {
			updates = append(updates, message(i, "hello"))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range stressEngines {
		skew := time.Duration(i) * patient.ClockSkew / stressEngines
		p := &process{storm: s, engine: s.engine(string(rune('a'+i)), skew), agenda: engine.NewAgenda()}
		for range stressWorkers {
			workers.Go(func() { p.work(ctx) })
		}
	}
	ingress := s.engine("ingress", 0)
	for round := range 3 { // every update is delivered until it is accepted, and twice more
		for _, u := range updates {
			for {
				if _, _, err := ingress.Accept(ctx, u); err == nil || round > 0 {
					break
				}
			}
		}
	}
	_ = (&clock{w: s.world}).Sleep(ctx, 10*time.Minute)
	s.healed.Store(true)
	s.operators(t, updates)
	stop()
	workers.Wait()
	s.judge(t, updates)
}

func (s *storm) judge(t *testing.T, updates []job.Update) {
	known := map[string]bool{}
	for r, err := range s.store.ReadAll(context.Background(), eventlog.Start) {
		e, decodeErr := job.Decode(r.Type, r.Data)
		if err != nil || decodeErr != nil {
			t.Fatal(err, decodeErr)
		}
		switch e := e.(type) {
		case job.LeadConfirmed:
			known[e.CRMID] = true
		case job.ReceiptConflicted:
			known[e.CRMID] = true
			t.Errorf("%s: lead %s beside %q: %v", r.Stream, e.CRMID, e.Confirmed, s.history(r.Stream))
		}
	}
	for id, operation := range s.crm.handed {
		if !known[id] {
			t.Errorf("lead %s of operation %s was told to a worker and is not in the log", id, operation)
		}
	}
	phases := map[job.Phase]int{}
	for _, u := range updates {
		state, leads := s.state(t, u.Key()), s.crm.effects(operationOf(u))
		phases[state.Phase]++
		if len(leads) > 1 || state.CRMID != "" && !slices.Contains(leads, state.CRMID) {
			t.Errorf("%s is in %s with %q, the leads are %v: %v", u.Key(), state.Phase, state.CRMID, leads, s.history(u.Key().Stream()))
		}
	}
	t.Logf("%v, %d requests of %d operations, %d deaths", phases, len(s.seen.called), len(s.crm.requests), s.killed.Load())
}
