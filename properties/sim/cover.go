package sim

import (
	"strings"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// landmark is a situation that runs must come to, or they show nothing.
type landmark uint8

const (
	doneByCreate landmark = iota
	doneByUpsert
	doneByExists
	doneByLookup
	doneByOperator
	doneByLateReceipt
	doneAtRetry
	retried
	takenOver
	ambiguousThenGivenUp
	refusedForEver
	refusedAfterAmbiguous
	absentByLookup
	absentByOperator
	secondID
	madeByAnother
	blockedByDiscard
	repeated
	lateAnswer
	givenUpByTelegram
	circuitOpened
	heldBack
	waitedForTurn
	resumedAtAStep
	leadIncomplete
	blockedByAPart
	nextStepDoubted
	restGivenUp
	landmarks
)

var landmarkNames = [landmarks]string{
	"done by create", "done by upsert", "done by exists", "done by lookup", "done by operator",
	"done by a late receipt", "done at a retry", "retried", "taken over after its lease",
	"not repeatable any more", "refused by the CRM", "refused after an ambiguous attempt", "absent by lookup",
	"absent by operator", "a second id", "made by another job", "blocked by a discarded one",
	"delivered again", "answered after the deadline",
	"given up by Telegram", "too many failures in a row", "held back by the connector", "waited for its turn",
	"resumed at a later step by a new life", "lead made, and what belongs to it not",
	"blocked by one that was given up after a part", "the step behind a doubted one doubted",
	"an operator goes without what belongs to a lead",
}

// outcomes are the classes of what came of a request.
const outcomes = 5 // a receipt, and the four of crm.Outcome

// Coverage counts what runs came to.
type Coverage struct {
	Runs        int
	Calls       int
	landmarks   [landmarks]int
	creates     [outcomes]int
	finds       [outcomes]int
	transitions [32]int
	pairs       [faults][faults]int32

	decoded map[string]job.Event // by their bytes: most events come again in later runs
}

// decodedMax bounds what is remembered of decoded events.
const decodedMax = 4096

// decode is job.Decode, remembered from run to run.
func (c *Coverage) decode(p eventlog.Proposed) (job.Event, error) {
	if e, ok := c.decoded[string(p.Data)]; ok && strings.HasPrefix(p.Type, e.Name()) {
		return e, nil
	}
	e, err := job.Decode(p.Type, p.Data)
	if err != nil {
		return nil, err
	}
	if c.decoded == nil || len(c.decoded) >= decodedMax {
		c.decoded = make(map[string]job.Event, decodedMax)
	}
	c.decoded[string(p.Data)] = e
	return e, nil
}

func (c *Coverage) hit(l landmark) { c.landmarks[l]++ }

func (c *Coverage) called(r engine.Request, err *crm.Error) {
	n := 0
	if err != nil {
		n = 1 + int(err.Outcome)
	}
	if r == engine.Find {
		c.finds[n]++
		return
	}
	c.creates[n]++
}

// rows numbers the transitions of the judge's table.
var rows = func() map[[3]string]int {
	index := map[[3]string]int{}
	for _, event := range job.EventNames() {
		for _, m := range moves[event] {
			index[[3]string{event, string(m.from), string(m.to)}] = len(index)
		}
	}
	return index
}()

func (c *Coverage) transition(e job.Event, from, to job.Phase) {
	if i, ok := rows[[3]string{e.Name(), string(from), string(to)}]; ok {
		c.transitions[i]++
	}
}

func (c *Coverage) confirmed(before job.State, e job.LeadConfirmed) {
	if l, ok := map[job.Confirmation]landmark{
		job.ByCreate: doneByCreate, job.ByUpsert: doneByUpsert, job.ByExists: doneByExists,
		job.ByLookup: doneByLookup, job.ByOperator: doneByOperator, job.ByLate: doneByLateReceipt,
	}[e.How]; ok {
		c.hit(l)
	}
	if before.Attempts > 1 && e.How != job.ByOperator {
		c.hit(doneAtRetry)
	}
}

func (c *Coverage) absent(e job.LeadAbsent) {
	if e.How == job.ByOperator {
		c.hit(absentByOperator)
		return
	}
	c.hit(absentByLookup)
}

// add takes in another count, and the faults of a run.
func (c *Coverage) add(o *Coverage) {
	c.Runs += o.Runs
	c.Calls += o.Calls
	sum(c.landmarks[:], o.landmarks[:])
	sum(c.creates[:], o.creates[:])
	sum(c.finds[:], o.finds[:])
	sum(c.transitions[:], o.transitions[:])
	for i := range c.pairs {
		for j := range c.pairs[i] {
			c.pairs[i][j] += o.pairs[i][j]
		}
	}
}

func sum(to, from []int) {
	for i, n := range from {
		to[i] += n
	}
}

// together counts the pairs of faults that happened in one run.
func (c *Coverage) together(happened uint64) {
	for i := range int(faults) {
		if happened>>i&1 == 0 {
			continue
		}
		for j := i; j < int(faults); j++ {
			if happened>>j&1 == 1 {
				c.pairs[i][j]++
			}
		}
	}
}
