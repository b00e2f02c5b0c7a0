package job

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/looplab/fsm"
)

// next is what the table says, read row by row: the second opinion on looplab/fsm.
func next(phase Phase, event string) (Phase, bool) {
	for _, row := range transitions {
		if row.event == event && slices.Contains(row.from, phase) {
			return destination(row, phase), true
		}
	}
	return phase, false
}

func TestTableIsSound(t *testing.T) {
	for _, problem := range tableProblems(transitions, jobEventNames(t)) {
		t.Error(problem)
	}
}

func TestBrokenTablesAreSeen(t *testing.T) {
	events := jobEventNames(t)
	without := func(event string) []transition {
		return slices.DeleteFunc(slices.Clone(transitions), func(row transition) bool { return row.event == event })
	}
	with := func(rows ...transition) []transition { return append(slices.Clone(transitions), rows...) }
	tests := map[string]struct {
		table []transition
		want  string
	}{
		"a row twice":             {with(transition{"JobClaimed", []Phase{Pending}, Claimed}), "JobClaimed from pending stands twice"},
		"two destinations":        {with(transition{"JobClaimed", []Phase{Pending}, Done}), "JobClaimed from pending leads to claimed and to done"},
		"an event without a row":  {without("ClaimRenewed"), "ClaimRenewed can never happen"},
		"a row without an event":  {with(transition{"JobForgotten", []Phase{Pending}, Done}), "JobForgotten is no event type"},
		"a row from nowhere":      {with(transition{"JobClaimed", nil, Claimed})[1:], "UpdateReceived can never happen"},
		"unreachable phase":       {without("JobClaimed"), "nothing leads to claimed"},
		"dead triggers behind it": {without("JobClaimed"), "ClaimRenewed can never happen"},
		"done is left":            {with(transition{"JobRequeued", []Phase{Done}, Pending}), "JobRequeued leaves done"},
		"dead letter is left":     {with(transition{"LeadConfirmed", []Phase{DeadLetter}, Done}), "LeadConfirmed leaves dead_letter without an operator"},
		"back to new":             {with(transition{"ClaimReleased", []Phase{Pending}, New}), "ClaimReleased leads back to new"},
		"misspelled phase":        {with(transition{"ClaimReleased", []Phase{"pendign"}, Pending}), "ClaimReleased: pendign or pending is no phase"},
		"no way out": {[]transition{
			{"UpdateReceived", []Phase{New}, Pending}, {"JobClaimed", []Phase{Pending}, Claimed},
		}, "nothing leads from claimed to an end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tableProblems(test.table, events); !slices.Contains(got, test.want) {
				t.Errorf("problems are %q, want among them %q", got, test.want)
			}
		})
	}
}

// TestMachineIsTheTable walks every sequence of six allowed events, and tries
// every event at every step of it.
func TestMachineIsTheTable(t *testing.T) {
	events := jobEvents(t)
	sequences := 0
	var walk func(path []Event, phase Phase)
	walk = func(path []Event, phase Phase) {
		sequences++
		for _, e := range events {
			to, allowed := next(phase, e.Name())
			m := machineAfter(t, path)
			if m.Can(e) != allowed {
				t.Fatalf("after %v the machine's Can(%s) is %t, the table says %t", names(path), e.Name(), !allowed, allowed)
			}
			if err := m.Fire(t.Context(), e); (err == nil) != allowed {
				t.Fatalf("after %v the machine's Fire(%s) is %v, the table says allowed %t", names(path), e.Name(), err, allowed)
			}
			if m.Phase() != to {
				t.Fatalf("after %v, %s the machine stands in %s, the table says %s", names(path), e.Name(), m.Phase(), to)
			}
			if allowed && len(path) < 5 {
				walk(append(slices.Clip(path), e), to)
			}
		}
	}
	walk(nil, New)
	if sequences < 900 {
		t.Errorf("only %d sequences were walked", sequences)
	}
}

