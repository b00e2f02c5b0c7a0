package properties

import (
	"slices"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/properties/sim"
)

// CheckRules checks a team's own rules, with updates that its bot really gets. Each
// of them, every kind of the Bot API, and each with parts missing, doubled in size or
// of another type, is shown to the rules, which
//
//   - never panic, and never change the update;
//   - say the same in every call, for every spelling of one document, and whatever
//     they were asked before;
//   - give either an effect with an action, a business key and fields within the
//     limits below, or a reason without one;
//   - never use another job's event key as a business key;
//   - ask for no lead for an edit (edited_message and its like);
//   - make two operations of two updates that have nothing in common but what people
//     wrote, unless the business key names what they share:
//     telegram/<bot>/<name>/…, as job.BusinessKey makes them.
//
// Then the engine runs with the rules and the updates under drawn plans, and keeps
// all its promises.
func CheckRules(t *testing.T, plan job.Planner, updates ...[]byte) {
	if plan == nil {
		t.Fatal("there are no rules: the planner is nil")
	}
	examples, err := parseAll(updates)
	if err != nil {
		t.Fatal(err)
	}
	sound := t.Run("laws", func(t *testing.T) {
		list, shown := breaches(plan, examples)
		for i, b := range list {
			if i == maxBreaches {
				t.Fatalf("and %d more", len(list)-i)
			}
			t.Errorf("%s", b)
		}
		t.Logf("the rules were shown %d updates", shown)
	})
	t.Run("engine", func(t *testing.T) {
		if !sound {
			t.Skip("rules that break their own laws are not given to the engine")
		}
		searchUnder(t, drawingRules(plan, examples))
	})
}

// maxBreaches is how many of them are told.
const maxBreaches = 8

// drawingRules draws plans in which people send the examples, what most bots get,
// and for each of them what only says the same.
func drawingRules(plan job.Planner, examples []job.Update) func(sim.Source) sim.Plan {
	var sent []sim.Sent // each beside its twin
	known := map[string]bool{}
	for _, u := range slices.Concat(examples, common()) {
		if known[u.Fingerprint] {
			continue
		}
		known[u.Fingerprint] = true
		for _, v := range []job.Update{u, twinOf(u)} {
			sent = append(sent, sim.Sent{v, mustParse(respell(v.Raw))})
		}
	}
	parts := &sim.Parts{Plan: plan, Updates: sent}
	return func(r sim.Source) sim.Plan {
		p := sim.Draw(r, "")
		p.Parts = parts
		for i := range p.Updates {
			p.Updates[i] = r.IntN(len(sent))
		}
		if len(p.Updates) > 1 && r.IntN(2) == 0 {
			p.Updates[1] = p.Updates[0] ^ 1
		}
		return p
	}
}
