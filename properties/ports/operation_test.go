package ports

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// operation is one step of a history. It is data without any reference to what
// was drawn before it: numbers are taken modulo what there is when it is its
// turn. So every part of a history is a history, and shrinking drops and
// simplifies steps one by one.
type operation struct {
	Kind     kind
	Handle   int // through which of the handles to the store
	Stream   int // of names
	Expected expectation
	Away     int // of behind and beyond: how far from the stream's revision
	First    int // number of the first event; 0 for events that are all new
	Count    int // events
	Twist    twist
	Content  int
	Number   int  // which append to repeat, where to read from
	Limit    int  // the reader leaves the loop after so many events; 0 for never
	Ended    bool // the context has ended
}

// GoString is what a failure prints.
func (o operation) GoString() string {
	type bare operation
	return fmt.Sprintf("%+v", bare(o))
}

type kind string

const (
	appending  kind = "append"
	repeating  kind = "repeat"
	readStream kind = "read stream"
	readAll    kind = "read all"
	readTail   kind = "tail"
	checkpoint kind = "checkpoint"
	reopening  kind = "reopen"
)

type expectation string

const (
	noStream expectation = "no stream"
	current  expectation = "current"
	anywhere expectation = "any"
	behind   expectation = "behind"
	beyond   expectation = "beyond"
	largest  expectation = "largest"
	signed   expectation = "largest signed"
	unset    expectation = "unset"
)

// twist is what is odd about the events of an append.
type twist string

const (
	plain     twist = ""
	reversed  twist = "reversed"
	shortened twist = "without the first"
	longer    twist = "and a new one"
	doubled   twist = "the first twice"
	noID      twist = "no id"
	noType    twist = "no type"
	badType   twist = "type with a space"
	noTime    twist = "no time"
	lateTime  twist = "year 10000"
	tooLong   twist = "too much data"
)

// names are streams; the illegal ones come last. Those in front are drawn most
// often, and differ from each other in what a careless backend overlooks.
var names = []string{
	"update-1-1", "update-1-11", "Update-1-1", "update_1-1", "%", "_", "';drop/**/table/**/events;--", "..", `\`,
	strings.Repeat("n", 200), strings.Repeat("n", 199) + "m",
	"", "a b", "é", "nul\x00", strings.Repeat("n", 201),
}

var contents = []string{
	"", "{}", "\x00", "text\x00tail", "\xff\xfe\xed\xa0\x80", "é e\u0301 \U0001f600 \ufeff", "'; DROP TABLE events; --",
	strings.Repeat("0123456789", 900), strings.Repeat("\x00\xff", 9000),
}

var kinds = []string{"Happened", "happened", "a.b/c:v1", `'"%_`, "NULL", strings.Repeat("T", 200)}

var times = []time.Time{
	time.Unix(0, 0), time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.FixedZone("far", 14*60*60)), time.Unix(-1, 1),
	time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(2262, 4, 11, 23, 47, 16, 854775808, time.UTC),
	time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), time.Date(1677, 9, 21, 0, 12, 43, 145224191, time.UTC),
}

var tooMuch = make([]byte, eventlog.MaxData+1)

// weighted repeats each value, so that SampledFrom draws it more often.
func weighted[T any](weights ...any) (list []T) {
	for i := 0; i < len(weights); i += 2 {
		list = append(list, slices.Repeat([]T{weights[i].(T)}, weights[i+1].(int))...)
	}
	return list
}

var (
	drawKind = rapid.SampledFrom(weighted[kind](appending, 12, repeating, 5, readStream, 3, readAll, 3, readTail, 1, checkpoint, 3, reopening, 1))
	// The simplest first: that is what shrinking ends at.
	drawExpected = rapid.SampledFrom(weighted[expectation](noStream, 4, current, 7, anywhere, 5, behind, 4, beyond, 1, largest, 1, signed, 1, unset, 1))
	drawTwist    = rapid.SampledFrom(weighted[twist](plain, 30, reversed, 4, shortened, 3, longer, 3, doubled, 1, noID, 1, noType, 1, badType, 1, noTime, 1, lateTime, 1, tooLong, 1))
	drawStream   = rapid.SampledFrom(append(slices.Repeat([]int{0, 1}, 12), indexes(len(names))...))
	drawFirst    = rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7})
	drawCount    = rapid.SampledFrom([]int{1, 1, 1, 1, 2, 2, 3, 4, 0, 100, 101})
	drawLimit    = rapid.SampledFrom([]int{0, 0, 0, 1, 2})
	drawEnded    = rapid.SampledFrom([]bool{false, false, false, false, false, false, false, false, false, false, false, true})
)

