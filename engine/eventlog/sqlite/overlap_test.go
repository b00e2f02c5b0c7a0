package sqlite

import (
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// An append under Any that has some of its events among the stream's newest ones
// is one that was repeated in part: a conflict, as in the log in memory.
func TestOverlapUnderAnyIsAConflict(t *testing.T) {
	a, b, c, d := event("a"), event("b"), event("c"), event("d")
	for name, events := range map[string][]eventlog.Proposed{
		"the newest and a new one":   {b, c},
		"a new one and the newest":   {c, b},
		"another order":              {b, a},
		"the last but one":           {c, a},
		"more than the stream has":   {a, b, c},
		"more, and in another place": {c, d, b},
	} {
		l := open(t, newPath(t), Options{})
		mustAppend(t, l, "s", eventlog.NoStream, a, b)
		if _, err := l.Append(t.Context(), "s", eventlog.Any, events...); !eventlog.IsConflict(err) {
			t.Errorf("%s: error is %v, want a conflict", name, err)
		}
		if at := mustAppend(t, l, "s", eventlog.Any, a, b); at.Revision != 1 {
			t.Errorf("%s: the repeat ended at revision %d, want 1", name, at.Revision)
		}
		if got := count(t, l.ReadStream(t.Context(), "s", 0)); got != 2 {
			t.Errorf("%s: the stream has %d events, want 2", name, got)
		}
		mustAppend(t, l, "s", eventlog.Any, c)
		if at := mustAppend(t, l, "s", eventlog.Any, a); at.Revision != 3 {
			t.Errorf("%s: an event that is not among the newest ended at revision %d, want 3", name, at.Revision)
		}
	}
}
