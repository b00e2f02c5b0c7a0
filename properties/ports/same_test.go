package ports

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// step is an operation with everything that it refers to filled in.
type step struct {
	operation
	call    call
	from    uint64
	behind  int
	place   seen // of a checkpoint
	ordinal int  // of a checkpoint
}

// resolve fills in what the operation refers to.
func (p *past) resolve(o operation) step {
	s := step{operation: o}
	if o.Kind == appending || o.Kind == repeating {
		s.call = p.call(o)
	}
	s.from = uint64(o.Number % (len(p.model.stream(names[o.Stream])) + 2))
	if o.Expected == largest {
		s.from = math.MaxUint64
	}
	s.behind = o.Number % (len(p.model.all) + 2)
	s.place.stream, s.ordinal = names[o.Stream], s.behind
	if n := len(p.model.all); n > 0 {
		s.place = p.model.all[o.Number%n]
		s.ordinal = s.place.ordinal
		switch o.Away {
		case 1:
			s.place.stream = names[o.Stream]
		case 2:
			s.place.revision++
		case 3:
			s.place.id[3] ^= 1
		case 4:
			s.ordinal = o.Content % (n + 2)
		}
	}
	return s
}

// ask is what the model answers.
func (m *model) ask(s step) answer {
	var a answer
	switch s.Kind {
	case readStream:
		a = m.readStream(names[s.Stream], s.from, s.Ended)
	case readAll:
		a = m.readAll(s.behind, s.Ended)
	case readTail:
		return m.tail(s.Ended)
	case checkpoint:
		return m.belongs(s.place, s.ordinal, s.Ended)
	case reopening:
		return m.readAll(0, false)
	default:
		return m.append(s.call, s.Ended)
	}
	if s.Limit > 0 {
		a.events = a.events[:min(s.Limit, len(a.events))]
	}
	return a
}

// differ runs a history over the subjects and the model; it says where the
// first of them leaves the model, or nothing.
func differ(history []operation, met map[string]int, subjects ...*subject) string {
	p := &past{model: &model{}}
	for i, o := range append(history, operation{Kind: readAll}, operation{Kind: reopening}) {
		if o.Kind == reopening {
			o.Ended = false
		}
		s := p.resolve(o)
		want := p.model.ask(s)
		met[string(o.Kind)+", "+want.class]++
		if want.class == "ok" && s.call.events != nil && want.events == nil {
			met["a repeat that adds nothing"]++
		}
		for _, subject := range subjects {
			if got := subject.ask(s); !got.same(want) {
				return fmt.Sprintf("step %d, %+v, append to %.30s expecting %s of %d:\n  %s: %v\n  the port: %v",
					i, o, s.call.stream, s.call.expected, len(s.call.events), subject.name, got, want)
			}
		}
	}
	return ""
}

// TestLogsAnswerAsThePortSays runs drawn histories over the log in memory, the
// log in a file and the model.
func TestLogsAnswerAsThePortSays(t *testing.T) {
	folders := []string{t.TempDir(), scratch(t)} // every second one where a sync costs little
	checks, rounds := 0, 0
	met := map[string]int{}
	seed := number(t, "rapid.seed")
	defer otherSeed(t, seed, 0)
	rounds = whileTime(t, func(round int) {
		otherSeed(t, seed, round)
		rapid.Check(t, func(t *rapid.T) {
			history := drawHistory.Draw(t, "history")
			folder, err := os.MkdirTemp(folders[checks%2], "")
			if err != nil {
				t.Fatal(err)
			}
			file, closeAll, err := onDisk(folder)
			if err != nil {
				t.Fatal(err)
			}
			difference := differ(history, met, inMemory(), file)
			if err := closeAll(); err != nil {
				t.Fatal(err)
			}
			if difference != "" {
				t.Fatalf("%s", difference)
			}
			checks++
		})
	})
	if want := rounds * drawnChecks(t); checks != want {
		t.Errorf("%d histories were run, want %d", checks, want)
	}
	t.Logf("%d histories: %v", checks, met)
	if checks < 50 {
		return // too few to meet everything
	}
	for _, answer := range []string{
		"append, ok", "append, conflict", "append, invalid", "append, unavailable", "repeat, ok", "repeat, conflict",
		"a repeat that adds nothing", "read stream, ok", "read stream, invalid", "read stream, unavailable", "read all, ok",
		"read all, unavailable", "tail, ok", "checkpoint, ok", "checkpoint, unavailable", "reopen, ok",
	} {
		if met[answer] == 0 {
			t.Errorf("no history came to: %s", answer)
		}
	}
}

