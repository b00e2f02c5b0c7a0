package sim

import (
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Catch is a violation that a hunt found, and its shortest plan.
type Catch struct {
	Seed      uint64 // of the run that found it
	Checks    int    // runs until then
	Took      time.Duration
	Minimized time.Duration
	Plan      Plan // minimal
	Violation Violation
}

// Hunt runs plans of the class (of all classes when it is empty) until one breaks
// a promise, and makes that one minimal. The seeds of the runs follow from seed.
// It returns nil after budget runs without a violation.
func Hunt(seed uint64, class crm.Class, budget int, cover *Coverage) *Catch {
	began := time.Now()
	for n := range budget {
		each := seed + uint64(n)
		p := Draw(Seeded(each), class)
		if Play(p, cover).Violation == nil {
			continue
		}
		c := &Catch{Seed: each, Checks: n + 1, Took: time.Since(began)}
		began = time.Now()
		c.Plan = Minimize(p)
		c.Minimized = time.Since(began)
		c.Violation = *Play(c.Plan, &Coverage{}).Violation
		return c
	}
	return nil
}
