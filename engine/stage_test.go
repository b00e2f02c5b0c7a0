package engine_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// stage runs processes as coroutines that stop at each port call, so that any
// other may go on from there, time may pass, or the process die.
type stage struct {
	*world
	engines []*engine.Engine
	updates []job.Update
	keys    []job.Key
	actors  []*actor // alive, in the order of their start
	current *actor
	next    fault // of the call at which current stands

	troubled bool // an answer of the log was lost, or a process died
	broken   string
}

// actor is one call into the engine by one process.
type actor struct {
	name, stream string
	yield        func(string) bool
	resume       func() (string, bool)
	stop         func()
	at           string   // the point where it stands
	receipts     []string // that the CRM gave it
	fences       []uint64 // of the claims it made
	stopped      bool     // by an event that it cannot decode, or an ended context
}

type killed struct{}

func newStage(class crm.Class, skews []time.Duration) *stage {
	s := &stage{world: newWorld(class)}
	for i, skew := range skews {
		s.engines = append(s.engines, s.engine(fmt.Sprintf("worker-%d", i), skew))
	}
	s.updates = []job.Update{press(1, "buy"), press(2, "buy"), message(3, "hello")}
	for _, u := range s.updates {
		key, _, err := s.engines[0].Accept(context.Background(), u)
		s.breaks(err != nil, "accept: %v", err)
		s.keys = append(s.keys, key)
	}
	s.interpose = s.point
	s.crm.onReceipt = func(id string) {
		if s.current != nil {
			s.current.receipts = append(s.current.receipts, id)
		}
	}
	return s
}

func (s *stage) breaks(when bool, format string, args ...any) {
	if when && s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
	}
}

// point is where the current actor stops, and goes on with the next fault.
func (s *stage) point(point string) fault {
	a := s.current
	if a == nil {
		return none
	}
	if point == "appended JobClaimed" {
		a.fences = append(a.fences, uint64(len(s.history(a.stream)))-1)
	}
	if point != "sleep" && !a.yield(point) {
		panic(killed{})
	}
	f := s.next
	s.next = none
	if f != none && point != "create" && point != "find" {
		s.troubled = true
	}
	return f
}

// start lets a process begin, up to its first port call.
func (s *stage) start(name, stream string, body func() error) {
	a := &actor{name: name, stream: stream}
	a.resume, a.stop = iter.Pull(func(yield func(string) bool) {
		defer func() {
			if p := recover(); p != nil && p != any(killed{}) {
				s.breaks(true, "%s panics: %v", name, p)
			}
		}()
		a.yield = yield
		err := body()
		a.stopped = engine.IsStopped(err)
		s.finished(a)
	})
	s.actors = append(s.actors, a)
	s.step(a, none)
}

// step takes the actor from one port call to the next.
func (s *stage) step(a *actor, f fault) {
	s.current, s.next = a, f
	at, alive := a.resume()
	s.current, s.next, a.at = nil, none, at
	if !alive {
		s.actors = slices.DeleteFunc(s.actors, func(b *actor) bool { return a == b })
	}
}

func (s *stage) kill(a *actor) {
	s.troubled = true
	s.current = a
	a.stop()
	s.current = nil
	s.actors = slices.DeleteFunc(s.actors, func(b *actor) bool { return a == b })
}

// finished judges what a process leaves behind that came to its end.
func (s *stage) finished(a *actor) {
	left, err := engine.Load(context.Background(), s.store, a.stream)
	if err != nil || a.stopped {
		return
	}
	for _, id := range a.receipts {
		s.breaks(left.CRMID != id && !slices.Contains(left.OtherCRMIDs, id), "%s: the receipt %s is lost: %v", a.name, id, s.history(a.stream))
	}
	claimed := left.Phase == job.Claimed && slices.Contains(a.fences, left.Claim.Fence)
	s.breaks(claimed && !s.troubled, "%s: left its claim behind: %v", a.name, s.history(a.stream))
}

// faultsAt are what can happen at a point.
func faultsAt(point string) []fault {
	switch {
	case strings.HasPrefix(point, "append "):
		return []fault{down, lostBefore, lostAfter}
	case point == "read":
		return []fault{down, cut}
	case point == "create":
		return []fault{down, lostBefore, lostAfter, lateEffect, limited, refused, withoutID, unspecified}
	case point == "find":
		return []fault{down, limited}
	default:
		return []fault{none}
	}
}

