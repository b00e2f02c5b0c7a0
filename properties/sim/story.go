package sim

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// Story is Tell, and how to see it again.
func Story(out io.Writer, p Plan) *Violation {
	broken := Tell(out, p)
	fmt.Fprintf(out, "\nSee it again:\n  leadonce simulate --schedule '%s'\n", p)
	return broken
}

// Tell writes what happens under the plan: a numbered list, the streams as they are
// in the end, and what the CRM was asked and made.
func Tell(out io.Writer, p Plan) *Violation {
	fmt.Fprintf(out, "A CRM of class %s, %d process(es) with %d worker(s) each, %d attempt(s).\n", p.Class, p.Processes, p.Workers, p.Attempts)
	if p.Stepped {
		fmt.Fprintf(out, "A lead takes the steps %s.\n", strings.Join(leadSteps[:], ", "))
	}
	fmt.Fprintln(out)
	n := 0
	w := newWorld(p, &Coverage{}, func(line string) {
		if strings.HasSuffix(line, portNames[sweeping]) {
			return // they look for work all the time
		}
		if detail, ok := strings.CutPrefix(line, "    "); ok {
			fmt.Fprintf(out, "      %s\n", readable(detail))
			return
		}
		n++
		fmt.Fprintf(out, "%4d. %s\n", n, line)
	}, &stage{})
	defer w.end()
	w.play()
	w.tellStreams(out)
	w.tellCRM(out)
	return w.broken
}

// readable leaves out of a recorded event what nobody reads here: its version, and
// the update that everybody knows.
func readable(line string) string {
	line = strings.Replace(line, ".v1 ", " ", 1)
	if before, _, ok := strings.Cut(line, " UpdateReceived {"); ok {
		return before + " UpdateReceived"
	}
	return line
}

func (w *world) tellStreams(out io.Writer) {
	fmt.Fprint(out, "\nThe streams:\n")
	for _, name := range slices.Sorted(maps.Keys(w.byStream)) {
		v := w.byStream[name]
		if len(v.events) == 0 {
			continue
		}
		fmt.Fprintf(out, "  %s", name)
		if v.isJob {
			fmt.Fprintf(out, " (%s)", v.state.Now())
		}
		for _, e := range v.events {
			if e == nil {
				fmt.Fprint(out, " · an unknown event")
				continue
			}
			fmt.Fprintf(out, " · %s", e.Name())
			switch e := e.(type) {
			case job.JobClaimed:
				if e.Step != "" {
					fmt.Fprintf(out, " (%s)", e.Step)
				}
			case job.StepConfirmed:
				fmt.Fprintf(out, " %s %s", e.Step, e.CRMID)
			case job.LeadConfirmed:
				fmt.Fprintf(out, " %s", e.CRMID)
			}
		}
		fmt.Fprintln(out)
	}
}

func (w *world) tellCRM(out io.Writer) {
	fmt.Fprint(out, "\nThe CRM's journal:\n")
	inOrder := func(a, b *operated) int {
		return cmp.Or(strings.Compare(a.of, b.of), cmp.Compare(a.place, b.place), strings.Compare(a.id, b.id))
	}
	for _, o := range slices.SortedFunc(maps.Values(w.crm.ops), inOrder) {
		fmt.Fprintf(out, "  operation %s", o.of)
		if o.step != "" {
			fmt.Fprintf(out, ", its %s", o.step)
		}
		fmt.Fprintf(out, ": %d create(s)", len(o.requests))
		for _, l := range o.leads {
			fmt.Fprintf(out, " · %s %s at %s", o.makes(), l.id, l.at.Format(time.TimeOnly))
			if l.copy {
				fmt.Fprint(out, " by a person")
			}
		}
		fmt.Fprintln(out)
	}
}
