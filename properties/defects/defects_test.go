package defects

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/properties/sim"
)

// What is demanded of every defect. Times are printed and not judged: they are the
// machine's.
const (
	checks       = 20_000 // runs that one hunt may take
	mostSteps    = 20
	medianSteps  = 8
	medianChecks = 2_500
)

// hunts is from how many seeds each defect is looked for.
var hunts = func() int {
	if n, err := strconv.Atoi(os.Getenv("LEADONCE_HUNTS")); err == nil && n > 1 {
		return n
	}
	return 20
}()

// which defects are looked for: none, for a small sample; "all"; or those that are
// named, with commas between them. The story of a single one is told.
var which = os.Getenv("LEADONCE_DEFECTS")

// keep makes the run of all defects write the shortest plan of each, for the
// simulation to play for ever.
var keep = flag.Bool("keep", false, "write the plans that catch the defects into ../sim/testdata/plans")

// sample are the defects of a plain go test.
var sample = []string{"ConflictIsRefused", "AckOnLogError"}

// caught is what the hunts for one defect came to.
type caught struct {
	Defect
	finds []find
	err   error
}

// find is one line of the hunting program.
type find struct {
	Caught     bool         `json:"caught"`
	Checks     int          `json:"checks"`
	Took       int64        `json:"took_us"`
	Minimising int64        `json:"minimising_us"`
	Steps      int          `json:"steps"`
	Property   sim.Property `json:"property"`
	What       string       `json:"what"`
	Schedule   string       `json:"schedule"`
}

// TestEverySeededDefectIsCaught builds the engine with each of the defects and looks
// for it with runs of twenty different seeds.
func TestEverySeededDefectIsCaught(t *testing.T) {
	list := load(t)
	if which != "all" {
		names := sample
		if which != "" {
			names = strings.Split(which, ",")
		}
		t.Logf("a sample: %s; all with LEADONCE_DEFECTS=all", strings.Join(names, ", "))
		list = slices.DeleteFunc(list, func(d Defect) bool { return !slices.Contains(names, d.Name) })
	}
	results := make([]caught, len(list))
	var next sync.Mutex
	var wait sync.WaitGroup
	n := 0
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				next.Lock()
				i := n
				n++
				next.Unlock()
				if i >= len(list) {
					return
				}
				results[i] = try(t, list[i])
				t.Log(results[i].row())
			}
		})
	}
	wait.Wait()
	for _, c := range results {
		c.judge(t)
		if *keep && len(c.finds) > 0 {
			c.keep(t)
		}
	}
	table(t, results)
}

// try looks for the defect.
func try(t *testing.T, d Defect) caught {
	dir := t.TempDir()
	overlay, err := d.Overlay(absolute(t), dir)
	if err != nil {
		return caught{Defect: d, err: err}
	}
	if d.Test != "" {
		return caught{Defect: d, err: fails(t.Context(), d, overlay)}
	}
	program, err := build(t.Context(), dir, overlay)
	if err != nil {
		return caught{Defect: d, err: err}
	}
	defer os.Remove(program)
	finds, err := hunt(t.Context(), program, hunts, checks)
	return caught{d, finds, err}
}

func absolute(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build makes the hunting program with the defect, or without one.
func build(ctx context.Context, dir, overlay string) (string, error) {
	program := filepath.Join(dir, "hunt")
	args := []string{"build", "-ldflags", "-s -w", "-o", program}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	c := exec.CommandContext(ctx, "go", append(args, "./hunt")...)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return program, nil
}

// hunt runs the program. The machine may be busy with other things: the times are
// scaled by the share of a core that the program had.
func hunt(ctx context.Context, program string, hunts, checks int, more ...string) ([]find, error) {
	c := exec.CommandContext(ctx, program, append([]string{"-hunts", fmt.Sprint(hunts), "-checks", fmt.Sprint(checks)}, more...)...)
	c.Env = append(os.Environ(), "GOMAXPROCS=1")
	began := time.Now()
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("hunt: %w", err)
	}
	wall := time.Since(began)
	share := min(1, float64(c.ProcessState.UserTime()+c.ProcessState.SystemTime())/float64(wall))
	var finds []find
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var f find
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return nil, fmt.Errorf("hunt: %w", err)
		}
		f.Took, f.Minimising = int64(share*float64(f.Took)), int64(share*float64(f.Minimising))
		finds = append(finds, f)
	}
	if len(finds) != hunts {
		return nil, fmt.Errorf("hunt: %d lines, want %d", len(finds), hunts)
	}
	return finds, nil
}

// fails runs the test that has to catch the defect.
func fails(ctx context.Context, d Defect, overlay string) error {
	c := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count=1", "-timeout", "2m", "-run", "^"+d.Test+"$", "./"+d.Package)
	c.Dir = root
	out, err := c.CombinedOutput()
	switch {
	case err == nil:
		return errors.New("it survives")
	case !strings.Contains(string(out), "--- FAIL: "+d.Test):
		return fmt.Errorf("%s does not run:\n%s", d.Test, out)
	default:
		return nil
	}
}

