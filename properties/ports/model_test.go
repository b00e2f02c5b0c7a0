package ports

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// model is the log as its port describes it, in the plainest way: one list, and
// every question answered by walking it. It shares nothing with the adapters.
type model struct{ all []seen }

// seen is an event as a reader sees it, in a form that == compares. Its place in
// the whole log is an ordinal, 1 for the first event, since positions are each
// adapter's own.
type seen struct {
	ordinal  int
	stream   string
	revision uint64
	id       eventlog.EventID
	kind     string
	time     string
	data     string
	nilData  bool
}

func (s seen) String() string {
	return fmt.Sprintf("#%d %.20s@%d id %x %.20s %s %d bytes (%.20q, nil %t)", s.ordinal, s.stream, s.revision, s.id[:4], s.kind, s.time, len(s.data), s.data, s.nilData)
}

// answer is what a call on a log came to.
type answer struct {
	class    string // of the error
	conflict string // what a conflict carries
	revision uint64
	ordinal  int
	events   []seen
	belongs  bool
}

func (a answer) same(b answer) bool {
	events := slices.Equal(a.events, b.events)
	a.events, b.events = nil, nil
	return events && fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

func (a answer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s revision %d ordinal %d belongs %t, %d events", a.class, a.conflict, a.revision, a.ordinal, a.belongs, len(a.events))
	for _, e := range a.events[:min(len(a.events), 12)] {
		fmt.Fprintf(&b, "\n    %v", e)
	}
	return b.String()
}

// classOf names every class that an error is of: it shall be of one.
func classOf(err error) string {
	if err == nil {
		return "ok"
	}
	var classes []string
	for name, is := range map[string]bool{
		"conflict":    eventlog.IsConflict(err),
		"unknown":     eventlog.IsUnknown(err),
		"invalid":     errors.Is(err, eventlog.ErrInvalid),
		"unavailable": errors.Is(err, eventlog.ErrUnavailable),
	} {
		if is {
			classes = append(classes, name)
		}
	}
	if len(classes) == 0 {
		return "outside the port: " + err.Error()
	}
	slices.Sort(classes)
	return strings.Join(classes, " and ")
}

func conflictOf(err error) string {
	var c *eventlog.ConflictError
	if !errors.As(err, &c) {
		return ""
	}
	if !c.Exists {
		c.Current = 0 // meaningless
	}
	return fmt.Sprintf("%s expected %s is at %d (exists: %t)", c.Stream, c.Expected, c.Current, c.Exists)
}

// verdict is what becomes of an append.
type verdict int

const (
	adds verdict = iota
	repeats
	conflicts
)

// decide says what an append to a stream with these ids comes to, and at which
// revision it ends (G3 to G5).
func decide(recorded []eventlog.EventID, expected eventlog.Expected, ids []eventlog.EventID) (v verdict, last int) {
	n, k := len(recorded), len(ids)
	place := 0 // where the first event would have gone
	switch r, exactly := expected.Revision(); {
	case exactly && r >= uint64(n):
		return conflicts, 0
	case exactly:
		place = int(r) + 1
	case expected.IsAny():
		place = n - k
	}
	if place >= 0 && place+k <= n && slices.Equal(recorded[place:place+k], ids) {
		return repeats, place + k - 1
	}
	if expected.IsAny() {
		for _, id := range recorded[max(0, n-k):] {
			if slices.Contains(ids, id) {
				return conflicts, 0
			}
		}
		return adds, n + k - 1
	}
	if place != n {
		return conflicts, 0
	}
	return adds, n + k - 1
}

var printableName = regexp.MustCompile(`^[!-~]{1,200}$`)

// legal is G0.
func legal(c call) bool {
	ids := map[eventlog.EventID]bool{{}: true}
	for _, e := range c.events {
		year := e.Time.UTC().Year()
		if ids[e.ID] || !printableName.MatchString(e.Type) || e.Time.IsZero() || year < 1 || year > 9999 || len(e.Data) > 4<<20 {
			return false
		}
		ids[e.ID] = true
	}
	return printableName.MatchString(c.stream) && c.expected != eventlog.Expected{} && len(c.events) >= 1 && len(c.events) <= 100
}

// call is the arguments of an append.
type call struct {
	stream   string
	expected eventlog.Expected
	events   []eventlog.Proposed
}

func idsOf(events []eventlog.Proposed) (ids []eventlog.EventID) {
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// stream is the stream's events, oldest first.
func (m *model) stream(name string) (events []seen) {
	for _, e := range m.all {
		if e.stream == name {
			events = append(events, e)
		}
	}
	return events
}

func (m *model) append(c call, ended bool) answer {
	if !legal(c) {
		return answer{class: "invalid"}
	}
	if ended {
		return answer{class: "unavailable"}
	}
	recorded := m.stream(c.stream)
	var ids []eventlog.EventID
	for _, e := range recorded {
		ids = append(ids, e.id)
	}
	v, last := decide(ids, c.expected, idsOf(c.events))
	switch v {
	case conflicts:
		current := max(0, len(recorded)-1)
		return answer{class: "conflict", conflict: fmt.Sprintf("%s expected %s is at %d (exists: %t)", c.stream, c.expected, current, len(recorded) > 0)}
	case repeats:
		return answer{class: "ok", revision: uint64(last), ordinal: recorded[last].ordinal}
	}
	before := len(m.all)
	for i, e := range c.events {
		m.all = append(m.all, seen{
			ordinal: before + i + 1, stream: c.stream, revision: uint64(len(recorded) + i), id: e.ID, kind: e.Type,
			time: e.Time.UTC().Format(time.RFC3339Nano), data: string(e.Data),
		})
	}
	return answer{class: "ok", revision: uint64(last), ordinal: len(m.all), events: slices.Clone(m.all[before:])}
}

func (m *model) readStream(name string, from uint64, ended bool) answer {
	if !printableName.MatchString(name) {
		return answer{class: "invalid"}
	}
	if ended {
		return answer{class: "unavailable"}
	}
	events := m.stream(name)
	return answer{class: "ok", events: events[min(from, uint64(len(events))):]}
}

func (m *model) readAll(behind int, ended bool) answer {
	if ended {
		return answer{class: "unavailable"}
	}
	return answer{class: "ok", events: m.all[min(behind, len(m.all)):]}
}

func (m *model) tail(ended bool) answer {
	if ended {
		return answer{class: "unavailable"}
	}
	return answer{class: "ok", ordinal: len(m.all)}
}

// belongs answers for a checkpoint that names e and lies behind the event
// numbered ordinal.
func (m *model) belongs(e seen, ordinal int, ended bool) answer {
	switch {
	case ordinal == 0:
		return answer{class: "ok", belongs: true}
	case !printableName.MatchString(e.stream):
		return answer{class: "invalid"}
	case ended:
		return answer{class: "unavailable"}
	}
	for _, r := range m.stream(e.stream) {
		if r.revision == e.revision {
			return answer{class: "ok", belongs: r.id == e.id && r.ordinal == ordinal}
		}
	}
	return answer{class: "ok"}
}
