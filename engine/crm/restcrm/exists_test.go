package restcrm_test

import (
	"strings"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// TestT69_AlreadyExists: with the id it is the receipt; without it, the receipt
// is looked up before the same deadline.
func TestT69_AlreadyExists(t *testing.T) {
	for _, c := range []struct {
		name  string
		omit  bool
		finds []sim.Fault
		want  int // finds on the wire
		again int // creates
	}{
		{name: "with the id", again: 2},
		{name: "without it", omit: true, again: 2, want: 1},
		{name: "without it, lookup fails", omit: true, finds: []sim.Fault{sim.ErrorBefore}, again: 3, want: 2},
		{name: "without it, lookup lags", omit: true, finds: []sim.Fault{sim.LookupLags}, again: 3, want: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{class: crm.UniqueCreate, config: sim.Config{OmitExistingID: c.omit}})
			w.script([]sim.Fault{sim.CutAfter}, c.finds...)
			key, _ := w.deliver(1)
			w.run()
			w.wantDone(key, job.ByExists)
			w.wantCounts(key, c.again, c.want)
		})
	}
}

// TestT69_LookAlike: the id of somebody else's lead is never ours.
func TestT69_LookAlike(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		w := newWorld(t, setup{class: class})
		other, _ := w.deliver(1)
		w.run()
		w.wantDone(other)
		w.fields = map[string]string{"look_alike": w.state(other).CRMID}
		key, _ := w.deliver(2)
		w.run()
		s := w.state(key)
		if s.Phase != job.DeadLetter || s.CRMID != "" || !strings.Contains(s.LastError, "look_alike") {
			t.Fatalf("%s with lead %q: %s", s.Phase, s.CRMID, s.LastError)
		}
		w.wantCounts(key, 1, 0)
	})
}

// TestT71_LeadDeleted: what a person deletes or merges after it was done is not
// made again.
func TestT71_LeadDeleted(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		for _, merged := range []bool{false, true} {
			w := newWorld(t, setup{class: class})
			kept, _ := w.deliver(1)
			key, _ := w.deliver(2)
			w.run()
			w.wantDone(key)
			id := w.state(key).CRMID
			remove := func() error { return w.crm.Remove(id) }
			if merged {
				remove = func() error { return w.crm.Merge(id, w.state(kept).CRMID) }
			}
			if err := remove(); err != nil {
				t.Fatal(err)
			}
			w.pass(48 * time.Hour)
			if _, acceptance := w.deliver(2); acceptance != engine.Repeated {
				t.Fatalf("delivered again: %s", acceptance)
			}
			if v := w.advance(key); v.Schedule != job.Closed {
				t.Fatalf("verdict %+v", v)
			}
			w.run()
			w.wantCounts(key, 1, 0)
			if effects := w.effects(key); len(effects) != 0 || w.state(key).CRMID != id {
				t.Fatalf("leads %v, recorded %s", effects, w.state(key).CRMID)
			}
		}
	})
}
