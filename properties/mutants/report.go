package main

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }

// tell says how long the tests take when nothing is mutated, and which of them
// fail even so.
func (p *project) tell(sound, broken []test) {
	var all time.Duration
	for _, t := range sound {
		all += t.took
	}
	p.say(fmt.Sprintf("%d tests pass without a mutation, and take %s in all; the slowest:", len(sound), all.Round(time.Second)))
	for _, t := range sound[max(0, len(sound)-8):] {
		p.say(fmt.Sprintf(" %s %.1fs", t.name, t.took.Seconds()))
	}
	p.say("\n")
	for _, t := range broken {
		first := t.failure
		if len(first) > 600 {
			first = first[:600] + "…"
		}
		p.say(fmt.Sprintf("LEFT OUT, it fails without a mutation: %s %s\n%s\n", t.suite.folder, t.name, first))
	}
}

// progress says how far the hunt is.
func (p *project) progress(done, of int, began time.Time, f fate) {
	if p.shows {
		p.say(fmt.Sprintf("%s\n%s\n", f.mutant.Key(), f.output))
	}
	switch {
	case f.verdict == passed && !f.reached:
		p.say(fmt.Sprintf("  no test comes by line %d: %s\n", f.mutant.Line, f.mutant.Key()))
	case f.verdict == passed:
		p.say(fmt.Sprintf("  survives line %d: %s\n", f.mutant.Line, f.mutant.Key()))
	}
	if step := max(1, of/20); done%step == 0 {
		p.say(fmt.Sprintf("%d of %d after %s\n", done, of, since(began)))
	}
}

// report is what a hunt came to.
type report struct {
	fates      []fate
	dropped    []Mutant
	equivalent int
	wrong      []fate // listed as equivalent, and noticed
	broken     int    // tests that were left out
	took       time.Duration
}

// setAside takes equivalents that were run out of the score.
func (r *report) setAside(known map[int]string) {
	var rest []fate
	for _, f := range r.fates {
		switch {
		case known[f.mutant.ID] == "":
			rest = append(rest, f)
		case f.verdict == passed:
			r.equivalent++
		default:
			r.equivalent++
			r.wrong = append(r.wrong, f)
		}
	}
	r.fates = rest
}

func (r report) count(v verdict) int {
	n := 0
	for _, f := range r.fates {
		if f.verdict == v {
			n++
		}
	}
	return n
}

// score is how many of the mutants were noticed, in percent.
func (r report) score() float64 {
	if len(r.fates) == 0 {
		return 100
	}
	return 100 * float64(len(r.fates)-r.count(passed)) / float64(len(r.fates))
}

func (r report) String() string {
	var b strings.Builder
	by := map[string]*report{}
	var names []string
	for _, f := range r.fates {
		name := f.mutant.File
		if by[name] == nil {
			by[name] = &report{}
			names = append(names, name)
		}
		by[name].fates = append(by[name].fates, f)
	}
	sort.Strings(names)
	fmt.Fprintf(&b, "\n%-28s mutants  killed  late  survived   score\n", "file")
	for _, name := range names {
		fmt.Fprintln(&b, by[name].row(name))
	}
	fmt.Fprintln(&b, r.row("all"))
	fmt.Fprintf(&b, "beside these: %d equivalent by review, %d that do not compile, %d tests left out; took %s\n",
		r.equivalent, len(r.dropped), r.broken, r.took.Round(time.Second))
	r.section(&b, "noticed only because they took too long", late)
	r.section(&b, "survivors", passed)
	for _, f := range r.wrong {
		fmt.Fprintf(&b, "listed as equivalent, and noticed by %s: %s\n", f.by, f.mutant.Key())
	}
	for _, m := range r.dropped {
		fmt.Fprintf(&b, "does not compile: line %d: %s\n", m.Line, m.Key())
	}
	return b.String()
}

func (r report) row(name string) string {
	return fmt.Sprintf("%-28s %7d %7d %5d %9d  %5.1f %%", name, len(r.fates), r.count(failed), r.count(late), r.count(passed), r.score())
}

func (r report) section(b *strings.Builder, title string, v verdict) {
	if r.count(v) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, f := range r.fates {
		if f.verdict == v {
			unreached := ""
			if v == passed && !f.reached {
				unreached = " (no test comes by it)"
			}
			fmt.Fprintf(b, "%s:%d%s\n    %s\n", f.mutant.File, f.mutant.Line, unreached, f.mutant.Key())
		}
	}
}
