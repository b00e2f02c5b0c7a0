package sim

import (
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

// Parts are what a run has in place of the simulation's own parts, so that a
// team's log, CRM or rules meet the same plans and the same judge. What is nil is
// the simulation's own.
type Parts struct {
	Store   func() Store // an empty one for each run
	CRM     func() CRM   // for each run; no operation of it is known to the CRM yet
	Plan    job.Planner
	Updates []Sent // what a Setup's Updates are indices of

	// MinimizeTime ends Minimize early, for parts that are slow; 0 does not.
	MinimizeTime time.Duration

	asked  sync.Once // the rules, about the updates
	people []sent
	byText map[string]int
}

// Sent is an update that a person caused, in two spellings of one document. Its
// bot is 7 or 8.
type Sent [2]job.Update

// Store is where the log of one run is.
type Store interface {
	// Handle is through which the process speaks to the log; the judge uses that of
	// process 0.
	Handle(process int) eventlog.Log
	// Crash opens the handle of a process anew.
	Crash(process int)
	Close()
}

// parts are those of one run.
type parts struct {
	store   Store
	crm     CRM // nil for the simulated one
	planner job.Planner
	people  []sent
	byText  map[string]int
	own     bool // the rules and the CRM are the simulation's own
}

func partsOf(from *Parts) parts {
	own := parts{planner: plan, people: known, byText: byText}
	own.own = from == nil || from.CRM == nil && from.Plan == nil
	if from == nil || from.Store == nil {
		own.store = inMemory{memory.New()}
	}
	if from == nil {
		return own
	}
	if from.Store != nil {
		own.store = from.Store()
	}
	if from.CRM != nil {
		own.crm = from.CRM()
	}
	if from.Plan != nil {
		from.asked.Do(func() {
			for _, s := range from.Updates {
				from.people = append(from.people, asked(s, from.Plan))
			}
			from.byText = textsOf(from.people)
		})
		own.planner, own.people, own.byText = from.Plan, from.people, from.byText
	}
	return own
}

// asked is the update with what the rules say of it.
func asked(s Sent, rules job.Planner) sent {
	u := s[0]
	key := u.Key()
	p := rules(key, u)
	e := sent{name: u.Kind, bot: u.Bot, id: u.ID, chat: int(u.Chat), spellings: s, own: true}
	e.write(p.Fields)
	e.operation = operation(u.Bot, key.String())
	switch {
	case p.Undecodable != "":
		e.wish = unreadable
	case !p.Effect:
		e.wish = nothing
	default:
		e.own = p.BusinessKey == key.String()
		e.operation = operation(u.Bot, p.BusinessKey)
	}
	return e
}

func (p *parts) close() {
	if p.crm != nil {
		p.crm.Close()
	}
	p.store.Close()
}

// inMemory is the simulation's own log.
type inMemory struct{ log *memory.Log }

func (m inMemory) Handle(int) eventlog.Log { return m.log }
func (m inMemory) Crash(int)               {}
func (m inMemory) Close()                  {}

// reopen is what the death of a process does to the handles of the log.
func (w *world) reopen(process int) {
	w.parts.store.Crash(process)
	w.store = w.parts.store.Handle(0)
	for _, p := range w.processes {
		p.handle = w.parts.store.Handle(p.number)
	}
}

// CRM is one from outside and the connector to it, with a wire between them on
// which the faults happen. A call blocks until the connector returns: no other
// actor goes on meanwhile.
type CRM interface {
	// Connect makes the connector of a process that starts.
	Connect() (crm.Connector, error)
	// Carry lets the connector make the call under the fault.
	Carry(Call) Passage
	// Land lets what was held back of the operation arrive at the CRM.
	Land(operation string)
	// Leads are the operation's, by another way than the connector's.
	Leads(operation string) ([]string, error)
	// Faults are those that the wire can bring to a create, and to a lookup.
	Faults() (creates, finds []Fault)
	Close()
}
