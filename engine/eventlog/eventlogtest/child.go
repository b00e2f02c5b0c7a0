package eventlogtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// childEnv holds the JSON of a child's orders; it is what makes a process one.
const childEnv = "EVENTLOGTEST_CHILD"

// childWriters append at the same time in each child.
const childWriters = 4

// child is what a process that is going to be killed does: its writers append
// until the end, and each acknowledged append is a line on stdout.
type child struct {
	Dir  string // of the store
	Name string // of this process, among all that write to the store
}

// ack is an append that was acknowledged: the k-th of a writer of a child.
type ack struct {
	stream   string
	revision uint64 // of the last event
	name     string
	writer   int
	k        int
}

// ChildMain turns the process into the child of a kill -9 case when it was
// started as one, and then does not return. Otherwise it does nothing. Call it
// first in TestMain, with the function that is Backend.Crash.
func ChildMain(open func(dir string) (eventlog.Log, error)) {
	orders, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	var c child
	err := json.Unmarshal([]byte(orders), &c)
	if err == nil {
		err = c.write(open)
	}
	fmt.Fprintln(os.Stderr, "kill -9 child:", err)
	os.Exit(1)
}

// write returns only with an error.
func (c child) write(open func(dir string) (eventlog.Log, error)) error {
	log, err := open(c.Dir)
	if err != nil {
		return err
	}
	return together(childWriters, func(w int) error {
		own := eventlog.NoStream
		for k := 0; ; k++ {
			a := ack{name: c.Name, writer: w, k: k}
			var err error
			switch k % 3 {
			case 0:
				a.stream = a.ownStream()
				a.revision, err = persist(log, a.stream, own, a.events())
				own = eventlog.Exactly(a.revision)
			case 1:
				a.stream = "contended"
				a.revision, err = persistReloading(log, a.stream, a.events())
			default:
				a.stream = "any"
				var at eventlog.Appended
				at, err = log.Append(context.Background(), a.stream, eventlog.Any, a.events()...)
				a.revision = at.Revision
				if eventlog.IsUnknown(err) || errors.Is(err, eventlog.ErrUnavailable) {
					continue // never repeated: with Any it could be recorded twice
				}
			}
			if err != nil {
				return err
			}
			os.Stdout.WriteString(a.line()) // one write, which a pipe does not split
		}
	})
}

// persist repeats the append until its outcome is known.
func persist(log eventlog.Log, stream string, expected eventlog.Expected, events []eventlog.Proposed) (uint64, error) {
	for {
		at, err := log.Append(context.Background(), stream, expected, events...)
		if !eventlog.IsUnknown(err) && !errors.Is(err, eventlog.ErrUnavailable) {
			return at.Revision, err
		}
	}
}

// persistReloading repeats the append behind whatever the stream has got.
func persistReloading(log eventlog.Log, stream string, events []eventlog.Proposed) (uint64, error) {
	expected := eventlog.NoStream
	for {
		revision, err := persist(log, stream, expected, events)
		var c *eventlog.ConflictError
		if !errors.As(err, &c) {
			return revision, err
		}
		expected = eventlog.Exactly(c.Current)
	}
}

func (a ack) line() string {
	return fmt.Sprintf("ack %s %d %s %d %d\n", a.stream, a.revision, a.name, a.writer, a.k)
}

func parseAck(line string) (a ack, err error) {
	_, err = fmt.Sscanf(line, "ack %s %d %s %d %d", &a.stream, &a.revision, &a.name, &a.writer, &a.k)
	return a, err
}

// ownStream is one that only this writer of this child appends to.
func (a ack) ownStream() string { return fmt.Sprintf("own-%s-%d", a.name, a.writer) }

// events are those of the append: the same in the child and in the test.
func (a ack) events() []eventlog.Proposed {
	events := batch(fmt.Sprintf("%s-%d-%d", a.name, a.writer, a.k), 1+a.k%4)
	for i := range events {
		sum := sha256.Sum256(events[i].Data)
		events[i].ID = eventlog.EventID(sum[:16])
	}
	return events
}
