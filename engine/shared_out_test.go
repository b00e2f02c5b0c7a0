package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// crew is processes on one log, each with its agenda.
type crew struct {
	t     *testing.T
	w     *world
	names []string
	tasks []*engine.Agenda
}

func newCrew(t *testing.T, names ...string) *crew {
	c := &crew{t: t, w: newWorld(crm.Lookup), names: names}
	for _, name := range names {
		a := engine.NewAgenda()
		a.Share(name)
		c.tasks = append(c.tasks, a)
	}
	return c
}

// claim records that the process took a job of its own.
func (c *crew) claim(name string, update int64) {
	stream := job.Key{Bot: bot, Update: update}.Stream()
	now := c.w.time.Now()
	c.w.append(c.t, stream, job.UpdateReceived{Key: job.Key{Bot: bot, Update: update}, Kind: "poll", Update: "{}"})
	c.w.append(c.t, stream, job.JobClaimed{Worker: name, LeaseUntil: now.Add(time.Minute), Deadline: now})
	c.w.append(c.t, stream, job.NoEffectNeeded{})
}

// accept stores an update, and returns when each process may take its job, counted
// from now.
func (c *crew) accept(update int64) (waits []time.Duration) {
	key := job.Key{Bot: bot, Update: update}
	c.w.append(c.t, key.Stream(), job.UpdateReceived{Key: key, Kind: "poll", Update: "{}"})
	accepted := c.w.time.Now()
	for _, a := range c.tasks {
		sweep(c.t, c.w, a)
		at, ok := a.NextDue()
		if !ok {
			c.t.Fatal("a job is on no agenda")
		}
		waits = append(waits, at.Sub(accepted))
	}
	c.w.append(c.t, key.Stream(), job.NoEffectNeeded{})
	return waits
}

const handOver = 500 * time.Millisecond

// TestEachJobIsForOneProcess: of those that claim jobs, one may take it at once, the
// next a moment later, and so on, and the load is spread.
func TestEachJobIsForOneProcess(t *testing.T) {
	c := newCrew(t, "a-1", "b-1", "c-1")
	for i, name := range c.names {
		c.claim(name, int64(i))
	}
	first := map[int]int{}
	const jobs = 300
	for n := range int64(jobs) {
		waits := c.accept(100 + n)
		first[slices.Index(waits, 0)]++
		slices.Sort(waits)
		if want := []time.Duration{0, handOver, 2 * handOver}; !slices.Equal(waits, want) {
			t.Fatalf("job %d can be taken after %v, want %v", n, waits, want)
		}
	}
	for i := range c.names {
		if n := first[i]; n < jobs/5 || n > jobs/2 {
			t.Errorf("%s comes first for %d of %d jobs", c.names[i], n, jobs)
		}
	}
}

// TestWhoClaimsNothingComesLast: a process that has just started takes what the
// others leave, and one that is alone takes everything at once.
func TestWhoClaimsNothingComesLast(t *testing.T) {
	c := newCrew(t, "a-1", "b-1", "new-1")
	if waits := c.accept(1); !slices.Equal(waits, []time.Duration{0, 0, 0}) {
		t.Errorf("nobody has claimed anything, and the waits are %v", waits)
	}
	c.claim("a-1", 2)
	c.claim("b-1", 3)
	for n := range int64(20) {
		if waits := c.accept(100 + n); waits[2] != 2*handOver {
			t.Errorf("the new one may take job %d after %s, want %s", n, waits[2], 2*handOver)
		}
	}
	c.claim("new-1", 4)
	won := 0
	for n := range int64(100) {
		if c.accept(200 + n)[2] == 0 {
			won++
		}
	}
	if won == 0 {
		t.Error("it has claimed a job, and still comes first for none")
	}
}

// TestWhoWasIdleComesLastAgain: the others do not count on it any more.
func TestWhoWasIdleComesLastAgain(t *testing.T) {
	c := newCrew(t, "idle-1", "busy-1")
	c.claim("idle-1", 1)
	for n := range int64(3) {
		c.w.time.advance(time.Minute / 2)
		c.claim("busy-1", 2+n)
	}
	for n := range int64(20) {
		if waits := c.accept(100 + n); !slices.Equal(waits, []time.Duration{handOver, 0}) {
			t.Fatalf("job %d can be taken after %v", n, waits)
		}
	}
}

