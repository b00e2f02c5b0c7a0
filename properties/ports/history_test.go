package ports

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
)

// attempt is an append that a process made, with what it was told.
type attempt struct {
	call
	called   int // calls on the disk before it
	answered int // and before its answer
	at       eventlog.Appended
	err      error
}

// deed is a step in the life of a log file.
type deed struct {
	appends   []call // more than one: at the same time
	neighbour bool   // by the second handle
	opens     bool   // the handle, again if it is open
	closes    bool
}

// life is what processes do with a log file, from its making on.
type life struct {
	name  string
	deeds []deed
}

// newEvents are events with ids of their own.
func newEvents(name string, n, bytes int) (events []eventlog.Proposed) {
	for i := range n {
		e := eventlog.Proposed{Type: "Happened", Time: time.Date(2026, 3, 4, 5, 6, 7, i, time.UTC), Data: []byte(strings.Repeat("x", bytes))}
		copy(e.ID[:], fmt.Sprintf("%s %d", name, i))
		events = append(events, e)
	}
	return events
}

func does(stream string, expected eventlog.Expected, events ...eventlog.Proposed) deed {
	return deed{appends: []call{{stream, expected, events}}}
}

func (d deed) besides() deed { d.neighbour = true; return d }

// lives are the histories that are killed at every call.
func allLives() []life {
	first, three := newEvents("first", 1, 10), newEvents("three", 3, 10)
	opens, closes := deed{opens: true}, deed{closes: true}
	var atOnce []call
	for i := range 3 {
		atOnce = append(atOnce, call{fmt.Sprintf("at-once-%d", i), eventlog.NoStream, newEvents(fmt.Sprint("at once", i), 1+i%2, 50)},
			call{"contended", eventlog.NoStream, newEvents(fmt.Sprint("contended", i), 1, 50)})
	}
	return []life{
		{"appends", []deed{
			opens,
			does("s", eventlog.NoStream, first...),
			does("s", eventlog.Exactly(0), three...),
			does("s", eventlog.NoStream, first...),                      // a repeat
			does("s", eventlog.NoStream, newEvents("lost", 2, 10)...),   // a conflict
			does("other", eventlog.Any, newEvents("large", 2, 9000)...), // more than a page
			does("s", eventlog.Exactly(3), newEvents("last", 1, 0)...),
			closes,
		}},
		{"reopened", []deed{
			opens,
			does("s", eventlog.NoStream, first...),
			closes, opens,
			does("s", eventlog.Exactly(0), three...),
			opens,
			does("s", eventlog.Exactly(3), newEvents("last", 2, 10)...),
		}},
		// A handle that opens makes a checkpoint, so that the next append starts
		// the WAL anew over what was in it.
		{"neighbours", []deed{
			opens,
			does("s", eventlog.NoStream, first...),
			does("t", eventlog.NoStream, newEvents("long", 3, 5000)...),
			opens.besides(),
			does("s", eventlog.Exactly(0), three...),
			does("s", eventlog.Exactly(3), newEvents("theirs", 2, 10)...).besides(),
			closes.besides(),
			opens.besides(),
			does("t", eventlog.Any, newEvents("more", 1, 10)...),
			does("s", eventlog.NoStream, newEvents("lost", 1, 10)...).besides(),
		}},
		{"at once", []deed{opens, does("s", eventlog.NoStream, first...), {appends: atOnce}, does("s", eventlog.Exactly(0), three...)}},
	}
}

// drawnLife is one that nobody thought of.
func drawnLife(seed uint64) life {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &model{}
	l := life{fmt.Sprint("drawn ", seed), []deed{{opens: true}}}
	for i := range 6 + r.IntN(8) {
		d := deed{neighbour: r.IntN(3) == 0}
		switch n := r.IntN(12); {
		case n == 0:
			d.closes = true
		case n < 3:
			d.opens = true
		default:
			stream := string("abc"[r.IntN(3)])
			p := past{model: m}
			expected := p.expected(operation{Expected: [...]expectation{current, current, anywhere, noStream, behind}[r.IntN(5)], Away: 1}, stream)
			c := call{stream, expected, newEvents(fmt.Sprint("drawn", i), 1+r.IntN(3), []int{0, 10, 300, 9000}[r.IntN(4)])}
			m.append(c, false)
			d.appends = []call{c}
		}
		l.deeds = append(l.deeds, d)
	}
	return l
}

// process lives through the deeds. Errors of the disk are the attempts'; those
// that leave no log end a handle's part.
type process struct {
	path     string
	disk     *recorder
	wrap     func(eventlog.Log) eventlog.Log // nil: the log itself
	logs     [2]*sqlite.Log
	attempts []attempt
	openErrs []error
}

func (p *process) live(l life) {
	for _, d := range l.deeds {
		h := 0
		if d.neighbour {
			h = 1
		}
		if (d.opens || d.closes) && p.logs[h] != nil {
			p.openErrs = append(p.openErrs, p.logs[h].Close())
			p.logs[h] = nil
		}
		if d.opens {
			log, err := sqlite.Open(context.Background(), p.path, sqlite.Options{BusyTimeout: time.Minute, Readers: 1})
			p.openErrs = append(p.openErrs, err)
			if err == nil {
				p.logs[h] = log
			}
		}
		if p.logs[h] != nil {
			p.append(p.logs[h], d.appends)
		}
	}
}

func (p *process) append(log eventlog.Log, calls []call) {
	if p.wrap != nil {
		log = p.wrap(log)
	}
	done := make([]attempt, len(calls))
	var running sync.WaitGroup
	for i, c := range calls {
		running.Go(func() {
			a := attempt{call: c, called: p.disk.now()}
			a.at, a.err = c.on(context.Background(), log)
			a.answered = p.disk.now()
			done[i] = a
		})
	}
	running.Wait()
	p.attempts = append(p.attempts, done...)
}

func (p *process) close() error {
	var errs []error
	for h, log := range p.logs {
		if log != nil {
			errs = append(errs, log.Close())
			p.logs[h] = nil
		}
	}
	return errors.Join(errs...)
}

// lived is a life on a disk that works, with all that it wrote. What follows
// its last deed is written down too: closing.
func lived(t testing.TB, parent string, l life, wrap func(eventlog.Log) eventlog.Log) ([]attempt, []change) {
	t.Helper()
	dir := filepath.Join(parent, "life")
	disk := newRecorder(dir, nil)
	defer disk.forget()
	p := &process{path: filepath.Join(dir, "log.db"), disk: disk, wrap: wrap}
	p.live(l)
	open := readFolder(t, dir)
	recorded := disk.now()
	if err := errors.Join(append(p.openErrs, p.close())...); err != nil {
		t.Fatal(err)
	}
	// What was written down is what the files are: no call went past the recorder.
	if got := play(disk.changes[:recorded]); got.sum() != open.sum() {
		t.Fatalf("the changes that were recorded do not make the files: %v, want %v", sizes(got), sizes(open))
	}
	if got, want := play(disk.changes), readFolder(t, dir); got.sum() != want.sum() {
		t.Fatalf("after closing, the changes that were recorded do not make the files: %v, want %v", sizes(got), sizes(want))
	}
	return p.attempts, disk.changes
}
