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

// TestThePausesGoOnGrowingAfterTheCRMIsBack: each outage begins with a short one.
func TestThePausesGoOnGrowingAfterTheCRMIsBack(t *testing.T) {
	w := newWorld(crm.None)
	e, waits := w.engine("a", 0), w.accept(t, message(100, "another"))
	for i := range 12 {
		key := w.accept(t, message(i, "a"))
		w.fail("create", down)
		w.advance(t, e, key)
		if v := w.advance(t, e, waits); v.Schedule != job.DueAt || v.At.Sub(w.time.Now()) > w.policy.RetryFirst {
			t.Fatalf("outage %d begins with a pause of %s", i, v.At.Sub(w.time.Now()))
		}
		w.time.advance(w.policy.RetryMax)
		w.advance(t, e, key)
		wantPhase(t, w, key, job.Done)
	}
}

// TestRequestsThatFailTogetherLengthenThePauseOnce: they are one outage.
func TestRequestsThatFailTogetherLengthenThePauseOnce(t *testing.T) {
	const together = 12
	w := newWorld(crm.None)
	e, waits := w.engine("a", 0), w.accept(t, message(100, "another"))
	var keys []job.Key
	for i := range together {
		keys = append(keys, w.accept(t, message(i, "a")))
		w.fail("create", down)
	}
	for _, next := range keys[1:] { // it leaves while the one before is under way
		w.meanwhile("create", func() { w.advance(t, e, next) })
	}
	w.advance(t, e, keys[0])
	if len(w.crm.asked) != together {
		t.Fatalf("%d requests", len(w.crm.asked))
	}
	if v := w.advance(t, e, waits); v.Schedule != job.DueAt || v.At.Sub(w.time.Now()) > w.policy.RetryFirst {
		t.Errorf("the next request waits %s, want up to %s", v.At.Sub(w.time.Now()), w.policy.RetryFirst)
	}
}
