package eventlogtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// killLosesNothing kills a process in the midst of its appends, some times on
// one store, and looks for what it had acknowledged. It shows that no
// acknowledged event lives in the process only. What the machine's own death
// would leave (fsync) it cannot show.
func killLosesNothing(s *scene) {
	const rounds = 4
	dir := s.TempDir()
	var acks []ack
	for round := range rounds {
		p := s.startChild(child{Dir: dir, Name: fmt.Sprintf("r%d", round)})
		p.read(1 + rand.IntN(60))
		acks = append(acks, p.kill()...)
		s.checkAcks(dir, acks)
	}
}

// twoProcesses lets two processes append to one store. One is killed in the
// midst of it; the other must be able to go on.
func twoProcesses(s *scene) {
	const rounds = 2
	dir := s.TempDir()
	var acks []ack
	for round := range rounds {
		a := s.startChild(child{Dir: dir, Name: fmt.Sprintf("a%d", round)})
		b := s.startChild(child{Dir: dir, Name: fmt.Sprintf("b%d", round)})
		a.read(1 + rand.IntN(30))
		b.read(1 + rand.IntN(30))
		a.read(30)
		acks = append(acks, a.kill()...)
		b.read(40)
		acks = append(acks, b.kill()...)
		s.checkAcks(dir, acks)
	}
}

// process is a running child.
type process struct {
	s      *scene
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	stderr bytes.Buffer
	acks   []ack
}

func (s *scene) startChild(c child) *process {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	orders, err := json.Marshal(c)
	if err != nil {
		s.Fatal(err)
	}
	p := &process{s: s, cmd: exec.CommandContext(s.ctx, self)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(orders))
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	p.stdout = bufio.NewScanner(stdout)
	return p
}

// read waits for n more acknowledgements. A child that ends before is a failure.
func (p *process) read(n int) {
	p.s.Helper()
	for range n {
		if !p.next() {
			p.cmd.Wait()
			p.s.Fatalf("child ended after %d acknowledgements: %s", len(p.acks), p.stderr.String())
		}
	}
}

func (p *process) next() bool {
	p.s.Helper()
	if !p.stdout.Scan() {
		return false
	}
	a, err := parseAck(p.stdout.Text())
	if err != nil {
		p.s.Fatalf("child wrote %q (%v); does TestMain call ChildMain first?", p.stdout.Text(), err)
	}
	p.acks = append(p.acks, a)
	return true
}

// kill is SIGKILL. It returns all that the child has acknowledged, which
// includes what it wrote before it died.
func (p *process) kill() []ack {
	p.s.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.s.Fatalf("kill child: %v: %s", err, p.stderr.String())
	}
	for p.next() {
	}
	p.cmd.Wait() // "signal: killed"
	return p.acks
}

// checkAcks opens the store and fails the case when something acknowledged is
// missing, when an append is there in part, or when the log cannot go on.
func (s *scene) checkAcks(dir string, acks []ack) {
	s.Helper()
	log, err := s.backend.Crash(dir)
	if err != nil {
		s.Fatalf("open after kill -9: %v", err)
	}
	if c, ok := log.(io.Closer); ok {
		defer c.Close()
	}
	s.log = log
	s.verify()
	all := s.all()
	seen := make(map[eventlog.EventID]bool)
	streams := make(map[string][]eventlog.Recorded)
	for _, r := range all {
		if seen[r.ID] {
			s.Errorf("event %s is there twice", r.ID)
		}
		seen[r.ID] = true
		streams[r.Stream] = append(streams[r.Stream], r)
	}
	for name, events := range streams {
		if why := whole(events); why != "" {
			s.Errorf("stream %s has a part of an append: %s", name, why)
		}
	}
	last := make(map[string]ack)
	lost := 0
	for _, a := range acks {
		if !a.isIn(streams[a.stream]) {
			lost++
		}
		if a.stream == a.ownStream() {
			last[a.stream] = a
		}
	}
	if lost > 0 {
		s.Errorf("%d of %d acknowledged appends are not there", lost, len(acks))
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		s.goesOn(last[name], streams[name])
	}
	s.log = nil
}

// isIn reports whether the stream has the events of a where a says.
func (a ack) isIn(stream []eventlog.Recorded) bool {
	events := a.events()
	first := int(a.revision) + 1 - len(events)
	if first < 0 || first+len(events) > len(stream) {
		return false
	}
	for i, p := range events {
		if differs(stream[first+i], a.stream, p) != "" {
			return false
		}
	}
	return true
}

// goesOn repeats the last append that was acknowledged on a stream, and writes
// one more.
func (s *scene) goesOn(a ack, stream []eventlog.Recorded) {
	s.Helper()
	events := a.events()
	expected := eventlog.NoStream
	if before := int(a.revision) - len(events); before >= 0 {
		expected = eventlog.Exactly(uint64(before))
	}
	at := s.append(a.stream, expected, events...)
	if at.Revision != a.revision {
		s.Errorf("repeated after kill -9, an append to %s ends at revision %d, want %d", a.stream, at.Revision, a.revision)
	}
	tail := uint64(len(stream) - 1)
	at = s.append(a.stream, eventlog.Exactly(tail), batch("after", 1)...)
	if at.Revision != tail+1 {
		s.Errorf("after kill -9, an append to %s ends at revision %d, want %d", a.stream, at.Revision, tail+1)
	}
}
