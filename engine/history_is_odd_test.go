package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// TestNothingIsRecordedThatTheTableDoesNotAllow: a stream without its first event is
// no job. Whatever is decided about it is refused.
func TestNothingIsRecordedThatTheTableDoesNotAllow(t *testing.T) {
	for _, class := range []crm.Class{crm.None, crm.Lookup} {
		w := newWorld(class)
		key := message(1, "hello").Key()
		w.append(t, key.Stream(), job.DeliveryRepeated{Reason: "of what?"})
		v, err := w.engine("a", 0).Advance(t.Context(), key.Stream())
		if err == nil || !strings.Contains(err.Error(), "not allowed in phase new") || v.Schedule != job.Unchanged {
			t.Errorf("%s: %+v, %v", class, v, err)
		}
		wantHistory(t, w, key, "DeliveryRepeated")
	}
}

// TestAStoppedJobSaysWhere: at which event of which stream, and why.
func TestAStoppedJobSaysWhere(t *testing.T) {
	w := newWorld(crm.None)
	w.accept(t, message(2, "another"))
	key := w.accept(t, message(1, "hello"))
	w.poison(t, key.Stream())
	w.append(t, key.Stream(), job.DeliveryRepeated{})
	s, err := engine.Load(t.Context(), w.store, key.Stream())
	var stopped *engine.StoppedError
	var unknown *job.UnknownTypeError
	if !errors.As(err, &stopped) || !errors.As(err, &unknown) || s.EventCount != 1 || s.Key != key {
		t.Fatalf("%+v, %v", s, err)
	}
	var at eventlog.Position
	for r := range w.store.ReadStream(t.Context(), key.Stream(), 1) {
		at = r.Position
		break
	}
	if stopped.Stream != key.Stream() || stopped.Revision != 1 || stopped.Position != at {
		t.Errorf("stopped at %+v, want revision 1 of %s, position %s", stopped, key.Stream(), at)
	}
}
