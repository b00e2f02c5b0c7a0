package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// partLabel is the label of goroutines in a profile.
const partLabel = "part"

// part is a row of the table: a sample belongs to the part of the innermost of
// its functions that is under one of the prefixes.
type part struct{ prefix, name string }

const house = "github.com/leadonce/leadonce/"

// parts of the program, and of whatever it calls.
var parts = []part{
	{house + "engine/eventlog", "log (sqlite)"},
	{house + "projections", "read models (sqlite)"},
	{house + "engine/crm", "CRM client"},
	{house + "engine", "engine"},
	{house + "ingress", "ingress"},
	{"main.", "runner and log lines"},
	{house + "cmd", "runner and log lines"},
}

// idle are functions at the root of a stack that no part of the program called.
var idle = []part{
	{"runtime.gcBgMarkWorker", "garbage collector"},
	{"runtime.bgsweep", "garbage collector"},
	{"runtime.bgscavenge", "garbage collector"},
	{"net/http.(*persistConn)", "CRM client"},
	{"net/http.(*Transport)", "CRM client"},
	{"net/http.(*conn).serve", "ingress"},
	{"net/http.(*Server)", "ingress"},
	{"database/sql.", "read models (sqlite)"},
}

// printShares prints what each part took, from a CPU profile of measured in which
// so many jobs were finished: of the machine, and of a core for one job.
func printShares(b *testing.B, profile string, jobs int) {
	b.Helper()
	out, err := exec.Command("go", "tool", "pprof", "-traces", "-unit=us", profile).Output()
	if err != nil {
		b.Fatalf("go tool pprof: %v", err)
	}
	shares := map[string]time.Duration{}
	for _, s := range samples(out) {
		shares[s.part()] += s.took
	}
	if shares["engine"] == 0 || shares["log (sqlite)"] == 0 {
		b.Errorf("the profile shows no engine or no log: %v", shares)
	}
	cores := runtime.GOMAXPROCS(0)
	used := time.Duration(0)
	row := func(name string, took time.Duration) {
		fmt.Printf("# %-28s %5.1f %% %6d\n", name, 100*float64(took)/float64(cores)/float64(measured), took.Microseconds()/int64(jobs))
	}
	fmt.Printf("\n# share of %d cores %21s µs a job\n", cores, "")
	names := slices.SortedFunc(maps.Keys(shares), func(x, y string) int { return cmp.Compare(shares[y], shares[x]) })
	for _, name := range names {
		used += shares[name]
		row(name, shares[name])
	}
	row("idle, or other processes", time.Duration(cores)*measured-used)
}

// sample is one stack of a profile, with the time spent in it.
type sample struct {
	took  time.Duration
	label string
	stack []string // innermost first
}

// samples reads what `go tool pprof -traces` prints: blocks between lines of
// dashes, labels first, then the value in front of the innermost function.
func samples(text []byte) []sample {
	var list []sample
	var s sample
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "-----------+") {
			list, s = append(list, s), sample{}
			continue
		}
		if label, ok := strings.CutPrefix(line, partLabel+":"); ok {
			s.label = strings.TrimSpace(label)
			continue
		}
		if len(s.stack) == 0 {
			value, function, _ := strings.Cut(line, " ")
			took, err := time.ParseDuration(value)
			if err != nil {
				continue // the header
			}
			s.took, line = took, strings.TrimSpace(function)
		}
		s.stack = append(s.stack, line)
	}
	return append(list, s)
}

func (s sample) part() string {
	switch s.label {
	case "crmsim":
		return "crmsim (the simulated CRM)"
	case "load":
		return "load (the client)"
	}
	for _, function := range s.stack {
		if name, ok := under(parts, function); ok {
			return name
		}
	}
	for _, function := range s.stack {
		if name, ok := under(idle, function); ok {
			return name
		}
	}
	return "Go scheduler and the rest"
}

func under(list []part, function string) (name string, ok bool) {
	for _, p := range list {
		if strings.HasPrefix(function, p.prefix) {
			return p.name, true
		}
	}
	return "", false
}
