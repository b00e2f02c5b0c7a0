package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/leadonce/leadonce/properties/mutants/mutant"
)

// suite is a package whose tests are to notice the mutants.
type suite struct {
	folder string   // slashes, from the root
	left   string   // a pattern of tests that are left out
	args   []string // of the binary
}

// test is one test, and what it does when nothing is mutated.
type test struct {
	suite   suite
	name    string
	took    time.Duration
	steps   uint64
	reaches []byte // by mutant: 1 if the test comes by it
	failure string // without any mutation
}

// bench runs test binaries.
type bench struct {
	root, work string
	built      built
	total      int // mutants
}

// verdict is what became of a run.
type verdict int

const (
	passed verdict = iota
	failed
	late // it took too long, by the clock or by its steps
)

// memory is how much a process may take, in KiB of address space: a mutant that
// grows for ever must not take the machine with it.
const memory = 6_000_000

// run runs tests of one suite with a mutant, or with none (0).
func (b *bench) run(s suite, names []string, id int, steps uint64, limit time.Duration, env ...string) (verdict, string) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := []string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, memory), b.built.binary(s),
		"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.timeout", (2 * limit).String()}
	cmd := exec.CommandContext(ctx, "sh", append(args, s.args...)...)
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(s.folder))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "LEADONCE_MUTANT="+itoa(id))
	if steps > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("LEADONCE_MUTANT_STEPS=%d", steps))
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return passed, out.String()
	case ctx.Err() != nil, errors.As(err, &exit) && exit.ExitCode() == mutant.TooLong:
		return late, out.String()
	default:
		return failed, out.String()
	}
}

// list names the tests of the suite, fuzz tests with their seeds among them.
func (b *bench) list(s suite) ([]string, error) {
	cmd := exec.Command(b.built.binary(s), "-test.list", "^(Test|Fuzz)")
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(s.folder))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", s.folder, err)
	}
	var left *regexp.Regexp
	if s.left != "" {
		left = regexp.MustCompile(s.left)
	}
	var names []string
	for _, name := range strings.Fields(string(out)) {
		if left == nil || !left.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// baselineLimit is how long one test may take when nothing is mutated.
const baselineLimit = 3 * time.Minute

// baseline runs every test alone and without a mutation. It tells how long each
// takes and what it comes by. Those that fail notice nothing, and are left out.
func (b *bench) baseline(suites []suite, atOnce int) (sound, broken []test, err error) {
	var all []*test
	for _, s := range suites {
		names, err := b.list(s)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			all = append(all, &test{suite: s, name: name})
		}
	}
	parallel(atOnce, len(all), func(i int) {
		if e := b.measure(all[i], i); e != nil {
			all[i].failure = e.Error()
		}
	})
	for _, t := range all {
		if t.failure != "" {
			broken = append(broken, *t)
		} else {
			sound = append(sound, *t)
		}
	}
	sort.SliceStable(sound, func(i, j int) bool { return sound[i].took < sound[j].took })
	return sound, broken, nil
}

func (b *bench) measure(t *test, number int) error {
	name := filepath.Join(b.work, fmt.Sprintf("trace%d", number))
	if err := os.WriteFile(name, make([]byte, mutant.Header+b.total+1), 0o644); err != nil {
		return err
	}
	defer os.Remove(name)
	began := time.Now()
	v, out := b.run(t.suite, []string{t.name}, 0, 0, baselineLimit, "LEADONCE_MUTANT_TRACE="+name)
	t.took = time.Since(began)
	if v != passed {
		return errors.New(out)
	}
	trace, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	t.steps, t.reaches = binary.BigEndian.Uint64(trace), trace[mutant.Header:]
	return nil
}

// parallel calls f for 0 to n-1, a few at a time.
func parallel(atOnce, n int, f func(i int)) {
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			f(i)
		}()
	}
	for range atOnce {
		slots <- struct{}{}
	}
}
