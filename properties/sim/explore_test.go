package sim

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
)

// TestNoExecutionBreaksAPromise explores every execution with one trouble; with
// LEADONCE_EXPLORE=2, every one with two (in less than three minutes), with 3 those
// with three (for a night). Two updates that share an operation have one trouble
// less, and so have leads of several steps, but for one class.
func TestNoExecutionBreaksAPromise(t *testing.T) {
	troubles := 1
	if s := os.Getenv("LEADONCE_EXPLORE"); s != "" {
		var err error
		if troubles, err = strconv.Atoi(s); err != nil || troubles < 1 || troubles > 3 {
			t.Fatalf("LEADONCE_EXPLORE is %q, want 1 to 3", s)
		}
	}
	explored := make(chan Explored, 64)
	t.Run("spaces", func(t *testing.T) {
		for _, s := range spaces(troubles) {
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				r := Explore(s, &Coverage{})
				explored <- r
				if r.Violation != nil {
					var story strings.Builder
					Retell(s, r.Found, func(line string) { story.WriteString(line + "\n") })
					t.Errorf("%v\n%+v\n%s", r.Violation, r.Found, story.String())
				}
				if least := 100; r.Executions < least || r.States < 10*least {
					t.Errorf("only %d executions and %d states: this shows nothing", r.Executions, r.States)
				}
			})
		}
	})
	close(explored)
	var total Explored
	n := 0
	for r := range explored {
		n++
		total.Executions += r.Executions
		total.States += r.States
		total.Calls += r.Calls
	}
	if want := len(spaces(troubles)); n != want {
		t.Errorf("%d spaces, want %d", n, want)
	}
	t.Logf("%d spaces with %d trouble(s): %d executions, %d states, %d calls", n, troubles, total.Executions, total.States, total.Calls)
}

func spaces(troubles int) (list []Space) {
	for _, class := range crm.Classes {
		for workers := 1; workers <= 2; workers++ {
			for _, refused := range []bool{false, true} {
				list = append(list, Space{Class: class, Workers: workers, Refused: refused, Troubles: troubles})
			}
			list = append(list, Space{Class: class, Workers: workers, Shared: true, Troubles: max(1, troubles-1)})
		}
		for _, refused := range []bool{false, true} {
			s := Space{Class: class, Workers: 1, Stepped: true, Refused: refused, Troubles: max(1, troubles-1)}
			if class == crm.Lookup && !refused {
				s.Troubles = troubles // each of them takes as long as five of the others
			}
			list = append(list, s)
		}
	}
	return list
}
