package engine_test

import (
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// TestACRMOutOfReachFillsTheLog: while no request can leave, jobs wait without
// claims, and the waits grow.
func TestACRMOutOfReachFillsTheLog(t *testing.T) {
	const jobs, outage = 50, 2 * time.Hour
	w := newWorld(crm.Lookup)
	for i := range jobs {
		w.accept(t, message(i+1, "a"))
	}
	ends := w.time.Now().Add(outage)
	w.interpose = func(point string) fault {
		if point == "create" && w.time.Now().Before(ends) {
			return down
		}
		return none
	}
	w.run(t, w.engine("a", 0))
	// A claim and a release in each pause, which is a minute at the most and half
	// of it on average; without pauses it would be so for each of the jobs.
	if most := 4 * int(outage/w.policy.RetryMax) * 2; len(w.seen.recorded) > most {
		t.Errorf("%d events in an outage of %s, want at most %d", len(w.seen.recorded), outage, most)
	}
	for i := range jobs {
		wantPhase(t, w, message(i+1, "a").Key(), job.Done)
	}
}