func machineAfter(t *testing.T, path []Event) *Machine {
	m := NewMachine(New)
	for _, e := range path {
		if err := m.Fire(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestARefusedEventChangesNothingAndIsNamed(t *testing.T) {
	refused := 0
	for _, phase := range Phases {
		for _, e := range jobEvents(t) {
			if _, allowed := next(phase, e.Name()); allowed {
				continue
			}
			refused++
			m := NewMachine(phase)
			err := m.Fire(t.Context(), e)
			if err == nil || !strings.Contains(err.Error(), e.Name()) || !strings.Contains(err.Error(), string(phase)) {
				t.Errorf("Fire(%s) in %s is %v, want an error that names both", e.Name(), phase, err)
			}
			if m.Phase() != phase {
				t.Errorf("the refused %s led from %s to %s", e.Name(), phase, m.Phase())
			}
			if err := Allowed(phase, e); err == nil || !strings.Contains(err.Error(), e.Name()) || !strings.Contains(err.Error(), string(phase)) {
				t.Errorf("Allowed(%s, %s) is %v, want an error that names both", phase, e.Name(), err)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestAllowsLooksAhead: all events of one append are judged before any is recorded,
// and the machine has moved only when they are.
func TestAllowsLooksAhead(t *testing.T) {
	m := NewMachine(Pending)
	err := m.Allows(JobClaimed{}, ClaimRenewed{}, JobRequeued{}, LeadConfirmed{})
	if err == nil || !strings.Contains(err.Error(), "JobRequeued is not allowed in phase claimed") {
		t.Errorf("the third event is judged: %v", err)
	}
	if m.Phase() != Pending {
		t.Errorf("a look ahead led to %s", m.Phase())
	}
	if err := m.Allows(JobClaimed{}, ClaimRenewed{}, LeadConfirmed{}, DeliveryRepeated{}); err != nil || m.Phase() != Pending {
		t.Errorf("%v, and the machine stands in %s", err, m.Phase())
	}
}

func TestASelfTransitionIsNoError(t *testing.T) {
	kept := 0
	for _, row := range transitions {
		for _, from := range row.from {
			if destination(row, from) != from {
				continue
			}
			kept++
			m := NewMachine(from)
			if err := m.Fire(t.Context(), named(row.event)); err != nil || m.Phase() != from {
				t.Errorf("%s in %s: phase %s, %v", row.event, from, m.Phase(), err)
			}
		}
	}
	if kept < 10 {
		t.Errorf("only %d self transitions were tried", kept)
	}
}

func TestACancelledContextDoesNotWedgeTheMachine(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	m := NewMachine(Pending)
	if err := m.Fire(cancelled, JobClaimed{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Fire(cancelled, ClaimReleased{}); err != nil || m.Phase() != Pending {
		t.Errorf("the machine is wedged in %s: %v", m.Phase(), err)
	}

	// The reason, so that the day looplab/fsm mends it is seen.
	bare := fsm.NewFSM(string(Pending), compiled, nil)
	if err := bare.Event(cancelled, "JobClaimed"); !errors.Is(err, context.Canceled) {
		t.Errorf("looplab/fsm answers %v to a cancelled context", err)
	}
	if bare.Can("JobClaimed") {
		t.Error("looplab/fsm is no longer wedged by a cancelled context: Machine.Fire may become simpler")
	}
}

// TestFoldIsTheTable: what an event does to the phase is said once in the table
// and once in Evolve, and they agree.
func TestFoldIsTheTable(t *testing.T) {
	for _, phase := range Phases {
		for _, e := range jobEvents(t) {
			to, allowed := next(phase, e.Name())
			if !allowed {
				continue
			}
			s := State{Phase: phase}
			if phase == New {
				s = State{}
			}
			if got := s.Evolve(e, epoch).Now(); got != to {
				t.Errorf("%s in %s: the fold says %s, the table %s", e.Name(), phase, got, to)
			}
		}
	}
}

func TestDiagramIsMermaidAndAlwaysTheSame(t *testing.T) {
	first, err := Diagram()
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if again, err := Diagram(); again != first || err != nil {
			t.Fatalf("the diagram changed: %v\n%s\n%s", err, first, again)
		}
	}
	if !strings.HasSuffix(first, "[*]\n") {
		t.Errorf("the diagram ends %q", first[len(first)-20:])
	}
	lines := strings.Split(strings.TrimSuffix(first, "\n"), "\n")
	if lines[0] != "stateDiagram-v2" || lines[1] != "    [*] --> new" {
		t.Errorf("the diagram starts %q", lines[:2])
	}
	for _, final := range []string{"    done --> [*]", "    dead_letter --> [*]"} {
		if !slices.Contains(lines, final) {
			t.Errorf("the diagram has no line %q", final)
		}
	}
	for _, row := range transitions {
		for _, from := range row.from {
			line := "    " + string(from) + " --> " + string(destination(row, from)) + ": " + row.event
			if drawn := slices.Contains(lines, line); drawn != (row.to != "") {
				t.Errorf("%q is drawn: %t", line, drawn)
			}
		}
	}
	for _, line := range lines[1:] {
		if from, to, ok := strings.Cut(strings.TrimSpace(line), " --> "); !ok || strings.ContainsAny(from, " -") || to == "" {
			t.Errorf("%q is no line of a Mermaid state diagram", line)
		}
	}
}

func names(events []Event) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.Name()
	}
	return list
}

// named is an event known by its name alone, for the machine.
type named string

func (n named) Name() string { return string(n) }