// drawnChecks is how many checks rapid makes. Near a deadline it makes fewer and
// is silent about it.
func drawnChecks(t *testing.T) int {
	n := int(number(t, "rapid.checks"))
	if testing.Short() {
		n /= 5
	}
	return n
}

// TestDifferencesAreFound: each way to be wrong is found in a few histories.
func TestDifferencesAreFound(t *testing.T) {
	const limit = 100
	found := 0
	for name, wrong := range wrongAnswers {
		t.Run(name, func(t *testing.T) {
			for i := range limit {
				s := inMemory()
				s.name, s.handles = name, []eventlog.Log{wrong(s.handles[0])}
				if differ(drawHistory.Example(i), map[string]int{}, s) != "" {
					found++
					t.Logf("found by history %d", i)
					return
				}
			}
			t.Errorf("not found in %d histories", limit)
		})
	}
	if found != len(wrongAnswers) {
		t.Errorf("%d of %d were found", found, len(wrongAnswers))
	}
	for i := range limit {
		if d := differ(drawHistory.Example(i), map[string]int{}, inMemory()); d != "" {
			t.Fatalf("the sound log is said to differ: %s", d)
		}
	}
}

// TestDifferencesShrink: what is reported is short.
func TestDifferencesShrink(t *testing.T) {
	const enough = "500" // histories, to meet it once
	before := flag.Lookup("rapid.checks").Value.String()
	defer flag.Set("rapid.checks", before)
	if err := flag.Set("rapid.checks", enough); err != nil {
		t.Fatal(err)
	}
	var shortest []operation
	said := &mute{name: t.Name()}
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine
		defer close(done)
		rapid.Check(said, func(t *rapid.T) {
			history := drawHistory.Draw(t, "history")
			s := inMemory()
			s.handles = []eventlog.Log{wrongAnswers["a repeat is known only while it is the newest"](s.handles[0])}
			if d := differ(history, map[string]int{}, s); d != "" {
				shortest = history
				t.Fatalf("%s", d)
			}
		})
	}()
	<-done
	if !said.failed {
		t.Fatal("not found")
	}
	if len(shortest) > 3 {
		t.Errorf("the history has %d operations, want 3: append, append, repeat the first:\n%#v\n%s", len(shortest), shortest, said.text.String())
	}
}

// mute is a rapid.TB that keeps what a failing property says.
type mute struct {
	rapid.TB
	name   string
	text   strings.Builder
	failed bool
}

func (m *mute) Helper()                           {}
func (m *mute) Name() string                      { return m.name }
func (m *mute) Log(args ...any)                   { fmt.Fprintln(&m.text, args...) }
func (m *mute) Logf(format string, args ...any)   { fmt.Fprintf(&m.text, format+"\n", args...) }
func (m *mute) Error(args ...any)                 { m.Log(args...); m.failed = true }
func (m *mute) Errorf(format string, args ...any) { m.Logf(format, args...); m.failed = true }
func (m *mute) Fail()                             { m.failed = true }
func (m *mute) Failed() bool                      { return m.failed }
func (m *mute) FailNow()                          { m.failed = true; runtime.Goexit() }
func (m *mute) Fatalf(format string, args ...any) { m.Errorf(format, args...); runtime.Goexit() }
func (m *mute) Fatal(args ...any)                 { m.Error(args...); runtime.Goexit() }