// TestAClockFarAheadIsForgotten: one claim of the year to come makes nobody look dead.
func TestAClockFarAheadIsForgotten(t *testing.T) {
	c := newCrew(t, "a-1", "b-1")
	now := c.w.time
	c.w.time = &timeline{now: now.Now().AddDate(1, 0, 0)}
	c.claim("wrong-1", 1)
	c.w.time = now
	c.claim("a-1", 2)
	c.claim("b-1", 3)
	for n := range int64(20) {
		waits := c.accept(100 + n)
		slices.Sort(waits)
		if !slices.Equal(waits, []time.Duration{0, handOver}) {
			t.Fatalf("job %d can be taken after %v", n, waits)
		}
	}
}

// TestTheDeadAreForgotten: what was for a process that is gone is taken by the next
// one, at once when a minute has passed, and soon whatever number of them died.
func TestTheDeadAreForgotten(t *testing.T) {
	c := newCrew(t, "alive-1")
	for n := range int64(50) {
		c.claim(fmt.Sprint("dead-", n), n)
	}
	c.claim("alive-1", 60)
	most := time.Duration(0)
	for n := range int64(50) {
		most = max(most, c.accept(100 + n)[0])
	}
	if most != 4*handOver {
		t.Errorf("with 50 dead ones a job waits up to %s, want %s", most, 4*handOver)
	}
	for n := range int64(2) { // it lives all the time
		c.w.time.advance(time.Minute / 2)
		c.claim("alive-1", 61+n)
	}
	now := c.w.time
	c.w.time = &timeline{now: now.Now().Add(-time.Minute)} // of a process whose clock is behind
	for n := range int64(20) {
		if wait := c.accept(150 + n)[0]; wait != 0 {
			t.Fatalf("job %d waits %s for the dead, as they lived by a clock that is behind", n, wait)
		}
	}
	c.w.time = now
	for n := range int64(50) {
		if wait := c.accept(200 + n)[0]; wait != 0 {
			t.Fatalf("a minute later job %d waits %s", n, wait)
		}
	}
}

// TestJobsInHandArePassedOn: when a process joins, the jobs that are known already
// are given to both.
func TestJobsInHandArePassedOn(t *testing.T) {
	c := newCrew(t, "a-1", "b-1")
	c.claim("a-1", 1)
	const jobs = 40
	for n := range int64(jobs) {
		key := job.Key{Bot: bot, Update: 100 + n}
		c.w.append(t, key.Stream(), job.UpdateReceived{Key: key, Kind: "poll", Update: "{}"})
	}
	own := c.w.time.Now()
	at := func(a *engine.Agenda) (n int) {
		sweep(t, c.w, a)
		taken := []string{}
		for {
			stream, ok := a.Next(own)
			if !ok {
				break
			}
			taken = append(taken, stream)
		}
		for _, stream := range taken {
			a.Done(stream, engine.Verdict{})
		}
		return len(taken)
	}
	if n := at(c.tasks[0]); n != jobs {
		t.Fatalf("the only process may take %d of %d jobs", n, jobs)
	}
	c.claim("b-1", 2)
	a, b := at(c.tasks[0]), at(c.tasks[1])
	if a+b != jobs || a < jobs/5 || b < jobs/5 {
		t.Errorf("of %d jobs, %d are for the one and %d for the other", jobs, a, b)
	}
}

// TestAnAgendaThatDoesNotShareWaitsForNobody: whatever others claim.
func TestAnAgendaThatDoesNotShareWaitsForNobody(t *testing.T) {
	c := newCrew(t)
	c.tasks = append(c.tasks, engine.NewAgenda())
	c.claim("other-1", 1)
	for n := range int64(20) {
		if wait := c.accept(100 + n)[0]; wait != 0 {
			t.Fatalf("job %d waits %s", n, wait)
		}
	}
}
