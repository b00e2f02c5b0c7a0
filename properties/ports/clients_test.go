package ports

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
)

// asked is what a client calls.
type asked struct {
	reads    bool
	stream   string // empty: the whole log
	from     uint64 // of a read
	expected eventlog.Expected
	ids      string // of an append, one behind the other
}

// told is what it gets for an answer.
type told struct {
	class    string
	revision uint64
	position eventlog.Position
	exists   bool // of a conflict; its current revision is in revision
	ids      string
}

const idBytes = len(eventlog.EventID{})

func (a asked) String() string {
	if a.reads {
		return fmt.Sprintf("read %s from %d", a.stream, a.from)
	}
	return fmt.Sprintf("append to %s expecting %s: %s", a.stream, a.expected, idNames(a.ids))
}

func (t told) String() string {
	switch t.class {
	case "conflict":
		return fmt.Sprintf("conflict at %d (exists: %t)", t.revision, t.exists)
	case "ok":
		if t.position == eventlog.Start {
			return fmt.Sprint(idNames(t.ids))
		}
		return fmt.Sprint("revision ", t.revision)
	default:
		return t.class
	}
}

// idNames are short, as the pictures have to hold them.
func idNames(ids string) (list []string) {
	for ; len(ids) >= idBytes; ids = ids[idBytes:] {
		list = append(list, fmt.Sprintf("c%d.%d.%d", ids[0], ids[1], ids[2]))
	}
	return list
}

const (
	clients        = 5
	stepsOfAClient = 24
	claims         = "claims"
)

// client makes calls one after the other, beside others.
type client struct {
	number int
	log    *eventlogtest.FaultyLog
	random *rand.Rand
	clock  *atomic.Int64
	known  int // revision of the claims that it has last heard of; -1 for none
	doubts []asked
	calls  []porcupine.Operation
}

// crowd lets clients loose on handles to one log, and returns all that they
// asked and were told. Whose answers get lost is drawn; the order is the
// scheduler's.
func crowd(handles []eventlog.Log, seed uint64) (history []porcupine.Operation) {
	var clock atomic.Int64
	var running sync.WaitGroup
	all := make([]*client, clients)
	for i := range all {
		all[i] = &client{
			number: i, log: eventlogtest.NewFaultyLog(handles[i%len(handles)]),
			random: rand.New(rand.NewPCG(seed, uint64(i))), clock: &clock, known: -1,
		}
		running.Go(all[i].run)
	}
	running.Wait()
	for _, c := range all {
		history = append(history, c.calls...)
	}
	return history
}

func (c *client) run() {
	for step := range stepsOfAClient {
		key := fmt.Sprint("key-", step/4)
		switch n := c.random.IntN(20); {
		case len(c.doubts) > 0 && n < 14:
			a := c.doubts[0]
			c.doubts = c.doubts[1:]
			c.append(a)
		case n < 6:
			c.append(asked{stream: key, expected: eventlog.NoStream, ids: c.newIDs(step)})
		case n < 13:
			expected := eventlog.NoStream
			if c.known >= 0 {
				expected = eventlog.Exactly(uint64(c.known))
			}
			c.append(asked{stream: claims, expected: expected, ids: c.newIDs(step)})
		case n < 15:
			c.read(asked{reads: true, stream: claims, from: uint64(c.random.IntN(4))})
		case n < 18:
			c.read(asked{reads: true, stream: key})
		default:
			c.read(asked{reads: true})
		}
	}
}

func (c *client) newIDs(step int) (ids string) {
	for i := range 1 + c.random.IntN(2) {
		id := eventlog.EventID{byte(c.number), byte(step), byte(i), 15: 1}
		ids += string(id[:])
	}
	return ids
}

func eventsOf(ids string) (events []eventlog.Proposed) {
	for ; len(ids) > 0; ids = ids[idBytes:] {
		events = append(events, eventlog.Proposed{ID: eventlog.EventID([]byte(ids[:idBytes])), Type: "Claimed", Time: time.Unix(1, 0)})
	}
	return events
}

// note runs a call and keeps it. Calls are ordered by a counter and not by a
// clock, which could be too coarse to tell two of them apart.
func (c *client) note(a asked, f func() told) told {
	from := c.clock.Add(1)
	runtime.Gosched() // so that others begin before this one is done
	t := f()
	c.calls = append(c.calls, porcupine.Operation{ClientId: c.number, Input: a, Call: from, Output: t, Return: c.clock.Add(1)})
	return t
}

func (c *client) append(a asked) {
	switch c.random.IntN(12) {
	case 0:
		c.log.LoseAck(eventlogtest.BeforeCommit)
	case 1:
		c.log.LoseAck(eventlogtest.AfterCommit)
	}
	t := c.note(a, func() told {
		at, err := c.log.Append(context.Background(), a.stream, a.expected, eventsOf(a.ids)...)
		t := told{class: classOf(err), revision: at.Revision, position: at.Position}
		if e := (*eventlog.ConflictError)(nil); errors.As(err, &e) {
			t.revision, t.exists = e.Current, e.Exists
		}
		return t
	})
	switch {
	case t.class == "unknown":
		c.doubts = append(c.doubts, a)
	case a.stream == claims && (t.class == "ok" || t.exists):
		c.known = max(c.known, int(t.revision))
	}
}

func (c *client) read(a asked) {
	t := c.note(a, func() told {
		t := told{class: "ok"}
		events := c.log.ReadStream(context.Background(), a.stream, a.from)
		if a.stream == "" {
			events = c.log.ReadAll(context.Background(), eventlog.Start)
		}
		for r, err := range events {
			if err != nil {
				t.class = classOf(err)
				break
			}
			t.ids += string(r.ID[:])
		}
		return t
	})
	if a.stream == claims {
		c.known = max(c.known, int(a.from)+len(t.ids)/idBytes-1)
	}
}

// TestClientsMeetEverything: without lost answers and conflicts there is little to check.
func TestClientsMeetEverything(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(5) {
		for _, o := range crowd(inMemory().handles, seed) {
			what := "append, "
			if o.Input.(asked).reads {
				what = "read, "
			}
			met[what+o.Output.(told).class]++
		}
	}
	for _, what := range []string{"append, ok", "append, conflict", "append, unknown", "read, ok"} {
		if met[what] < 5 {
			t.Errorf("%d times: %s", met[what], what)
		}
	}
	if len(met) != 4 {
		t.Errorf("met %v", met)
	}
}
