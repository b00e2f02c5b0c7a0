package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// neighbourEnv names the file that this process shall append to as a second
// process; see neighbourMain.
const neighbourEnv = "LEADONCE_SQLITE_NEIGHBOUR"

const neighbourAppends = 100

// neighbourMain makes the test binary the second process: it says "ready",
// waits for a line, appends one event after the other, and says how it went.
func neighbourMain() {
	path := os.Getenv(neighbourEnv)
	if path == "" {
		return
	}
	fmt.Println(neighbour(path))
	os.Exit(0)
}

func neighbour(path string) string {
	ctx := context.Background()
	l, err := Open(ctx, path, Options{})
	if err != nil {
		return err.Error()
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err.Error()
	}
	for i := range neighbourAppends {
		if _, err := l.Append(ctx, fmt.Sprintf("neighbour-%d", i), eventlog.NoStream, event("from next door")); err != nil {
			return err.Error()
		}
		if _, err := l.Append(ctx, "shared", eventlog.Any, event("from next door")); err != nil {
			return err.Error()
		}
	}
	if err := l.Close(); err != nil {
		return err.Error()
	}
	return "done"
}

// Two processes append to one file while a third, a person in a shell, keeps
// the write lock for a second: nobody gets an error, and nothing is lost.
func TestTwoProcessesAndAPersonWithTheLock(t *testing.T) {
	path := newPath(t)
	l := open(t, path, Options{})
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), neighbourEnv+"="+path)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the neighbour says %q", lines.Text())
	}

	person := stranger(t, path)
	mustExec(t, person, "BEGIN IMMEDIATE")
	fmt.Fprintln(in, "go")
	done := make(chan error, 1)
	go func() {
		for i := range neighbourAppends {
			if _, err := l.Append(t.Context(), fmt.Sprintf("here-%d", i), eventlog.NoStream, event("from here")); err != nil {
				done <- err
				return
			}
			if _, err := l.Append(t.Context(), "shared", eventlog.Any, event("from here")); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	<-time.After(time.Second)
	mustExec(t, person, "ROLLBACK")

	if err := <-done; err != nil {
		t.Errorf("append: %v", err)
	}
	if !lines.Scan() || lines.Text() != "done" {
		t.Errorf("the neighbour says %q", lines.Text())
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if got, want := countAll(t, l), 4*neighbourAppends; got != want {
		t.Errorf("the log has %d events, want %d", got, want)
	}
	if got, want := count(t, l.ReadStream(t.Context(), "shared", 0)), 2*neighbourAppends; got != want {
		t.Errorf("the shared stream has %d events, want %d", got, want)
	}
}
