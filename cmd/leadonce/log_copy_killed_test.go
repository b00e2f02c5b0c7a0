package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
)

// copySite is a folder with a log to copy.
type copySite struct {
	t      *testing.T
	dir    string
	source *sqlite.Log
}

func newCopySite(t *testing.T, events int) *copySite {
	t.Helper()
	s := &copySite{t: t, dir: t.TempDir()}
	s.source = s.open("source")
	s.grow(0, events)
	return s
}

func (s *copySite) open(name string) *sqlite.Log {
	s.t.Helper()
	log, err := sqlite.Open(s.t.Context(), filepath.Join(s.dir, name, logFile), sqlite.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { log.Close() }) // again after a test that did it is nothing
	return log
}

// grow appends the events first to last-1 of many writers to the source.
func (s *copySite) grow(first, last int) {
	s.t.Helper()
	const writers = 64
	var appending sync.WaitGroup
	for w := range writers {
		appending.Go(func() {
			for n := first + w; n < last; n += writers {
				e := eventlog.Proposed{ID: randomIDs{}.New(), Type: "Happened.v1", Time: time.Unix(int64(n), 7), Data: fmt.Appendf(nil, "%0800d", n)}
				if _, err := s.source.Append(context.Background(), fmt.Sprintf("update-1-%d", n/writers/4*writers+w), eventlog.Any, e); err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	appending.Wait()
}

func (s *copySite) launch(flags ...string) *program {
	s.t.Helper()
	p, err := launch(s.dir, own(), "leadonce", append([]string{"log", "copy", "--from", "sqlite:source", "--to", "sqlite:target"}, flags...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.kill)
	return p
}

// ended waits for the end, and demands the exit status 0 and the two logs to be
// the same.
func (s *copySite) ended(p *program, events int) (found int) {
	s.t.Helper()
	status, err := p.exit()
	text, _ := p.output()
	if err != nil || status != 0 {
		s.t.Fatalf("exit status %d (%v); output:\n%s", status, err, text)
	}
	counts, err := p.await(`(\d+) events in \d+ streams are the same in both logs, (\d+) of them copied now`)
	if err != nil {
		s.t.Fatal(err)
	}
	total, _ := strconv.Atoi(counts[1])
	copied, _ := strconv.Atoi(counts[2])
	if total != events {
		s.t.Errorf("%d events are said to be the same, want %d", total, events)
	}
	target := s.open("target")
	defer target.Close()
	want, got := s.read(s.source), s.read(target)
	if len(want) != events || !reflect.DeepEqual(want, got) {
		s.t.Errorf("the target's %d events are not the source's %d", len(got), len(want))
	}
	return total - copied
}

func (s *copySite) read(log eventlog.Log) (events []eventlog.Recorded) {
	s.t.Helper()
	for r, err := range log.ReadAll(s.t.Context(), eventlog.Start) {
		if err != nil {
			s.t.Fatal(err)
		}
		events = append(events, r)
	}
	return events
}

// size is what the target's files have, in bytes.
func (s *copySite) size() (bytes int64) {
	for _, name := range []string{logFile, logFile + "-wal"} {
		if info, err := os.Stat(filepath.Join(s.dir, "target", name)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// larger waits until the target has more than so many bytes.
func (s *copySite) larger(p *program, bytes int64) {
	s.t.Helper()
	eventually(s.t, func() error {
		if size := s.size(); size <= bytes && p.gone() != nil {
			return fmt.Errorf("the target has %d bytes, want more than %d", size, bytes)
		}
		return nil
	})
}

// SIGKILL at random moments of the copy, while the source grows: the last copy
// finds what the others did, and adds the rest.
func TestLogCopyKilled(t *testing.T) {
	t.Parallel()
	events := 6000
	s := newCopySite(t, events)
	kills := 6
	if testing.Short() {
		kills = 3
	}
	for n := range kills {
		p := s.launch()
		if n == 0 {
			s.larger(p, 200<<10) // some hundred of the events, and not all
		} else {
			pause(t.Context(), rand.N(200*time.Millisecond)) // anywhere, the start included
		}
		p.kill()
		s.grow(events, events+100)
		events += 100
	}
	if found := s.ended(s.launch(), events); found == 0 {
		t.Error("the last copy found nothing of what the others copied")
	}
	if found := s.ended(s.launch(), events); found != events {
		t.Errorf("a copy behind a complete one found %d events, want %d", found, events)
	}
}

// A copy that follows takes along what comes, is killed and started again, and
// ends at the tail after SIGTERM.
func TestLogCopyFollows(t *testing.T) {
	t.Parallel()
	events := 500
	s := newCopySite(t, events)
	p := s.launch("--follow")
	for range 3 {
		if _, err := p.await(`at the source's tail behind \d+ events; a signal ends the copy there`); err != nil {
			t.Fatal(err)
		}
		s.grow(events, events+300)
		events += 300
		p.kill()
		p = s.launch("--follow")
	}
	if _, err := p.await(fmt.Sprintf(`tail behind %d events`, events)); err != nil {
		t.Fatal(err)
	}
	s.grow(events, events+2000)
	p.signal(term)
	s.ended(p, events+2000)
}

// SIGTERM ends a copy that does not follow, or is not at the tail yet, at once
// and says how it goes on.
func TestLogCopyTerminated(t *testing.T) {
	t.Parallel()
	const events = 8000
	s := newCopySite(t, events)
	for _, flags := range [][]string{nil, {"--follow"}} {
		before := s.size() // nothing but the log itself: the last copy has closed it
		p := s.launch(flags...)
		s.larger(p, before+200<<10)
		p.signal(term)
		if status, err := p.exit(); err != nil || status != exitFail {
			t.Errorf("%v: exit status %d, %v; want %d", flags, status, err, exitFail)
		}
		want := `leadonce: the copy is not complete, \d+ events are the same: interrupted; .leadonce log copy. with the same --from and --to goes on from there`
		if _, err := p.await(want); err != nil {
			t.Error(err)
		}
	}
	if found := s.ended(s.launch(), events); found == 0 {
		t.Error("the last copy found nothing of what the others copied")
	}
}

// A long copy tells how far it is once a second.
func TestLogCopyTellsItsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		report := copyProgress(&told)
		for n := range uint64(25) {
			report(n)
			pause(t.Context(), 100*time.Millisecond)
		}
		if want := "copying the log: 11 events\ncopying the log: 22 events\n"; told.String() != want {
			t.Errorf("told %q, want %q", told.String(), want)
		}
	})
}
