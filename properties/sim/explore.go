package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Space is a set of executions: all that differ from the undisturbed one by at
// most Troubles troubles. A trouble is a fault of a call, the death of a process,
// a switch to another actor, a pause, a jump of the time, one more delivery, or the
// arrival of what is late.
type Space struct {
	Class    crm.Class
	Workers  int  // each in a process of its own
	Refused  bool // the CRM refuses the operation for ever
	Shared   bool // two updates share the operation
	Stepped  bool // a lead takes several steps, of which the last is refused where Refused says so
	Troubles int
}

// Explored is what the exploration of a space came to.
type Explored struct {
	Space
	Executions int // one that comes to a known state ends there
	States     int // different ones
	Calls      int // of ports
	Violation  *Violation
	Found      []Trouble // of the execution that violates
}

// Trouble is one departure from the undisturbed execution.
type Trouble struct {
	At   int // the number of the decision
	Kind TroubleKind
	F    Fault // of Faulty
	D    int   // of Jumps: an index of durations
}

// TroubleKind is what a trouble does.
type TroubleKind uint8

// The kinds of trouble.
const (
	Faulty TroubleKind = iota // the call at hand fails
	Dies                      // its process dies before it
	Yields                    // its actor lets the others go first, at this time
	Stalls                    // its actor goes on when nothing else happens any more
	Jumps                     // the time jumps, with everything standing still
	Again                     // Telegram delivers once more
	Lands                     // what is late arrives
)

// explorer walks one space.
type explorer struct {
	setup   Setup
	budget  int
	seen    map[uint64]uint8 // state → the most troubles that were left in it, plus one
	pending [][]Trouble
	result  Explored
	stage   stage
	cover   *Coverage
}

func newExplorer(s Space, cover *Coverage) *explorer {
	x := &explorer{
		setup: Setup{
			Class: s.Class, Processes: s.Workers, Workers: 1, Updates: []int{0}, Attempts: 2,
			Faults: AllFaults, Steady: true,
		},
		budget: s.Troubles, seen: map[uint64]uint8{}, cover: cover, result: Explored{Space: s}, stage: stage{kept: true},
	}
	if s.Refused {
		x.setup.Refused = 3
	}
	if s.Stepped {
		x.setup.Stepped, x.setup.Culprit = true, len(leadSteps)-1
	}
	if s.Shared {
		x.setup.Updates = []int{1, 2}
	}
	return x
}

// Explore runs every execution of the space. It stops at the first violation.
func Explore(s Space, cover *Coverage) Explored {
	x := newExplorer(s, cover)
	defer x.stage.close()
	x.pending = [][]Trouble{nil}
	for len(x.pending) > 0 && x.result.Violation == nil {
		troubles := x.pending[len(x.pending)-1]
		x.pending = x.pending[:len(x.pending)-1]
		x.run(troubles, nil)
	}
	x.result.States = len(x.seen)
	return x.result
}

// Retell carries out one execution of a space and tells what happens.
func Retell(s Space, troubles []Trouble, tell func(line string)) *Violation {
	x := newExplorer(s, &Coverage{})
	defer x.stage.close()
	x.budget = len(troubles)
	x.run(troubles, tell)
	return x.result.Violation
}

// executionCalls bounds one execution: every one ends long before.
const executionCalls = 5_000

// run carries out one execution. Behind its last trouble, it notes every other
// way to go on, and ends where the state is known.
func (x *explorer) run(troubles []Trouble, tell func(string)) {
	w := newWorld(Plan{Setup: x.setup}, x.cover, tell, &x.stage)
	defer w.end()
	w.digests = true
	x.result.Executions++
	e := &execution{w: w}
	next := 0
	for decision := 0; w.broken == nil; decision++ {
		a := e.pick()
		if a == nil {
			break
		}
		w.breaks(w.calls > executionCalls, Ends, "no end after %d calls", w.calls)
		switch {
		case next < len(troubles) && troubles[next].At == decision:
			e.suffer(a, troubles[next])
			next++
			continue
		case next == len(troubles):
			if x.known(e, x.budget-len(troubles)) {
				x.result.Calls += w.calls
				return
			}
			if len(troubles) < x.budget {
				x.branch(e, a, decision, troubles)
			}
		}
		w.step(a, None)
	}
	x.conclude(w, troubles)
}

func (x *explorer) conclude(w *world, troubles []Trouble) {
	w.conclude()
	x.result.Calls += w.calls
	if x.result.Violation = w.broken; w.broken != nil {
		x.result.Found = troubles
	}
}

// known reports whether the state was met before with as many troubles left.
func (x *explorer) known(e *execution, left int) bool {
	key := e.state(x.result.Shared)
	if x.seen[key] > uint8(left) {
		return true
	}
	x.seen[key] = uint8(left) + 1
	return false
}

// jumps are the durations of Jumps: beyond a call's deadline, beyond the lease,
// beyond the lease and the clocks' difference, and beyond a key's validity.
var jumps = []int{lasting(11 * time.Second), lasting(31 * time.Second), aMinute, elevenM}

// branch notes every trouble that can come at this decision. At a look at the
// clock only the time can make a difference.
func (x *explorer) branch(e *execution, a *actor, decision int, troubles []Trouble) {
	add := func(t Trouble) {
		t.At = decision
		x.pending = append(x.pending, append(slices.Clone(troubles), t))
	}
	for _, d := range jumps {
		add(Trouble{Kind: Jumps, D: d})
	}
	add(Trouble{Kind: Stalls})
	if a.at.port == now {
		return
	}
	for _, f := range e.w.possible(a.at.port) {
		add(Trouble{Kind: Faulty, F: f})
	}
	add(Trouble{Kind: Dies})
	add(Trouble{Kind: Yields})
	add(Trouble{Kind: Again})
	if len(e.w.crm.late)+len(e.w.late) > 0 {
		add(Trouble{Kind: Lands})
	}
}

func (s Space) String() string {
	name := fmt.Sprintf("%s, %d worker(s)", s.Class, s.Workers)
	if s.Refused {
		name += ", refused"
	}
	if s.Stepped {
		name += ", stepped"
	}
	if s.Shared {
		name += ", shared"
	}
	return name
}
