package ports

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

// streamModel is the port's sequential meaning of one stream: its state is the ids
// of its events, one behind the other. An append whose answer was lost may have
// happened or not: then there are two states to go on from. It has happened, if
// it has, before the caller was told that nobody knows.
var streamModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byStream := map[string][]porcupine.Operation{}
		for _, o := range history {
			if stream := o.Input.(asked).stream; stream != "" {
				byStream[stream] = append(byStream[stream], o)
			}
		}
		var parts [][]porcupine.Operation
		for _, name := range sortedKeys(byStream) {
			parts = append(parts, byStream[name])
		}
		return parts
	},
	Step: func(state, input, output any) []any { return next(state.(string), input.(asked), output.(told)) },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%v → %v", input, output)
	},
	DescribeState: func(state any) string { return fmt.Sprint(idNames(state.(string))) },
}).ToModel()

// next are the states after a call that was told t; none if the port forbids
// that answer here.
func next(state string, a asked, t told) []any {
	here := []any{state}
	if a.reads {
		from := min(int(a.from)*idBytes, len(state))
		return only(t.class == "ok" && t.ids == state[from:], here)
	}
	v, last := decide(split(state), a.expected, split(a.ids))
	there := here
	if v == adds {
		there = []any{state + a.ids}
	}
	switch t.class {
	case "ok":
		return only(v != conflicts && t.revision == uint64(last), there)
	case "conflict":
		n := len(state) / idBytes
		return only(v == conflicts && t.exists == (n > 0) && (n == 0 || t.revision == uint64(n-1)), here)
	case "unknown":
		if v == adds {
			return append(here, there...)
		}
		return here
	default:
		return only(t.class == "unavailable", here)
	}
}

func only(is bool, states []any) []any {
	if !is {
		return nil
	}
	return states
}

