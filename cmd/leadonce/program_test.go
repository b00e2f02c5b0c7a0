package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"
)

// patience is after how long a condition that does not come true fails a test.
// It is reached by failures only.
const patience = 60 * time.Second

// program is leadonce as a process, with all it printed so far.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	err   error         // of Wait; behind ended

	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed by the next output
}

func launch(dir string, env []string, name string, args ...string) (*program, error) {
	p := &program{cmd: exec.Command(name, args...), ended: make(chan struct{}), grown: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, env
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Write takes the process's output.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.grown)
	p.grown = make(chan struct{})
	return p.text.Write(b)
}

func (p *program) output() (text string, grown <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String(), p.grown
}

// await waits until the output matches, and returns the first match's groups.
func (p *program) await(pattern string) ([]string, error) {
	return p.awaitCount(pattern, 1)
}

func (p *program) awaitCount(pattern string, n int) ([]string, error) {
	re := regexp.MustCompile(pattern)
	late := time.After(patience)
	for {
		text, grown := p.output()
		if found := re.FindAllStringSubmatch(text, n); len(found) == n {
			return found[0], nil
		}
		select {
		case <-grown:
		case <-p.ended:
			if text, _ := p.output(); len(re.FindAllStringIndex(text, n)) < n {
				return nil, fmt.Errorf("ended (%v) without %q in its output:\n%s", p.err, pattern, text)
			}
		case <-late:
			return nil, fmt.Errorf("no %q in the output:\n%s", pattern, text)
		}
	}
}

func (p *program) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) } // one that is gone is told by exit

// exit waits for the end and returns the exit status; -1 for a signal's.
func (p *program) exit() (int, error) {
	select {
	case <-p.ended:
		if failure := (*exec.ExitError)(nil); p.err != nil && !errors.As(p.err, &failure) {
			return 0, p.err
		}
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(patience):
		text, _ := p.output()
		return 0, fmt.Errorf("does not end; its output:\n%s", text)
	}
}

// gone is an error while it runs.
func (p *program) gone() error {
	select {
	case <-p.ended:
		return nil
	default:
		return errors.New("it still runs")
	}
}

func (p *program) kill() {
	p.signal(os.Kill)
	<-p.ended
}

// poll asks until the answer is yes.
func poll(ask func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !ask() {
		select {
		case <-tick.C:
		case <-late:
			return fmt.Errorf("still not so after %s", patience)
		}
	}
	return nil
}

// eventually asks until there is no error any more.
func eventually(t *testing.T, ask func() error) {
	t.Helper()
	var last error
	if err := poll(func() bool { last = ask(); return last == nil }); err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

// get is the answer to a GET.
func get(url string) (status int, body string, err error) {
	response, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}
