package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leadonce/leadonce/engine/crm"
)

// version begins every schedule. It changes with the meaning of any part of one.
const version = "s1"

// letters name the kinds of steps in a schedule.
const letters = "dpruwtckloyf"

// String is the plan as a schedule: one word that a shell takes as it is, and
// that ParseSchedule reads.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s.p%dw%da%d", version, p.Class, p.Processes, p.Workers, p.Attempts)
	if p.Snapshots {
		b.WriteString("n")
	}
	if p.Steady {
		b.WriteString("j")
	}
	if p.Share {
		b.WriteString("s")
	}
	if p.Stepped {
		b.WriteString("t" + strconv.Itoa(p.Culprit))
	}
	if p.Limited {
		b.WriteString("l")
	}
	fmt.Fprintf(&b, ".f%x.r%x.c%s.u%s.", p.Faults, p.Refused, numbers(p.Clocks), numbers(p.Updates))
	for i, s := range p.Steps {
		if i > 0 {
			b.WriteByte('_')
		}
		b.WriteByte(letters[s.Kind%kinds])
		said := []int{s.A, s.N, s.F}
		for len(said) > 0 && said[len(said)-1] == 0 {
			said = said[:len(said)-1]
		}
		b.WriteString(numbers(said))
	}
	return b.String()
}

func numbers(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, "-")
}

// ParseSchedule reads what String wrote. Its error says which part is wrong.
func ParseSchedule(s string) (Plan, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 8 || parts[0] != version {
		return Plan{}, fmt.Errorf("a schedule has 8 parts between dots and begins with %s", version)
	}
	var p Plan
	var err error
	if p.Class, err = crm.ParseClass(parts[1]); err != nil {
		return Plan{}, err
	}
	size, limited := strings.CutSuffix(parts[2], "l")
	p.Limited = limited
	size, culprit, stepped := strings.Cut(size, "t")
	if p.Stepped, p.Culprit = stepped, strings.Index("012", culprit); stepped && (len(culprit) != 1 || p.Culprit < 0) {
		return Plan{}, fmt.Errorf("schedule: behind the t in %q stands which step is refused: 0, 1 or 2", parts[2])
	}
	size, p.Share = strings.CutSuffix(size, "s")
	size, p.Steady = strings.CutSuffix(size, "j")
	size, p.Snapshots = strings.CutSuffix(size, "n")
	if _, err := fmt.Sscanf(size, "p%dw%da%d", &p.Processes, &p.Workers, &p.Attempts); err != nil || size != fmt.Sprintf("p%dw%da%d", p.Processes, p.Workers, p.Attempts) {
		return Plan{}, fmt.Errorf("schedule: %q is not of the form p2w1a3", parts[2])
	}
	if p.Faults, err = bits(parts[3], "f"); err != nil {
		return Plan{}, err
	}
	if p.Refused, err = bits(parts[4], "r"); err != nil {
		return Plan{}, err
	}
	if p.Clocks, err = list(parts[5], "c"); err != nil {
		return Plan{}, err
	}
	if p.Updates, err = list(parts[6], "u"); err != nil {
		return Plan{}, err
	}
	if p.Steps, err = steps(parts[7]); err != nil {
		return Plan{}, err
	}
	return p, p.Check()
}

func bits(s, letter string) (uint64, error) {
	rest, ok := strings.CutPrefix(s, letter)
	n, err := strconv.ParseUint(rest, 16, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("schedule: %q is not %s and a hexadecimal number", s, letter)
	}
	return n, nil
}

func list(s, letter string) ([]int, error) {
	rest, ok := strings.CutPrefix(s, letter)
	if !ok {
		return nil, fmt.Errorf("schedule: %q does not begin with %s", s, letter)
	}
	if rest == "" {
		return nil, nil
	}
	var numbers []int
	for _, word := range strings.Split(rest, "-") {
		n, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("schedule: %q in %q is no number", word, s)
		}
		numbers = append(numbers, int(n))
	}
	return numbers, nil
}

func steps(s string) ([]Step, error) {
	if s == "" {
		return nil, nil
	}
	var steps []Step
	for _, word := range strings.Split(s, "_") {
		if word == "" {
			return nil, fmt.Errorf("schedule: an empty step")
		}
		kind := strings.IndexByte(letters, word[0])
		numbers, err := list(word, word[:1])
		if kind < 0 || err != nil || len(numbers) > 3 {
			return nil, fmt.Errorf("schedule: %q is no step: one of %s and at most three numbers", word, letters)
		}
		numbers = append(numbers, 0, 0, 0)
		steps = append(steps, Step{Kind(kind), numbers[0], numbers[1], numbers[2]})
	}
	return steps, nil
}

// maxSteps and maxUpdates bound what a plan from outside may ask for.
const (
	maxSteps   = 10_000
	maxUpdates = 64
)

// Check returns an error that names what is out of range.
func (p Plan) Check() error {
	_, err := crm.ParseClass(string(p.Class))
	switch {
	case err != nil:
		return err
	case p.Processes < 1 || p.Processes > MaxProcesses:
		return fmt.Errorf("plan: %d processes, want 1 to %d", p.Processes, MaxProcesses)
	case p.Workers < 1 || p.Workers > MaxWorkers:
		return fmt.Errorf("plan: %d workers, want 1 to %d", p.Workers, MaxWorkers)
	case p.Attempts < 1 || p.Attempts > 100:
		return fmt.Errorf("plan: %d attempts, want 1 to 100", p.Attempts)
	case p.Culprit < 0 || p.Culprit >= len(leadSteps) || !p.Stepped && p.Culprit > 0:
		return fmt.Errorf("plan: step %d of a lead is refused, want 0 to %d, and 0 for a lead of one step", p.Culprit, len(leadSteps)-1)
	case len(p.Updates) == 0 || len(p.Updates) > maxUpdates || len(p.Clocks) > MaxProcesses:
		return fmt.Errorf("plan: %d updates and %d clocks, want 1 to %d and at most %d", len(p.Updates), len(p.Clocks), maxUpdates, MaxProcesses)
	case len(p.Steps) > maxSteps:
		return fmt.Errorf("plan: %d steps, at most %d", len(p.Steps), maxSteps)
	case slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind >= kinds || s.A < 0 || s.N < 0 || s.F < 0 }):
		return fmt.Errorf("plan: a step of an unknown kind or with a negative number")
	default:
		return nil
	}
}
