package logcopy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/logcopy"
)

// Each append in turn loses its answer, before or after it was recorded.
func TestLostAnswers(t *testing.T) {
	for _, loss := range []eventlogtest.Loss{eventlogtest.BeforeCommit, eventlogtest.AfterCommit} {
		source := filled(t, 30)
		for lost := range 10 {
			target := eventlogtest.NewFaultyLog(memory.New())
			n := 0
			l := watched{Log: target, before: func(string, eventlog.Expected, []eventlog.Proposed) error {
				if n++; n == lost+1 {
					target.LoseAck(loss)
				}
				return nil
			}}
			var w waits
			troubles := 0
			c := logcopy.New(source, l, logcopy.Options{Sleep: w.sleep, Troubled: func(err error, wait time.Duration) {
				if troubles++; !eventlog.IsUnknown(err) || wait != 100*time.Millisecond {
					t.Errorf("trouble %v, again in %s", err, wait)
				}
			}})
			if err := c.ToTail(t.Context()); err != nil || troubles != 1 || len(w.slept) != 1 {
				t.Errorf("append %d: error %v, %d troubles, waited %v", lost+1, err, troubles, w.slept)
			}
			equal(t, source, target)
		}
	}
}

// Each read of each side breaks off after each number of events.
func TestCutReads(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		for after := range 12 {
			source, target := eventlogtest.NewFaultyLog(filled(t, 12)), eventlogtest.NewFaultyLog(memory.New())
			for range 3 { // empty, complete, complete
				if side == "source" {
					source.CutRead(after)
				} else {
					target.CutRead(after)
				}
				if _, err := copyAll(t.Context(), source, target); err != nil {
					t.Errorf("%s, after %d events: %v", side, after, err)
				}
				equal(t, source.Log, target.Log)
			}
		}
	}
}

// A log that stays away is not waited for without end, and what was copied
// before does not count against it.
func TestGivesUp(t *testing.T) {
	for _, down := range []error{errDown, &eventlog.UnknownError{Stream: "s", Err: errors.New("down")}} {
		source, target := filled(t, 180), memory.New() // 60 appends
		appends := 0
		l := watched{Log: target, before: func(string, eventlog.Expected, []eventlog.Proposed) error {
			if appends++; appends%2 == 1 && appends < 80 || appends > 84 {
				return down // every other one, and then for good
			}
			return nil
		}}
		var w waits
		c := logcopy.New(source, l, logcopy.Options{Sleep: w.sleep})
		if err := c.ToTail(t.Context()); !errors.Is(err, down) {
			t.Fatalf("error %v, want %v", err, down)
		}
		if n := len(w.slept); n != 40+19 {
			t.Fatalf("%d waits, want 40 and, for good, 19", n)
		}
		w.slept = w.slept[40:]
		total := time.Duration(0)
		for i, d := range w.slept {
			total += d
			if want := min(100*time.Millisecond<<i, 10*time.Second); d != want {
				t.Errorf("wait %d is %s, want %s", i+1, d, want)
			}
		}
		if total < 2*time.Minute || total > 3*time.Minute {
			t.Errorf("waited %s, want about two minutes", total)
		}
		if counts := c.Counts(); counts.Events == 0 || counts.Events == 180 {
			t.Errorf("counts %+v, want a part", counts)
		}
		if _, err := copyAll(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		equal(t, source, target)
	}
}

// What the target cannot hold is said at once.
func TestNotTriedAgain(t *testing.T) {
	var w waits
	refuses := watched{Log: memory.New(), before: func(stream string, _ eventlog.Expected, _ []eventlog.Proposed) error {
		return fmt.Errorf("%w: append to %s is over 1 MiB", eventlog.ErrInvalid, stream)
	}}
	c := logcopy.New(filled(t, 3), refuses, logcopy.Options{Sleep: w.sleep})
	if err := c.ToTail(t.Context()); !errors.Is(err, eventlog.ErrInvalid) || len(w.slept) > 0 {
		t.Errorf("error %v, waited %v", err, w.slept)
	}
	target := memory.New()
	must(t, target, "stranger", event(1))
	c = logcopy.New(filled(t, 3), target, logcopy.Options{Sleep: w.sleep})
	if err := c.ToTail(t.Context()); !errors.As(err, new(*logcopy.DifferenceError)) || len(w.slept) > 0 {
		t.Errorf("error %v, waited %v", err, w.slept)
	}
}

// forgetful loses appends that it acknowledged.
type forgetful struct {
	eventlog.Log
	acks int // that are lies
}

func (l *forgetful) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	if l.acks > 0 {
		l.acks--
		return eventlog.Appended{}, nil
	}
	return l.Log.Append(ctx, stream, expected, events...)
}

