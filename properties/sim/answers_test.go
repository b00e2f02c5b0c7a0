package sim

import (
	"fmt"
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// An answer is what the CRM says to one request, a create or a lookup.
type answered struct {
	name         string
	create, find Fault
}

var answers = []answered{
	{"the truth", None, None},
	{"made, and the answer is lost", CutAfter, CutBefore},
	{"nothing made, and nobody knows", ErrorBefore, ErrorBefore},
	{"try again later", RateLimitedAbsent, RateLimitedAbsent},
	{"refused", RefusedNow, LoginRedirect},
	{"not connected", NotConnected, NotConnected},
}

const (
	theTruth = iota
	madeAndLost
	nobodyKnows
	tryLater
	isRefused
	notConnected
)

// answersMax is the length of the sequences. What comes behind them is the truth.
const answersMax = 5

// budget is the policy's number of attempts in these runs.
const budget = 3

// verdict is what a job comes to before any person acts, and what that took.
type verdict struct {
	phase          job.Phase
	human          bool
	creates, finds int
}

// reference is the right verdict, as a function of what the CRM answers, by the
// words of the design alone.
func reference(class crm.Class, sequence []int) verdict {
	var v verdict
	spent, made, ambiguous, asking := 0, false, false, false
	next := func() int {
		n := v.creates + v.finds
		if n >= len(sequence) {
			return theTruth
		}
		return sequence[n]
	}
	for {
		answer := next()
		if asking {
			v.finds++
			switch {
			case answer != theTruth: // says nothing: it is asked again
			case made:
				v.phase = job.Done
				return v
			case spent >= budget:
				v.phase = job.DeadLetter
				return v
			default:
				asking, ambiguous = false, false
			}
			continue
		}
		v.creates++
		switch answer {
		case theTruth:
			v.phase = job.Done
			return v
		case notConnected:
			continue
		case isRefused:
			if !ambiguous {
				v.phase = job.DeadLetter
				return v
			}
			spent++
			asking = true
		case madeAndLost, nobodyKnows:
			made = made || answer == madeAndLost
			ambiguous = true
			spent++
			asking = !class.Repeatable() || spent >= budget
		case tryLater:
			if spent++; spent < budget {
				continue
			}
			if !ambiguous {
				v.phase = job.DeadLetter
				return v
			}
			asking = true
		}
		if asking && class == crm.None {
			v.phase, v.human = job.NeedsReconciliation, true
			return v
		}
	}
}

// TestEverySequenceOfAnswers: for every class, each sequence of up to five answers
// ends in the right verdict, after exactly the right number of requests. An engine
// that is safe and useless fails here.
func TestEverySequenceOfAnswers(t *testing.T) {
	var cover Coverage
	runs, ends, length := 0, map[verdict]bool{}, answersMax
	if testing.Short() {
		length--
	}
	for _, class := range crm.Classes {
		for n := range pow(len(answers), length) {
			sequence := make([]int, length)
			for i := range sequence {
				sequence[i], n = n%len(answers), n/len(answers)
			}
			want := reference(class, sequence)
			got, broken := play(class, sequence, &cover, nil)
			if got != want || broken != nil {
				story := func(line string) { t.Log(line) }
				play(class, sequence, &cover, story)
				t.Fatalf("%s, %v: got %+v, want %+v (%v)", class, named(sequence), got, want, broken)
			}
			ends[want] = true
			runs++
		}
	}
	if want := len(crm.Classes) * pow(len(answers), length); runs != want || len(ends) < 20 {
		t.Errorf("%d sequences with %d different ends, want %d and at least 20", runs, len(ends), want)
	}
	t.Logf("%d sequences, %d different ends, %d calls", runs, len(ends), cover.Calls)
}

func pow(n, to int) int {
	result := 1
	for range to {
		result *= n
	}
	return result
}

func named(sequence []int) (names []string) {
	for _, n := range sequence {
		names = append(names, answers[n].name)
	}
	return names
}

// play lets one worker meet one job with the answers, until the job is final or
// before a human.
func play(class crm.Class, sequence []int, cover *Coverage, story func(string)) (verdict, *Violation) {
	w := newWorld(Plan{Setup: Setup{
		Class: class, Processes: 1, Workers: 1, Updates: []int{0}, Attempts: budget, Faults: AllFaults, Steady: true,
	}}, cover, story, &stage{})
	defer w.end()
	w.finish(w.deliver(w.chats.enquiries[0], w.processes[0]))
	worker := w.actors[0]
	var v verdict
	next := func(count *int, fault func(answered) Fault) Fault {
		n := v.creates + v.finds
		*count++
		if n >= len(sequence) {
			return None
		}
		return fault(answers[sequence[n]])
	}
	for w.broken == nil && w.calls < 2_000 {
		fault := None
		switch worker.at.port {
		case creating:
			fault = next(&v.creates, func(a answered) Fault { return a.create })
		case finding:
			fault = next(&v.finds, func(a answered) Fault { return a.find })
		}
		w.step(worker, fault)
		if worker.at.port != idle {
			continue
		}
		if wait, ok := w.wait(func(*process) bool { return true }); ok && !w.quiet() {
			w.pass(wait)
		} else if !worker.process.behind() {
			break
		}
	}
	cover.Calls += w.calls
	s := w.jobs[0].state
	v.phase, v.human = s.Phase, s.Human
	w.breaks(len(w.crm.op(known[0].operation).made()) > 1, AtMostOneEffect, "%s", fmt.Sprint(w.crm.op(known[0].operation).made()))
	return v, w.broken
}
