package sim

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/leadonce/leadonce/engine/crm"
)

// outcomeNames are those of a request: a receipt, or what its error proves.
var outcomeNames = [outcomes]string{
	"answered", crm.Unknown.String(), crm.NotSent.String(), crm.NotApplied.String(), crm.Refused.String(),
}

// noLookup are outcomes that no lookup has: this connector takes every answer but a
// list of leads for unknown.
var noLookup = map[string]bool{"lookup " + crm.Refused.String(): true, "lookup " + crm.NotApplied.String(): true}

// Missing lists every landmark, transition and outcome that no run came to. Runs
// that all keep their promises show nothing about what they never met.
func (c *Coverage) Missing() []string {
	var missing []string
	for name, n := range c.counted() {
		if n == 0 {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// counted is every single count by its name.
func (c *Coverage) counted() map[string]int {
	counts := map[string]int{}
	for l, n := range c.landmarks {
		counts[landmarkNames[l]] = n
	}
	for row, i := range rows {
		counts[strings.Join(row[:], " ")] = c.transitions[i]
	}
	for o, name := range outcomeNames {
		counts["create "+name] = c.creates[o]
		if !noLookup["lookup "+name] {
			counts["lookup "+name] = c.finds[o]
		}
	}
	for f := Fault(1); f < faults; f++ {
		counts["fault "+f.String()] = int(c.pairs[f][f])
	}
	return counts
}

// Pairs is how many pairs of two faults happened in one run, of all there are.
func (c *Coverage) Pairs() (met, all int) {
	for i := Fault(1); i < faults; i++ {
		for j := i + 1; j < faults; j++ {
			all++
			if c.pairs[i][j] > 0 {
				met++
			}
		}
	}
	return met, all
}

// MissingPairs names the pairs of faults that happened in no run together.
func (c *Coverage) MissingPairs() (names []string) {
	for i := Fault(1); i < faults; i++ {
		for j := i + 1; j < faults; j++ {
			if c.pairs[i][j] == 0 {
				names = append(names, i.String()+" + "+j.String())
			}
		}
	}
	return names
}

// Print writes every count.
func (c *Coverage) Print(w io.Writer) {
	counts := c.counted()
	group := func(title string, of func(name string) bool) {
		fmt.Fprintf(w, "\n%s\n", title)
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if of(name) {
				fmt.Fprintf(w, "  %-62s %10d\n", name, counts[name])
			}
		}
	}
	isLandmark := func(name string) bool { return slices.Contains(landmarkNames[:], name) }
	isRequest := func(name string) bool {
		return strings.HasPrefix(name, "create ") || strings.HasPrefix(name, "lookup ")
	}
	isFault := func(name string) bool { return strings.HasPrefix(name, "fault ") }
	group("came to", isLandmark)
	group("requests", isRequest)
	group("transitions", func(n string) bool { return !isLandmark(n) && !isRequest(n) && !isFault(n) })
	group("runs with", isFault)
	fmt.Fprintln(w)
}

// Summarize writes what was covered, in a table of four lines.
func (c *Coverage) Summarize(w io.Writer) {
	met, all := c.Pairs()
	counts := c.counted()
	fmt.Fprintf(w, "  %-44s %12d\n", "runs", c.Runs)
	fmt.Fprintf(w, "  %-44s %12d\n", "calls of ports", c.Calls)
	fmt.Fprintf(w, "  %-44s %6d of %d\n", "situations, transitions, outcomes, faults", len(counts)-len(c.Missing()), len(counts))
	fmt.Fprintf(w, "  %-44s %6d of %d\n", "pairs of faults in one run", met, all)
}
