package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/looplab/fsm"
)

// Phase is where a job stands.
type Phase string

// The phases. Done and dead_letter are final: only an operator's recorded act
// leaves dead_letter, nothing leaves done.
const (
	New                 Phase = "new"
	Pending             Phase = "pending"
	Claimed             Phase = "claimed"
	Done                Phase = "done"
	NeedsReconciliation Phase = "needs_reconciliation"
	DeadLetter          Phase = "dead_letter"
)

// Phases lists every phase, in the order of a job's life.
var Phases = []Phase{New, Pending, Claimed, NeedsReconciliation, Done, DeadLetter}

// Final reports whether no worker has anything left to do.
func (p Phase) Final() bool { return p == Done || p == DeadLetter }

// transition is one row of the table. An empty to means: the phase stays.
type transition struct {
	event string
	from  []Phase
	to    Phase
}

var stored = []Phase{Pending, Claimed, NeedsReconciliation, Done, DeadLetter}

// transitions is the whole machine. The diagram in the README is drawn from it.
var transitions = []transition{
	{UpdateReceived{}.Name(), []Phase{New}, Pending},
	{DeliveryRepeated{}.Name(), stored, ""},
	{KeyConflicted{}.Name(), stored, ""},
	{JobClaimed{}.Name(), []Phase{Pending}, Claimed},
	{ClaimRenewed{}.Name(), []Phase{Claimed}, ""},
	{ClaimReleased{}.Name(), []Phase{Claimed}, Pending},
	{AttemptNotApplied{}.Name(), []Phase{Claimed}, Pending},
	{OutcomeUnknown{}.Name(), []Phase{Claimed}, Pending},
	{ReconciliationNeeded{}.Name(), []Phase{Claimed, NeedsReconciliation}, NeedsReconciliation},
	{StepConfirmed{}.Name(), []Phase{Pending, Claimed, NeedsReconciliation}, Pending},
	{LeadConfirmed{}.Name(), []Phase{Pending, Claimed, NeedsReconciliation}, Done},
	{ReceiptConflicted{}.Name(), stored, ""},
	{NoEffectNeeded{}.Name(), []Phase{Pending}, Done},
	{LeadAbsent{}.Name(), []Phase{NeedsReconciliation}, Pending},
	{JobDeadLettered{}.Name(), []Phase{Pending, Claimed, NeedsReconciliation}, DeadLetter},
	{JobRequeued{}.Name(), []Phase{DeadLetter}, Pending},
}

// EventNames lists the events of jobs, in the order of the table.
func EventNames() []string {
	names := make([]string, len(transitions))
	for i, t := range transitions {
		names[i] = t.event
	}
	return names
}

var compiled = compile(transitions)

// leaving has the rows of the table by the phase that they lead from. A machine is
// made for one or two events, and looplab/fsm takes the time for every row it gets.
var leaving = func() map[Phase]fsm.Events {
	by := map[Phase]fsm.Events{}
	for _, row := range compiled {
		by[Phase(row.Src[0])] = append(by[Phase(row.Src[0])], row)
	}
	return by
}()

// compile turns the table into looplab/fsm's form, one description per pair of
// event and phase.
func compile(table []transition) fsm.Events {
	var events fsm.Events
	for _, t := range table {
		for _, from := range t.from {
			to := t.to
			if to == "" {
				to = from
			}
			events = append(events, fsm.EventDesc{Name: t.event, Src: []string{string(from)}, Dst: string(to)})
		}
	}
	return events
}

// Machine walks one job through the table. It is made for one call and never
// shared: looplab/fsm's Event is not safe for concurrent use.
type Machine struct {
	fsm  *fsm.FSM
	from Phase // fsm has the rows that lead from it
}

// NewMachine is a machine that stands in phase, the fold of the job's events.
func NewMachine(phase Phase) *Machine {
	return &Machine{fsm.NewFSM(string(phase), leaving[phase], nil), phase}
}

// here is looplab/fsm's machine with the rows of the phase in which it stands.
func (m *Machine) here() *fsm.FSM {
	if m.Phase() != m.from {
		*m = *NewMachine(m.Phase())
	}
	return m.fsm
}

// Phase is where the machine stands.
func (m *Machine) Phase() Phase { return Phase(m.fsm.Current()) }

// Can reports whether the table allows the event now.
func (m *Machine) Can(e Event) bool { return m.here().Can(e.Name()) }

// Fire makes the transition of an event that is recorded.
func (m *Machine) Fire(ctx context.Context, e Event) error {
	// A cancelled context would wedge the machine for good (looplab/fsm#115).
	err := m.here().Event(context.WithoutCancel(ctx), e.Name())
	var same fsm.NoTransitionError
	if errors.As(err, &same) && same.Err == nil {
		return nil // the row keeps the phase
	}
	if err != nil {
		return fmt.Errorf("%s in phase %s: %w", e.Name(), m.Phase(), err)
	}
	return nil
}

// Allows returns an error that names the first of the events that the table does
// not allow, one after the other. The machine stands where it stood.
func (m *Machine) Allows(events ...Event) error {
	ahead := m
	for i, e := range events {
		if !ahead.Can(e) {
			return fmt.Errorf("%s is not allowed in phase %s", e.Name(), ahead.Phase())
		}
		if i == len(events)-1 {
			break
		}
		if ahead == m {
			ahead = NewMachine(m.Phase())
		}
		if err := ahead.Fire(context.Background(), e); err != nil {
			return err
		}
	}
	return nil
}

// Allowed returns an error that names the first of the events that a job in the
// phase cannot have next.
func Allowed(phase Phase, events ...Event) error { return NewMachine(phase).Allows(events...) }

// Diagram is the table as a Mermaid state diagram. Events that keep the phase
// in every phase they may happen in are left out: they would hide the rest.
func Diagram() (string, error) {
	var moving []transition
	for _, t := range transitions {
		if t.to != "" {
			moving = append(moving, t)
		}
	}
	drawn, err := fsm.VisualizeWithType(fsm.NewFSM(string(New), compile(moving), nil), fsm.MERMAID)
	if err != nil {
		return "", fmt.Errorf("draw the state diagram: %w", err)
	}
	var b strings.Builder
	b.WriteString(strings.TrimRight(drawn, "\n"))
	for _, p := range slices.DeleteFunc(slices.Clone(Phases), func(p Phase) bool { return !p.Final() }) {
		fmt.Fprintf(&b, "\n    %s --> [*]", p)
	}
	return b.String() + "\n", nil
}
