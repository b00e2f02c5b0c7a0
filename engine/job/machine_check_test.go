package job

import (
	"fmt"
	"slices"
)

// tableProblems says what is wrong with a transition table for the given events,
// in words; nothing for a sound one.
func tableProblems(table []transition, events []string) []string {
	var problems []string
	problems = append(problems, pairProblems(table)...)
	problems = append(problems, triggerProblems(table, events)...)
	problems = append(problems, phaseProblems(table)...)
	return problems
}

// pairProblems finds pairs of event and phase that stand in the table twice.
func pairProblems(table []transition) []string {
	type pair struct {
		event string
		from  Phase
	}
	var problems []string
	seen := map[pair]Phase{}
	for _, row := range table {
		for _, from := range row.from {
			p := pair{row.event, from}
			to := destination(row, from)
			if first, twice := seen[p]; twice && first != to {
				problems = append(problems, fmt.Sprintf("%s from %s leads to %s and to %s", row.event, from, first, to))
			} else if twice {
				problems = append(problems, fmt.Sprintf("%s from %s stands twice", row.event, from))
			}
			seen[p] = to
		}
	}
	return problems
}

// triggerProblems compares the rows' events with the event types.
func triggerProblems(table []transition, events []string) []string {
	var problems []string
	used := map[string]bool{}
	reached := reachable(table)
	for _, row := range table {
		if !slices.Contains(events, row.event) {
			problems = append(problems, fmt.Sprintf("%s is no event type", row.event))
		}
		if slices.ContainsFunc(row.from, func(p Phase) bool { return reached[p] }) {
			used[row.event] = true
		}
	}
	for _, e := range events {
		if !used[e] {
			problems = append(problems, fmt.Sprintf("%s can never happen", e))
		}
	}
	return problems
}

// phaseProblems finds phases that nothing leads to, that nothing leads out of,
// that are misspelled, or that may not be left.
func phaseProblems(table []transition) []string {
	var problems []string
	reached := reachable(table)
	for _, p := range Phases {
		if !reached[p] {
			problems = append(problems, fmt.Sprintf("nothing leads to %s", p))
		}
		if !endable(table, p) {
			problems = append(problems, fmt.Sprintf("nothing leads from %s to an end", p))
		}
	}
	for _, row := range table {
		for _, from := range row.from {
			to := destination(row, from)
			switch {
			case !slices.Contains(Phases, from) || !slices.Contains(Phases, to):
				problems = append(problems, fmt.Sprintf("%s: %s or %s is no phase", row.event, from, to))
			case from == Done && to != Done:
				problems = append(problems, fmt.Sprintf("%s leaves done", row.event))
			case to == New:
				problems = append(problems, fmt.Sprintf("%s leads back to new", row.event))
			case from == DeadLetter && to != DeadLetter && row.event != (JobRequeued{}).Name():
				problems = append(problems, fmt.Sprintf("%s leaves dead_letter without an operator", row.event))
			}
		}
	}
	return problems
}

func destination(row transition, from Phase) Phase {
	if row.to == "" {
		return from
	}
	return row.to
}

// reachable is every phase that a new job can come to.
func reachable(table []transition) map[Phase]bool {
	reached := map[Phase]bool{New: true}
	for range Phases {
		for _, row := range table {
			for _, from := range row.from {
				if reached[from] {
					reached[destination(row, from)] = true
				}
			}
		}
	}
	return reached
}

// endable reports whether a job in phase p can come to a final phase.
func endable(table []transition, p Phase) bool {
	ends := map[Phase]bool{Done: true, DeadLetter: true}
	for range Phases {
		for _, row := range table {
			for _, from := range row.from {
				if ends[destination(row, from)] {
					ends[from] = true
				}
			}
		}
	}
	return ends[p]
}
