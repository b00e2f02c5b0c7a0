package restcrm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/job"
)

// TestT67_KeyIgnored: a CRM that takes the key and ignores it makes two leads
// under our retry. No client can see that; certification does, and names it.
func TestT67_KeyIgnored(t *testing.T) {
	w := newWorld(t, setup{class: crm.IdempotencyKey})
	w.script([]sim.Fault{sim.CutAfter, sim.KeyIgnored})
	key, _ := w.deliver(1)
	w.run()
	if n := len(w.effects(key)); n != 2 {
		t.Fatalf("%d leads: the lie that this test is about is not there", n)
	}

	lying := newSandbox(t, sim.Config{Class: sim.IdempotencyKey, Rates: map[sim.Fault]float64{sim.KeyIgnored: 1}})
	findings := crmtest.Check(t.Context(), subject(t, crm.IdempotencyKey, lying))
	if !slices.ContainsFunc(findings, func(f crmtest.Finding) bool {
		return f.Rule == crmtest.CLASS && f.Case == "create_repeated_after_a_cut_answer" &&
			strings.Contains(f.Problem, "idempotency_key")
	}) {
		t.Fatalf("the suite does not name it: %v", findings)
	}
}

// slow tries once an hour, so that a weekend is not thousands of tries.
func slow() job.Policy {
	p := patient
	p.RetryMax = time.Hour
	return p
}

// TestT68_KeyOutlived: an answer is lost on Friday and the CRM is away until
// Monday, when the key is forgotten. Another create would make a second lead.
func TestT68_KeyOutlived(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   sim.Fault
		creates int
	}{
		{"applied on Friday", sim.CutAfter, 1},
		{"not applied on Friday", sim.CutBefore, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{class: crm.IdempotencyKey, policy: slow()})
			w.script([]sim.Fault{c.fault})
			key, _ := w.deliver(1)
			w.advance(key)
			monday := w.clock.Now().Add(62 * time.Hour)
			w.refused.Store(true)
			w.runUntil(func() bool { return w.clock.Now().After(monday) })
			if s := w.state(key); s.Phase != job.NeedsReconciliation || w.creates(key) != 1 {
				t.Fatalf("%s after %d creates: %s", s.Phase, w.creates(key), s.LastError)
			}
			w.refused.Store(false)
			w.run()
			w.wantDone(key)
			if n := w.creates(key); n != c.creates {
				t.Fatalf("%d creates, want %d; events %v", n, c.creates, w.events(key))
			}
		})
	}
}

// TestT68_KeyAlmostOutlived: within the validity the same create is sent again.
func TestT68_KeyAlmostOutlived(t *testing.T) {
	w := newWorld(t, setup{class: crm.IdempotencyKey, policy: slow()})
	w.script([]sim.Fault{sim.CutAfter})
	key, _ := w.deliver(1)
	w.advance(key)
	back := w.clock.Now().Add(20 * time.Hour)
	w.refused.Store(true)
	w.runUntil(func() bool { return w.clock.Now().After(back) })
	w.refused.Store(false)
	w.run()
	w.wantDone(key, job.ByExists)
	w.wantCounts(key, 2, 0)
}
