package sim

import (
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
)

func TestTryExplore(t *testing.T) {
	for _, class := range crm.Classes {
		for workers := 1; workers <= 2; workers++ {
			for _, refused := range []bool{false, true} {
				for _, shared := range []bool{false} {
					var cover Coverage
					r := Explore(Space{class, workers, refused, shared, 2}, &cover)
					t.Logf("%v %d %v %v: %d executions, %d states, %d calls, %v", class, workers, refused, shared, r.Executions, r.States, r.Calls, r.Violation)
					if r.Violation != nil {
						Retell(r.Space, r.Found, func(s string) { t.Log(s) })
						t.FailNow()
					}
				}
			}
		}
	}
}
