package projections_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/projections"
)

// feedVariable names the file that this test binary shall feed instead of
// running tests; with foreverVariable it goes on until it is killed.
const (
	feedVariable    = "LEADONCE_TEST_FEED"
	foreverVariable = "LEADONCE_TEST_FEED_FOREVER"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(feedVariable); path != "" {
		if err := feedAsChild(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// sharedLog is the same in every process: its ids and times are counted.
func sharedLog(t failer) *scribe {
	w := &scribe{log: memory.New(), now: epoch}
	const jobs = 1_000
	for i := range jobs {
		w.receive(t, message(7, int64(i), "text"))
	}
	for i := range jobs {
		w.claim(t, w.jobs[i])
		w.tell(t, w.jobs[i], w.jobs[i].state.Repeat()...)
	}
	return w
}

// feedAsChild catches up in many small steps, a line after each.
func feedAsChild(path string) error {
	w := sharedLog(panicker{})
	s, err := projections.Open(context.Background(), path, projections.Options{})
	if err != nil {
		return err
	}
	for n := 0; n < w.events; {
		n = min(n+50, w.events)
		if err := s.CatchUp(context.Background(), shortLog{w.log, n}, nil); err != nil {
			return err
		}
		fmt.Println(n)
	}
	for os.Getenv(foreverVariable) != "" {
		if err := s.Rebuild(context.Background(), w.log, nil); err != nil {
			return err
		}
	}
	return s.Close()
}

type panicker struct{}

func (panicker) Helper() {}

func (panicker) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// child is a process that feeds the file.
type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, path string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), feedVariable+"="+path), env...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return &child{cmd, bufio.NewScanner(out)}
}

// read reads up to n lines.
func (c *child) read(n int) (last string) {
	for ; n > 0 && c.lines.Scan(); n-- {
		last = c.lines.Text()
	}
	return last
}

func (c *child) wait(t *testing.T) {
	t.Helper()
	last := c.read(1 << 30)
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("a feeding process: %v: %s", err, last)
	}
}

// TestTwoProcessesFeedOneFile at the same time, step by step.
func TestTwoProcessesFeedOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "models.db")
	a, b := startChild(t, path), startChild(t, path)
	a.wait(t)
	b.wait(t)
	checkDump(t, path, rebuiltDump(t, sharedLog(t)))
}

// TestKilledProcessesLoseNothing: each is killed somewhere, in a step or in a
// rebuild; the last one ends.
func TestKilledProcessesLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "models.db")
	for steps := 1; steps <= 9; steps += 2 {
		c := startChild(t, path, foreverVariable+"=yes")
		if line := c.read(steps); strings.Contains(line, " ") {
			t.Fatalf("a feeding process: %s", line)
		}
		must(t, c.cmd.Process.Signal(os.Kill))
		if err := c.cmd.Wait(); err == nil {
			t.Fatal("the process ended before it was killed")
		}
	}
	startChild(t, path).wait(t)
	checkDump(t, path, rebuiltDump(t, sharedLog(t)))
}