func indexes(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

var drawOperation = rapid.Custom(func(t *rapid.T) operation {
	return operation{
		Kind:     drawKind.Draw(t, "kind"),
		Handle:   rapid.IntRange(0, 1).Draw(t, "handle"),
		Stream:   drawStream.Draw(t, "stream"),
		Expected: drawExpected.Draw(t, "expected"),
		Away:     rapid.IntRange(1, 5).Draw(t, "away"),
		First:    drawFirst.Draw(t, "first"),
		Count:    drawCount.Draw(t, "count"),
		Twist:    drawTwist.Draw(t, "twist"),
		Content:  rapid.IntRange(0, 60).Draw(t, "content"),
		Number:   rapid.IntRange(0, 30).Draw(t, "number"),
		Limit:    drawLimit.Draw(t, "limit"),
		Ended:    drawEnded.Draw(t, "ended"),
	}
})

// drawHistory is several short slices: one long slice would have a least length,
// or be empty most of the time.
var drawHistory = rapid.Custom(func(t *rapid.T) (history []operation) {
	for range 6 {
		history = append(history, rapid.SliceOfN(drawOperation, 0, 20).Draw(t, "operations")...)
	}
	return history
})

// past is what the steps before have left: what later ones refer to.
type past struct {
	model *model
	calls []call
	fresh int // events that are all new, so far
}

// idOf is the id of the event with this number; 0 has none.
func idOf(number int) eventlog.EventID {
	return eventlog.EventID{0: byte(number), 6: byte(number >> 16), 9: '\'', 15: byte(number >> 8)}
}

func event(number, content int) eventlog.Proposed {
	data := []byte(contents[content%len(contents)])
	if content%7 == 0 {
		data = nil
	}
	return eventlog.Proposed{ID: idOf(number), Type: kinds[content%len(kinds)], Time: times[content%len(times)], Data: data}
}

// call is the append that the operation comes to.
func (p *past) call(o operation) call {
	c := call{stream: names[o.Stream], expected: p.expected(o, names[o.Stream])}
	if o.Kind == repeating && len(p.calls) > 0 {
		c = p.calls[(len(p.calls)-1)-o.Number%len(p.calls)]
		c.events = slices.Clone(c.events)
		if o.Away == 5 {
			c.expected = p.expected(o, c.stream)
		}
		for i := range c.events { // ids alone are compared
			e := event(1, o.Content+i)
			e.ID = c.events[i].ID
			c.events[i] = e
		}
	} else {
		first := o.First
		if first == 0 {
			first = 100 + p.fresh
			p.fresh += o.Count
		}
		for i := range o.Count {
			c.events = append(c.events, event(first+i, o.Content+i))
		}
	}
	c.events = p.twisted(c.events, o.Twist)
	p.calls = append(p.calls, c)
	return c
}

func (p *past) twisted(events []eventlog.Proposed, twist twist) []eventlog.Proposed {
	if twist == longer {
		p.fresh++
		return append(events, event(99+p.fresh, 1))
	}
	if len(events) == 0 {
		return events
	}
	switch first := &events[0]; twist {
	case reversed:
		slices.Reverse(events)
	case shortened:
		return events[1:]
	case doubled:
		return append(events, *first)
	case noID:
		first.ID = eventlog.EventID{}
	case noType:
		first.Type = ""
	case badType:
		first.Type = "a b"
	case noTime:
		first.Time = time.Time{}
	case lateTime:
		first.Time = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("west", -60*60))
	case tooLong:
		first.Data = tooMuch
	}
	return events
}

func (p *past) expected(o operation, stream string) eventlog.Expected {
	n := len(p.model.stream(stream))
	switch o.Expected {
	case anywhere:
		return eventlog.Any
	case current, behind, beyond:
		r := n - 1
		switch o.Expected {
		case behind:
			r -= o.Away
		case beyond:
			r += o.Away
		}
		if r < 0 {
			return eventlog.NoStream
		}
		return eventlog.Exactly(uint64(r))
	case largest:
		return eventlog.Exactly(math.MaxUint64)
	case signed:
		return eventlog.Exactly(math.MaxInt64)
	case unset:
		return eventlog.Expected{}
	default:
		return eventlog.NoStream
	}
}
