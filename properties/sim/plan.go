package sim

import (
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Plan is all that a run depends on. It is plain data, and every step is possible
// in every situation, so each part of a plan is a plan.
type Plan struct {
	Setup
	Steps []Step
}

// Setup is the world in which a plan is carried out.
type Setup struct {
	Class     crm.Class
	Processes int    // 1 to MaxProcesses
	Workers   int    // of each process, 1 to MaxWorkers
	Clocks    []int  // per process, an index into the skews
	Updates   []int  // what people send: indices of Updates
	Refused   uint64 // bit i: the CRM refuses the operation of Updates[i] for ever
	Snapshots bool   // processes keep the agenda over a restart
	Share     bool   // processes leave a job for a while to the one that comes first for it
	Attempts  int    // the policy's budget
	Faults    uint64 // bit f: the fault f may happen
	Limited   bool   // the CRM may be asked seldom, and is left alone after few failures
	Steady    bool   // no jitter: every wait is half its bound
	Stepped   bool   // a lead takes a contact, the lead, and what links them
	Culprit   int    // of a stepped lead: the index of the step that is refused, where Refused says so

	Parts *Parts // in place of the simulation's own
}

// Limits of a Setup.
const (
	MaxProcesses = 3
	MaxWorkers   = 2
)

// Step is one thing that happens. A, N and F are taken modulo what is possible.
type Step struct {
	Kind Kind
	A    int // an actor, process, update or job
	N    int // how far, how long, or which
	F    int // which of the faults that can happen there; 0 for none
}

// Kind is what a step does.
type Kind uint8

// The kinds of steps.
const (
	Deliver   Kind = iota // Telegram sends update A to process N, with fault F on the append
	Post                  // the same, but the handler stands still at its first call
	Run                   // actor A makes N+1 calls, the last with fault F
	Until                 // actor A goes on to its next call of kind N, and makes it with fault F
	Work                  // process A works until it has nothing to do
	Pass                  // time passes: N is an index of durations
	Crash                 // process A dies, and starts anew
	Terminate             // process A is told to end, and another one starts
	Land                  // what is late arrives
	Operate               // an operator acts on job A: N is the act
	Copy                  // a person copies the lead of job A in the CRM, or what step N of it made
	Future                // a newer release writes an event on job A
	kinds
)

var kindNames = [...]string{
	"deliver", "post", "run", "until", "work", "pass", "crash", "terminate", "land", "operate", "copy", "future",
}

func (k Kind) String() string { return kindNames[k%kinds] }

// durations are what Pass chooses from. The first, zero, stands for: until the
// next moment at which something is due.
var durations = []time.Duration{
	0, time.Second, 6 * time.Second, 11 * time.Second, 31 * time.Second, 61 * time.Second,
	3 * time.Minute, 11 * time.Minute, time.Hour, 26 * time.Hour,
}

// skews are the clocks of processes, beside the true time. No two are further
// apart than the policy's ClockSkew.
var skews = []time.Duration{0, 15 * time.Second, -15 * time.Second, 7 * time.Second}