// act is one step of a plan. Each is possible in every situation.
type act struct {
	Kind    string // run, advance, deliver, operate, pass, land, kill
	A, N, F int
	Whole   bool // what it starts runs to its end at once
}

var passes = []time.Duration{time.Second, 5 * time.Second, 11 * time.Second, 31 * time.Second, 61 * time.Second, 3 * time.Minute, 11 * time.Minute}

func (s *stage) do(x act) {
	var a *actor
	if len(s.actors) > 0 {
		a = s.actors[x.A%len(s.actors)]
	}
	key := s.keys[x.N%len(s.keys)]
	e := s.engines[x.A%len(s.engines)]
	switch x.Kind {
	case "advance":
		s.start(fmt.Sprintf("worker-%d on %s", x.A%len(s.engines), key), key.Stream(), func() error {
			_, err := e.Advance(context.Background(), key.Stream())
			return err
		})
	case "deliver":
		u := s.updates[x.N%len(s.updates)]
		s.start("a delivery of "+key.String(), key.Stream(), func() error {
			_, _, err := e.Accept(context.Background(), u)
			return err
		})
	case "operate":
		s.operate(x.A, e, key)
	case "pass":
		s.time.advance(passes[x.N%len(passes)])
	case "land":
		s.crm.land(s.time.Now(), true)
	case "kill":
		if a != nil {
			s.kill(a)
		}
	case "run":
		s.run(a, x.N, x.F)
	}
	if starts := x.Kind == "advance" || x.Kind == "deliver" || x.Kind == "operate"; starts && x.Whole && len(s.actors) > 0 {
		s.run(s.actors[len(s.actors)-1], math.MaxInt, x.F)
	}
}

// run takes the actor n calls on and one more. F is what happens to its calls of
// the CRM, and to the last call of the log; 0 is nothing.
func (s *stage) run(a *actor, n, f int) {
	for i := 0; i <= n && a != nil && slices.Contains(s.actors, a); i++ {
		now, possible := none, faultsAt(a.at)
		if f > 0 && (i == n || a.at == "create" || a.at == "find") {
			now = possible[f%len(possible)]
		}
		s.step(a, now)
	}
}

// operate is an honest operator: absence is only told by one who has looked.
func (s *stage) operate(n int, e *engine.Engine, key job.Key) {
	ctx := context.Background()
	lead := s.crm.effects(operationOf(s.updates[slices.Index(s.keys, key)]))
	act := map[int]func() error{
		0: func() error { _, err := e.Discard(ctx, key, operator); return err },
		1: func() error { _, err := e.Requeue(ctx, key, operator); return err },
		2: func() error {
			if len(lead) > 0 {
				_, err := e.Resolve(ctx, key, lead[0], operator)
				return err
			}
			_, err := e.ResolveAbsent(ctx, key, operator)
			return err
		},
	}[n%3]
	s.start(fmt.Sprintf("operator's act %d on %s", n%3, key), key.Stream(), act)
	for a := s.actors[len(s.actors)-1]; a.at == "now" || a.at == "read"; {
		s.step(a, none) // what was seen in the CRM is about the job as it is now
	}
}

// randomPlan draws a plan. Of the kinds, the swarm's bits leave some out.
func randomPlan(seed uint64, swarm uint8, length int) []act {
	r := rand.New(rand.NewPCG(seed, 1))
	kinds := []string{"advance", "advance", "run", "run", "run", "run", "pass"}
	for i, kind := range []string{"deliver", "operate", "kill", "land", "pass", "run", "run"} {
		if swarm>>i&1 == 1 {
			kinds = append(kinds, kind, kind)
		}
	}
	burst := 1 + int(swarm>>5)*3
	plan := make([]act, length)
	for i := range plan {
		plan[i] = act{kinds[r.IntN(len(kinds))], r.IntN(6), r.IntN(max(burst, 7)), max(0, r.IntN(24)-8), r.IntN(3) > 0}
		switch one := swarm >> 6; {
		case plan[i].Kind == "run":
			plan[i].N = r.IntN(burst)
		case plan[i].Kind != "pass" && one == 1:
			plan[i].N = r.IntN(2) // only the operation that is shared
		case plan[i].Kind != "pass" && one == 2:
			plan[i].N = 2 // only the other
		}
	}
	return plan
}
