package audit_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/audit"
	"github.com/leadonce/leadonce/engine/eventlog"
)

// tornLog cannot be read behind its first events.
type tornLog struct {
	eventlog.Log
	readable int
}

func (l tornLog) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		n := 0
		for r, err := range l.Log.ReadAll(ctx, after) {
			if n++; n > l.readable {
				yield(eventlog.Recorded{}, errDown)
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// snapshot is what serve writes beside the log.
func snapshot(t *testing.T, log eventlog.Log) []byte {
	t.Helper()
	a := engine.NewAgenda()
	if err := a.Sweep(t.Context(), log, nil); err != nil {
		t.Fatal(err)
	}
	data, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCut(t *testing.T) {
	s, other := newStory(t), newStory(t)
	nothing := snapshot(t, s.log)
	s.done(1, "", "L-1")
	before := snapshot(t, s.log)
	s.done(2, "", "L-2")
	now := snapshot(t, s.log)
	other.next = 100
	for range 6 {
		other.append("somebody-elses", "Unheard.v9", nil)
	}
	last := func(r eventlog.Recorded) bool { return r.Stream == key(2).Stream() && r.Revision == 2 }
	for name, c := range map[string]struct {
		log      eventlog.Log
		snapshot []byte
		cut      bool
		err      error
	}{
		"of an empty log":     {s.log, nothing, false, nil},
		"of an earlier state": {s.log, before, false, nil},
		"of this state":       {s.log, now, false, nil},
		"the end is cut off":  {censored{s.log, last}, now, true, nil},
		"another log":         {other.log, now, true, nil},
		"an empty log":        {newStory(t).log, now, true, nil},
		"a log that is down":  {failingLog{s.log, "stream"}, now, false, errDown},
		"no JSON":             {s.log, now[:len(now)/2], false, audit.ErrNoSnapshot},
		"no snapshot":         {s.log, []byte("null"), false, audit.ErrNoSnapshot},
	} {
		cut, err := audit.Cut(t.Context(), c.log, c.snapshot)
		if cut != c.cut || !errors.Is(err, c.err) {
			t.Errorf("%s: cut %t, error %v", name, cut, err)
		}
	}
}
