package properties

import (
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/properties/sim"
)

// CheckConnector checks a connector, and the CRM behind it, for the class that its
// owner counts on:
//
//   - it declares that class;
//   - it passes the conformance suite, crmtest.Run;
//   - the engine over it keeps its promises: drawn plans let processes die at any
//     call, lose what the log acknowledged and what the CRM answered, deliver updates
//     again, take over claims that ran out, and let an operator answer who asks the
//     sandbox. The connector speaks HTTP to the sandbox through a wire that cuts,
//     forges, withholds, holds back and duplicates. In the end every job is final,
//     the CRM has at most one lead for each operation, and the log knows it.
//
// A connector that asks to be left alone is made anew by Connect, since the engine waits
// through the pause in simulated time.
//
// The sandbox gets some thousand leads, and none is deleted.
func CheckConnector(t *testing.T, subject crmtest.Subject, class crm.Class) {
	declared := t.Run("class", func(t *testing.T) {
		if why := wrongClass(subject, class); why != "" {
			t.Fatal(why)
		}
	})
	if !declared || !t.Run("conformance", func(t *testing.T) { crmtest.Run(t, subject) }) {
		return // the engine over it would tell the same at more length
	}
	t.Run("engine", func(t *testing.T) {
		w, err := openWire(subject.WithDefaults())
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		searchUnder(t, w.drawing(class))
		t.Logf("the connector was called %d times, and %d calls met a fault", w.calls, w.beset)
	})
}

// wrongClass says what is wrong with the class that is declared.
func wrongClass(subject crmtest.Subject, class crm.Class) string {
	if subject.Connect == nil || subject.Sandbox == nil {
		return "the subject has no Connect or no Sandbox"
	}
	c, err := subject.Connect("http://127.0.0.1:1")
	if err != nil {
		return "the connector cannot be made: " + err.Error()
	}
	if got := c.Describe().Class; got != class {
		return "the connector declares the class " + string(got) + ", and " + string(class) + " is counted on"
	}
	return ""
}

// drawing draws plans for the engine over the wire.
func (w *wire) drawing(class crm.Class) func(sim.Source) sim.Plan {
	parts := &sim.Parts{CRM: func() sim.CRM { return newCarrier(w, class) }}
	return func(r sim.Source) sim.Plan {
		p := sim.Draw(r, class)
		p.Parts = parts
		p.Refused = 0                   // the sandbox decides what it refuses
		p.Stepped, p.Culprit = false, 0 // and its connector makes a lead by itself
		if r.IntN(4) > 0 {
			p.Faults = sim.AllFaults
			p.Steps = append(besetCalls(r), p.Steps...)
		}
		p.Faults &^= 1 << sim.Copied // and who copies its leads
		return p
	}
}

// besetCalls begins a plan with calls of the connector, one after the other, of
// which most meet a fault: they are what this is about, and the swarm's plans come
// to few.
func besetCalls(r sim.Source) (steps []sim.Step) {
	const whenDue = 0
	for range 1 + r.IntN(2) {
		steps = append(steps, sim.Step{Kind: sim.Deliver, A: r.IntN(6), N: r.IntN(2)})
	}
	for range 1 + r.IntN(6) {
		call := sim.Step{Kind: sim.Until, A: r.IntN(2), N: sim.UntilCreate, F: r.IntN(24)}
		switch r.IntN(8) {
		case 0, 1:
			call.N = sim.UntilLookup
		case 2: // the process dies, and another one takes over
			steps = append(steps, sim.Step{Kind: sim.Crash, A: r.IntN(2)})
		}
		steps = append(steps, call, sim.Step{Kind: sim.Pass, N: whenDue + r.IntN(7)/6*r.IntN(8)})
	}
	return steps
}
