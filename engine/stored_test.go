package engine_test

import (
	"errors"
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

func TestAStoredUpdateIsToldFromANewOne(t *testing.T) {
	w := newWorld(crm.None)
	e := w.engine("ingress", 0)
	first, second, third := message(1, "hello"), message(1, "another"), message(1, "a third")
	w.accept(t, first)
	w.accept(t, second) // under its variant key
	w.poison(t, message(2, "").Key().Stream())
	events := len(w.history(first.Key().Stream()))
	for name, c := range map[string]struct {
		update job.Update
		want   bool
	}{
		"stored":                   {first, true},
		"stored as a variant":      {second, true},
		"another under the key":    {third, false},
		"under an unreadable key":  {message(2, "hello"), false},
		"new":                      {message(3, "hello"), false},
		"spelled another way":      {parse(`{ "message":{"text":"hello","chat":{"id":5.0},"message_id":1},"update_id":1}`), true},
		"equal but for its number": {message(4, "hello"), false},
	} {
		if got, err := e.Stored(t.Context(), c.update); got != c.want || err != nil {
			t.Errorf("%s: stored is %t, %v; want %t", name, got, err, c.want)
		}
	}
	if n := len(w.history(first.Key().Stream())); n != events {
		t.Errorf("asking added %d events", n-events)
	}
}

func TestALogThatCannotBeReadProvesNothing(t *testing.T) {
	w := newWorld(crm.None)
	w.accept(t, message(1, "hello"))
	w.fail("read", down)
	stored, err := w.engine("ingress", 0).Stored(t.Context(), message(1, "hello"))
	if stored || !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("stored is %t, %v; want an error", stored, err)
	}
	w.fail("read", none, down)
	if stored, err := w.engine("ingress", 0).Stored(t.Context(), message(1, "another")); stored || !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("the variant cannot be read: stored is %t, %v; want an error", stored, err)
	}
	w.fail("read", none, down)
	if stored, err := w.engine("ingress", 0).Stored(t.Context(), message(2, "hello")); stored || err != nil || len(w.faults["read"]) != 1 {
		t.Errorf("nobody has the key: stored is %t, %v, after another read", stored, err)
	}
}
