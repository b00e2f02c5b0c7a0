package logcopy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/logcopy"
)

// The first event that is not the same ends the copy before anything is
// appended, whatever is the same after it.
func TestFirstDifferenceIsNamed(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(stream *string, e *eventlog.Proposed)
	}{
		{"stream", func(stream *string, _ *eventlog.Proposed) { *stream += "x" }},
		{"id", func(_ *string, e *eventlog.Proposed) { e.ID[15]++ }},
		{"type", func(_ *string, e *eventlog.Proposed) { e.Type += "x" }},
		{"time", func(_ *string, e *eventlog.Proposed) { e.Time = e.Time.Add(time.Nanosecond) }},
		{"data", func(_ *string, e *eventlog.Proposed) { e.Data = append(e.Data[:len(e.Data):len(e.Data)], ' ') }},
	} {
		t.Run(c.field, func(t *testing.T) {
			source, target := memory.New(), memory.New()
			for i := range 9 {
				stream, e := fmt.Sprintf("s-%d", i%3), event(i)
				e.Data = []byte("confidential")
				must(t, source, stream, e)
				if i == 4 || i == 6 {
					c.change(&stream, &e)
				}
				if i < 8 {
					must(t, target, stream, e)
				}
			}
			counts, err := copyAll(t.Context(), source, target)
			var different *logcopy.DifferenceError
			if !errors.As(err, &different) || different.Number != 5 || different.Field != c.field {
				t.Fatalf("error %v, want the %s of event 5", err, c.field)
			}
			text := err.Error()
			if !strings.HasPrefix(text, "event 5 has another "+c.field+" in the target: the source has s-1 revision 1 (") ||
				strings.Contains(text, "confidential") || strings.Contains(text, "\n") {
				t.Errorf("error %q", text)
			}
			if n := len(all(t, target)); n != 8 || counts.Events != 4 {
				t.Errorf("the target has %d events, want the 8 it had; counts %+v, want 4 events", n, counts)
			}
		})
	}
}

// A revision differs only where the stream's earlier events do, or a log is
// damaged.
func TestAnotherRevision(t *testing.T) {
	target := watched{Log: filled(t, 9), read: func(r eventlog.Recorded) (eventlog.Recorded, bool) {
		if n, _ := r.Position.Parts(); n == 2 {
			r.Revision++
		}
		return r, true
	}}
	_, err := copyAll(t.Context(), filled(t, 9), target)
	if err == nil || !strings.HasPrefix(err.Error(), "event 2 has another revision in the target") {
		t.Errorf("error %v", err)
	}
}

func TestTargetGoesOn(t *testing.T) {
	_, err := copyAll(t.Context(), filled(t, 6), filled(t, 9))
	if want := "event 7 of the target, update-1-2 revision 0 (Happened.v0, id 00000000-0000-0007-0000-000000000000) at 7/7, is not in the source: it ends before"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	target := memory.New()
	must(t, target, "s", event(0))
	if _, err := copyAll(t.Context(), memory.New(), target); err == nil || !strings.Contains(err.Error(), "event 1 of the target") {
		t.Errorf("the source is empty: error %v", err)
	}
}

// Another copy appends to the target what came to the source after this one had
// begun to read it.
func TestTargetAheadOfTheRead(t *testing.T) {
	source, target := filled(t, 6), memory.New()
	if _, err := copyAll(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	late := false
	l := watched{Log: growing{target, func() {
		if !late {
			late = true
			must(t, source, "late", event(100))
			must(t, target, "late", event(100))
		}
	}}}
	counts, err := copyAll(t.Context(), source, l)
	if err != nil || counts.Events != 7 {
		t.Errorf("counts %+v, error %v", counts, err)
	}
}

// Someone appends to the target during the copy.
func TestStrangerInTheTarget(t *testing.T) {
	source, target := filled(t, 60), memory.New()
	appends := 0
	l := watched{Log: target, after: func() error {
		if appends++; appends == 5 {
			must(t, target, "stranger", event(900))
		}
		return nil
	}}
	_, err := copyAll(t.Context(), source, l)
	if err == nil || !strings.Contains(err.Error(), "event 16 has another stream") || !strings.Contains(err.Error(), "the target stranger revision 0") {
		t.Errorf("error %v", err)
	}
}