// judge compares the hunts with what is demanded.
func (c caught) judge(t *testing.T) {
	if c.err != nil {
		t.Errorf("%s: %v", c.Name, c.err)
	}
	for i, f := range c.finds {
		switch {
		case !f.Caught:
			t.Errorf("%s survives the %d runs of hunt %d", c.Name, f.Checks, i)
		case !slices.Contains(c.Properties, f.Property):
			t.Errorf("%s is caught by %s, want %v: %s\n%s", c.Name, f.Property, c.Properties, f.What, f.Schedule)
		case f.Steps > mostSteps:
			t.Errorf("%s needs %d steps, want %d:\n%s", c.Name, f.Steps, mostSteps, f.Schedule)
		}
	}
}

// keep writes the shortest plan that catches the defect.
func (c caught) keep(t *testing.T) {
	shortest := slices.MinFunc(c.finds, func(a, b find) int { return cmp.Compare(a.Steps, b.Steps) })
	data, err := json.MarshalIndent(map[string]any{
		"schedule": shortest.Schedule, "broke": shortest.Property, "story": "with the seeded defect " + c.Name + ": " + c.Wrong,
	}, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join("..", "sim", "testdata", "plans", c.Name+".json"), append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Errorf("keep the plan of %s: %v", c.Name, err)
	}
}

func micro(n int64) time.Duration {
	return (time.Duration(n) * time.Microsecond).Round(10 * time.Microsecond)
}

const columns = "%-36s %-34s %14s %20s %8s %20s"

// row is the defect's line in the table.
func (c caught) row() string {
	switch {
	case c.err != nil:
		return fmt.Sprintf("%-36s %v", c.Name, c.err)
	case c.Test != "":
		return fmt.Sprintf("%-36s %s in %s", c.Name, c.Test, c.Package)
	}
	by := map[string]bool{}
	for _, f := range c.finds {
		by[string(f.Property)] = true
	}
	return fmt.Sprintf(columns, c.Name, strings.Join(slices.Sorted(maps.Keys(by)), " "),
		pair(column(c.finds, func(f find) int { return f.Checks })),
		pair(column(c.finds, func(f find) time.Duration { return micro(f.Took) })),
		pair(column(c.finds, func(f find) int { return f.Steps })),
		pair(column(c.finds, func(f find) time.Duration { return micro(f.Minimising) })))
}

// table prints what was found, and judges the medians over all defects.
func table(t *testing.T, results []caught) {
	lines := []string{"", fmt.Sprintf(columns, "defect", "caught by", "checks", "time to find", "steps", "time to shorten")}
	var steps, runs []int
	var took []time.Duration
	for _, c := range results {
		lines = append(lines, c.row())
		if len(c.finds) > 0 {
			n, _ := column(c.finds, func(f find) int { return f.Steps })
			d, _ := column(c.finds, func(f find) time.Duration { return micro(f.Took) })
			k, _ := column(c.finds, func(f find) int { return f.Checks })
			steps, runs, took = append(steps, n), append(runs, k), append(took, d)
		}
	}
	t.Log(strings.Join(lines, "\n"))
	if len(steps) == 0 {
		return
	}
	t.Logf("%d defects; at the median found in %s, after %d runs, with %d steps", len(results), middle(took), middle(runs), middle(steps))
	if m := middle(steps); m > medianSteps {
		t.Errorf("a defect needs %d steps at the median, want %d", m, medianSteps)
	}
	if m := middle(runs); m > medianChecks {
		t.Errorf("a defect is found after %d runs at the median, want %d", m, medianChecks)
	}
}

func column[N cmp.Ordered](finds []find, of func(find) N) (median, most N) {
	var list []N
	for _, f := range finds {
		list = append(list, of(f))
	}
	return middle(list), slices.Max(list)
}

func middle[N cmp.Ordered](list []N) N { return slices.Sorted(slices.Values(list))[len(list)/2] }

func pair[N any](median, most N) string { return fmt.Sprintf("%v/%v", median, most) }

// TestTheUndamagedEngineIsClean: the same hunts find nothing where nothing is wrong.
func TestTheUndamagedEngineIsClean(t *testing.T) {
	runs, first := 100, uint64(1_000)
	if which == "all" {
		runs = checks / 10
	}
	program, err := build(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []uint64{0, first} { // the seeds of the defects, and others
		finds, err := hunt(t.Context(), program, hunts/2, runs, "-first", fmt.Sprint(from))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range finds {
			if f.Caught {
				t.Errorf("%s: %s\nleadonce simulate --schedule '%s'", f.Property, f.What, f.Schedule)
			}
		}
	}
}

// TestOneDefectIsTold shows how the defect that LEADONCE_DEFECTS names is caught.
func TestOneDefectIsTold(t *testing.T) {
	if which == "" || which == "all" || strings.Contains(which, ",") {
		t.Skip("no defect is named: make defect NAME=RetryAfterTimeout")
	}
	list := load(t)
	i := slices.IndexFunc(list, func(d Defect) bool { return d.Name == which })
	if i < 0 {
		t.Fatalf("there is no defect %s", which)
	}
	d := list[i]
	t.Logf("%s: %s", d.Name, d.Wrong)
	dir := t.TempDir()
	overlay, err := d.Overlay(absolute(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	if d.Test != "" {
		if err := fails(t.Context(), d, overlay); err != nil {
			t.Fatal(err)
		}
		t.Logf("it is caught by %s in %s", d.Test, d.Package)
		return
	}
	program, err := build(t.Context(), dir, overlay)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "-tell").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s\n(this plan breaks its promise only while the defect is built in)", out)
}