func split(ids string) (list []eventlog.EventID) {
	for ; len(ids) > 0; ids = ids[idBytes:] {
		list = append(list, eventlog.EventID([]byte(ids[:idBytes])))
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// linearizable says what is wrong with a history, and where the picture of it
// is: in the folder or, without one, in a new folder that the test leaves.
func linearizable(history []porcupine.Operation, folder string) string {
	result, info := porcupine.CheckOperationsVerbose(streamModel, history, 0)
	if result == porcupine.Ok {
		return ""
	}
	if folder == "" { // one that outlives the test
		folder, _ = os.MkdirTemp("", "leadonce-history")
	}
	path := filepath.Join(folder, "history.html")
	if err := porcupine.VisualizePath(streamModel, info, path); err != nil {
		path = err.Error()
	}
	return "no order of the calls explains the answers; picture: " + path
}

// span is the time in which an append took effect, and where it ended up.
type span struct {
	from, until int64 // until is the largest there is, when no answer came
	first, last int   // in the whole log; -1 when it is not there
}

// inOneOrder compares what readers of the whole log saw, and the positions that
// appenders were told, with the log as it is in the end (G8, G10).
func inOneOrder(history []porcupine.Operation, log eventlog.Log) string {
	var final string
	var positions []eventlog.Position
	for r, err := range log.ReadAll(context.Background(), eventlog.Start) {
		if err != nil {
			return err.Error()
		}
		final += string(r.ID[:])
		positions = append(positions, r.Position)
	}
	if !slices.IsSortedFunc(positions, eventlog.Position.Compare) {
		return "positions do not grow"
	}
	ids := split(final)
	spans := map[string]*span{}
	for _, o := range history {
		a, t := o.Input.(asked), o.Output.(told)
		if a.reads {
			continue
		}
		s := spans[a.ids]
		if s == nil {
			events := split(a.ids)
			s = &span{from: o.Call, until: 1<<63 - 1, first: slices.Index(ids, events[0]), last: slices.Index(ids, events[len(events)-1])}
			spans[a.ids] = s
		}
		s.from = min(s.from, o.Call)
		if t.class == "ok" {
			s.until = min(s.until, o.Return)
			if s.last < 0 || positions[s.last] != t.position {
				return fmt.Sprintf("%v was told position %s, and is number %d of the log", a, t.position, s.last)
			}
		}
	}
	if wrong := orderOf(spans); wrong != "" {
		return wrong
	}
	return readersOfAll(history, spans, final)
}

// orderOf: what had been answered before another append began is before it.
func orderOf(spans map[string]*span) string {
	var there []*span
	for _, s := range spans {
		if s.first >= 0 {
			there = append(there, s)
		}
	}
	slices.SortFunc(there, func(a, b *span) int { return cmp.Compare(a.first, b.first) })
	for i, s := range there {
		for _, later := range there[i+1:] {
			if later.until < s.from {
				return fmt.Sprintf("the append that ended at number %d was answered before the one at %d began", later.last, s.last)
			}
		}
	}
	return ""
}

// readersOfAll: each saw the log up to some place, with all that was answered
// before and nothing that began after, and no earlier place than a reader before.
func readersOfAll(history []porcupine.Operation, spans map[string]*span, final string) string {
	var reads []porcupine.Operation
	for _, o := range history {
		if a := o.Input.(asked); a.reads && a.stream == "" {
			reads = append(reads, o)
		}
	}
	for _, o := range reads {
		saw := o.Output.(told).ids
		if !strings.HasPrefix(final, saw) {
			return fmt.Sprintf("a reader saw %v, which the log never was: %v", idNames(saw), idNames(final))
		}
		n := len(saw) / idBytes
		for _, s := range spans {
			if s.until < o.Call && s.last >= n || s.first >= 0 && s.from > o.Return && s.first < n {
				return fmt.Sprintf("a reader saw %d events, but the append at number %d was answered before, or began after", n, s.last)
			}
		}
		for _, before := range reads {
			if before.Return < o.Call && len(before.Output.(told).ids) > len(saw) {
				return fmt.Sprintf("a reader saw %d events, one before it saw more", n)
			}
		}
	}
	return ""
}

// TestLinearizable lets clients loose on every kind of log.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	file := func(handles int) func(t *testing.T) ([]eventlog.Log, func() error) {
		return func(t *testing.T) ([]eventlog.Log, func() error) {
			s, closeAll, err := onDisk(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			return s.handles[:handles], closeAll
		}
	}
	for _, c := range []struct {
		name      string
		histories int
		open      func(t *testing.T) ([]eventlog.Log, func() error)
	}{
		{"memory", 100, func(*testing.T) ([]eventlog.Log, func() error) {
			return []eventlog.Log{memory.New()}, func() error { return nil }
		}},
		{"sqlite", 8, file(1)},
		{"sqlite in two handles", 8, file(2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.histories = max(1, c.histories/stride(1, 4))
			checked, calls := 0, 0
			rounds := whileTime(t, func(round int) {
				for i := range c.histories {
					handles, closeAll := c.open(t)
					history := crowd(handles, uint64(round*c.histories+i))
					wrong := cmp.Or(linearizable(history, ""), inOneOrder(history, handles[0]))
					if err := closeAll(); err != nil {
						t.Fatal(err)
					}
					if wrong != "" {
						t.Fatalf("history %d: %s", i, wrong)
					}
					checked++
					calls += len(history)
				}
			})
			t.Logf("%d histories, %d calls", checked, calls)
			if want := rounds * c.histories; checked != want || calls != checked*clients*stepsOfAClient {
				t.Errorf("%d histories with %d calls were checked, want %d", checked, calls, want)
			}
		})
	}
}

// TestRacesAreFound: each log that is wrong is found in a few histories.
func TestRacesAreFound(t *testing.T) {
	t.Parallel()
	const limit = 60
	for _, name := range sortedKeys(wrongUnderConcurrency) {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for i := range uint64(limit) {
				history := crowd([]eventlog.Log{wrongUnderConcurrency[name](memory.New())}, i)
				wrong := linearizable(history, folder)
				if wrong == "" {
					continue
				}
				t.Logf("found by history %d", i)
				picture, err := os.ReadFile(filepath.Join(folder, "history.html"))
				if err != nil || !strings.Contains(string(picture), "append to "+claims) {
					t.Errorf("the picture has %d bytes (%v), and shows no append", len(picture), err)
				}
				return
			}
			t.Errorf("not found in %d histories", limit)
		})
	}
	for name, wrong := range wrongOrder {
		t.Run(name, func(t *testing.T) {
			for i := range uint64(limit) {
				log := wrong(memory.New())
				if said := inOneOrder(crowd([]eventlog.Log{log}, i), log); said != "" {
					t.Logf("found by history %d: %.200s", i, said)
					return
				}
			}
			t.Errorf("not found in %d histories", limit)
		})
	}
}
