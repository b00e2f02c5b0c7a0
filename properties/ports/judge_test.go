package ports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
)

func readFolder(t testing.TB, dir string) folder {
	t.Helper()
	f := folder{}
	for _, name := range []string{"log.db", "log.db-wal", "log.db-journal"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		f[name] = content
	}
	return f
}

func sizes(f folder) map[string]int {
	m := map[string]int{}
	for name, content := range f {
		m[name] = len(content)
	}
	return m
}

// tally counts what the deaths came to.
type tally struct{ deaths, present, absent, repeated int }

// verdictOnLife is what opening the files said.
type verdictOnLife struct {
	wrong string
	stops []stop
}

// stop is a moment of the life after death: what was done to the files until
// then, and what is now acknowledged.
type stop struct {
	changes []change
	owed    []attempt
}

// judge opens what a death left after n calls on the disk, and goes on.
func (c *tally) judge(t testing.TB, parent string, changes []change, n int, attempts []attempt, blind bool) (l verdictOnLife) {
	t.Helper()
	c.deaths++
	dir := play(changes).write(t, parent)
	defer os.RemoveAll(dir)
	disk := newRecorder(dir, changes)
	defer disk.forget()
	disk.blind = blind
	log, err := sqlite.Open(context.Background(), filepath.Join(dir, "log.db"), sqlite.Options{Readers: 1})
	if err != nil {
		l.wrong = fmt.Sprintf("it cannot be opened: %v", err)
		return l
	}
	defer log.Close()
	disk.blind = false // no call runs now
	m, wrong := c.read(log, n, attempts)
	if wrong == "" {
		l.stops, wrong = c.goOn(log, disk, m, n, attempts)
	}
	if wrong == "" {
		if again, w := read(log); w != "" || !slices.Equal(again, m.all) {
			wrong = fmt.Sprintf("after it went on: %s\n%v\nthe model: %v", w, again, m.all)
		}
	}
	if err := log.Check(context.Background()); err != nil && wrong == "" {
		wrong = err.Error()
	}
	l.wrong = wrong
	return l
}

// read is the whole log, whose positions must be those of a log where nothing
// is missing.
func read(log eventlog.Log) (all []seen, wrong string) {
	s := subject{}
	last := eventlog.Start
	for r, err := range log.ReadAll(context.Background(), eventlog.Start) {
		if err != nil {
			return nil, err.Error()
		}
		if r.Position.Compare(last) <= 0 {
			return nil, "positions do not grow"
		}
		last = r.Position
		s.positions = append(s.positions, r.Position)
		all = append(all, s.seen(r))
	}
	return all, ""
}

// read compares what is there with what was told; it returns the model of it.
func (c *tally) read(log *sqlite.Log, n int, attempts []attempt) (*model, string) {
	all, wrong := read(log)
	if wrong != "" {
		return nil, wrong
	}
	m, found := &model{}, map[int]bool{}
	for len(m.all) < len(all) {
		next := all[len(m.all)]
		i := slices.IndexFunc(attempts, func(a attempt) bool { return a.events[0].ID == next.id })
		if i < 0 {
			return nil, fmt.Sprintf("%v is of no append, or not its first event", next)
		}
		if found[i] {
			return nil, fmt.Sprintf("append %d is there twice", i)
		}
		found[i] = true
		before := len(m.all)
		if a := m.append(attempts[i].call, false); a.class != "ok" || len(m.all) == before {
			return nil, fmt.Sprintf("append %d is there, but the port says: %v", i, a)
		}
		if len(m.all) > len(all) || !slices.Equal(m.all[before:], all[before:len(m.all)]) {
			return nil, fmt.Sprintf("append %d is not there as a whole:\n%v\nwant %v", i, all[before:], m.all[before:])
		}
	}
	for i, a := range attempts {
		first := slices.IndexFunc(attempts, func(b attempt) bool { return b.events[0].ID == a.events[0].ID })
		class := classOf(a.err)
		if e := (*eventlog.ConflictError)(nil); a.answered <= n && errors.As(a.err, &e) && e.Exists && e.Current >= uint64(len(m.stream(a.stream))) {
			return nil, fmt.Sprintf("append %d was told of a conflict with revision %d of %s, which is not there", i, e.Current, a.stream)
		}
		switch there := found[first]; {
		case a.answered > n && a.called <= n: // it was interrupted
			if there {
				c.present++
			} else {
				c.absent++
			}
		case a.called > n && there && first == i:
			return nil, fmt.Sprintf("append %d is there before it was made", i)
		case a.answered <= n && class == "ok" && !there:
			return nil, fmt.Sprintf("append %d to %s was acknowledged and is not there", i, a.stream)
		case a.answered <= n && (class == "conflict" || class == "unavailable") && there && first == i && !repeatedLater(attempts, i):
			return nil, fmt.Sprintf("append %d is there, but its caller was told: %v", i, a.err)
		case a.answered <= n && class == "ok":
			if e := m.all[slices.IndexFunc(m.all, func(e seen) bool { return e.id == a.events[len(a.events)-1].ID })]; e.revision != a.at.Revision {
				return nil, fmt.Sprintf("append %d was told revision %d and is at %d", i, a.at.Revision, e.revision)
			}
		}
	}
	return m, ""
}

func repeatedLater(attempts []attempt, i int) bool {
	return slices.ContainsFunc(attempts[i+1:], func(b attempt) bool { return b.events[0].ID == attempts[i].events[0].ID })
}

// goOn repeats what was interrupted, and then appends something new. It stops
// in between: an append that is only found again costs no sync.
func (c *tally) goOn(log *sqlite.Log, disk *recorder, m *model, n int, attempts []attempt) (stops []stop, wrong string) {
	var owed []attempt
	var calls []call
	for _, a := range attempts {
		if a.answered <= n && a.err == nil {
			owed = append(owed, attempt{call: a.call, at: a.at})
		} else if a.called <= n {
			calls = append(calls, a.call)
		}
	}
	next := call{"next", eventlog.Any, []eventlog.Proposed{{ID: eventlog.EventID{1}, Type: "Next", Time: time.Unix(1, 0)}}}
	for i, each := range append(calls, next) {
		if i == len(calls) {
			stops = append(stops, stop{slices.Clone(disk.changes), slices.Clone(owed)})
		}
		want := m.append(each, false)
		at, err := each.on(context.Background(), log)
		if got := classOf(err); got != want.class || at.Revision != want.revision {
			return nil, fmt.Sprintf("going on, an append to %s answers revision %d, %v, want %v", each.stream, at.Revision, err, want)
		}
		if err == nil {
			c.repeated++
			owed = append(owed, attempt{call: each, at: at})
		}
	}
	return append(stops, stop{slices.Clone(disk.changes), owed}), ""
}