// The copy is not complete as long as the target does not show what it took.
func TestAcknowledgedButNotThere(t *testing.T) {
	source := filled(t, 3) // one append
	target := &forgetful{memory.New(), 3}
	if _, err := copyAll(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	equal(t, source, target)
	target = &forgetful{memory.New(), 1000}
	_, err := copyAll(t.Context(), source, target)
	if want := "the target took 3 events and shows 0 of them"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A source whose stream lacks its beginning is not copied in part.
func TestStreamWithoutBeginning(t *testing.T) {
	source := watched{Log: filled(t, 9), read: func(r eventlog.Recorded) (eventlog.Recorded, bool) {
		return r, r.Revision > 0
	}}
	target := memory.New()
	if _, err := copyAll(t.Context(), source, target); !eventlog.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if n := len(all(t, target)); n > 0 {
		t.Errorf("%d events were copied", n)
	}
}

// The end of the context ends the copy while it reads, appends and waits.
func TestCancelled(t *testing.T) {
	for name, prepare := range map[string]func(cancel func(), l *watched) func(context.Context, time.Duration) error{
		"reads": func(cancel func(), l *watched) func(context.Context, time.Duration) error {
			l.read = func(r eventlog.Recorded) (eventlog.Recorded, bool) { cancel(); return r, true }
			return new(waits).sleep
		},
		"appends": func(cancel func(), l *watched) func(context.Context, time.Duration) error {
			l.before = func(string, eventlog.Expected, []eventlog.Proposed) error { cancel(); return nil }
			return new(waits).sleep
		},
		"waits": func(cancel func(), l *watched) func(context.Context, time.Duration) error {
			l.before = func(string, eventlog.Expected, []eventlog.Proposed) error { return errDown }
			return func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			source, target := filled(t, 30), memory.New()
			for _, e := range all(t, source)[:3] {
				must(t, target, e.Stream, eventlog.Proposed{ID: e.ID, Type: e.Type, Time: e.Time, Data: e.Data})
			}
			l := watched{Log: target}
			c := logcopy.New(source, &l, logcopy.Options{Sleep: prepare(cancel, &l), Troubled: func(err error, _ time.Duration) {
				if name != "waits" {
					t.Errorf("the end is told as trouble: %v", err)
				}
			}})
			if err := c.ToTail(ctx); err != context.Canceled {
				t.Errorf("error %v, want the context's", err)
			}
			if _, err := copyAll(t.Context(), source, target); err != nil {
				t.Fatal(err)
			}
			equal(t, source, target)
		})
	}
}

// torn is a log of which each read is left open by the copy at its end, unless
// it is closed.
type torn struct {
	eventlog.Log
	open *int
}

func (l torn) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		*l.open++
		defer func() { *l.open-- }()
		for r, err := range l.Log.ReadAll(ctx, after) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// No read outlives the copy, however it ends.
func TestReadsAreClosed(t *testing.T) {
	for n := range 12 {
		open := 0
		source, target := filled(t, 12), eventlogtest.NewFaultyLog(filled(t, 6))
		target.CutRead(n)
		_, err := copyAll(t.Context(), torn{source, &open}, torn{target, &open})
		if err != nil || open != 0 {
			t.Errorf("%d reads are open, error %v", open, err)
		}
		must(t, target, "stranger", event(900))
		if _, err := copyAll(t.Context(), torn{source, &open}, torn{target, &open}); err == nil || open != 0 {
			t.Errorf("%d reads are open, error %v", open, err)
		}
	}
}
