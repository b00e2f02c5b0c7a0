package properties

import (
	"slices"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/properties/sim"
)

// effect is when the CRM gets a request.
type effect uint8

const (
	never effect = iota
	once
	twice
	later
	onceAndLater
)

// arrivals is how often it gets the request at once.
func (e effect) arrivals() int {
	return map[effect]int{once: 1, twice: 2, onceAndLater: 1}[e]
}

// answer is what the connector gets.
type answer uint8

const (
	nothing answer = iota // the connection is closed
	truth                 // what the CRM said
	forged
	silence // until the deadline is over
)

// fault is what the wire does to one request.
type fault struct {
	effect effect
	answer answer
	status int
	header map[string]string
	body   string
}

const (
	failed  = `{"error":{"code":"internal"}}`
	aPage   = "<!doctype html><title>Sign in</title><p>Please sign in."
	anOK    = `{"status":"ok"}`
	anError = `{"error":{"code":"bad_request"}}`
)

// faults are those that say nothing of what became of a request, whatever the
// vendor.
var faults = map[sim.Fault]fault{
	sim.None:              {effect: once, answer: truth},
	sim.CutAfter:          {effect: once},
	sim.CutBefore:         {},
	sim.AnswerLost:        {effect: once, answer: silence},
	sim.EffectLate:        {effect: later, answer: silence},
	sim.ErrorAfter:        {effect: once, answer: forged, status: 500, body: failed},
	sim.ErrorBefore:       {answer: forged, status: 500, body: failed},
	sim.UnavailableAfter:  {effect: once, answer: forged, status: 503},
	sim.UnavailableBefore: {answer: forged, status: 503},
	sim.WithoutID:         {effect: once, answer: forged, status: 200, body: anOK},
	sim.ErrorInside:       {answer: forged, status: 200, body: failed},
	sim.ErrorInsideAfter:  {effect: once, answer: forged, status: 200, body: failed},
	sim.HTMLBefore:        {answer: forged, status: 200, body: aPage},
	sim.HTMLAfter:         {effect: once, answer: forged, status: 200, body: aPage},
	sim.BadRequestAfter:   {effect: once, answer: forged, status: 400, body: anError},
	sim.AcceptedLater:     {effect: later, answer: forged, status: 202, body: anOK},
	sim.LoginRedirect:     {answer: forged, status: 302, header: map[string]string{"Location": "/login"}, body: aPage},
	sim.Duplicated:        {effect: twice, answer: truth},
	sim.DuplicatedLate:    {effect: onceAndLater, answer: truth},
}

var (
	creates = []sim.Fault{
		sim.CutAfter, sim.ErrorAfter, sim.CutBefore, sim.EffectLate, sim.ErrorBefore, sim.AnswerLost, sim.UnavailableAfter,
		sim.UnavailableBefore, sim.WithoutID, sim.BadRequestAfter, sim.AcceptedLater, sim.ErrorInside,
		sim.ErrorInsideAfter, sim.HTMLBefore, sim.HTMLAfter, sim.LoginRedirect,
	}
	duplicates = []sim.Fault{sim.Duplicated, sim.DuplicatedLate}
	finds      = []sim.Fault{
		sim.CutBefore, sim.ErrorBefore, sim.ErrorInside, sim.HTMLBefore, sim.LoginRedirect, sim.UnavailableBefore, sim.AnswerLost,
	}
)

// createsFor are the faults of a create: duplicates only where the class knows two
// requests for one, and the vendor's own proofs only where there are some.
func createsFor(class crm.Class, answers []crmtest.Answer) []sim.Fault {
	list := slices.Clone(creates)
	if class.Repeatable() {
		list = append(list, duplicates...)
	}
	for _, f := range []sim.Fault{sim.NotExecuted, sim.RefusedNow} {
		if len(vendors(f, answers)) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// vendors are the vendor's documented answers that stand for the fault: one that
// proves that nothing was done, one that proves that it never will be, and those
// that prove nothing.
func vendors(f sim.Fault, answers []crmtest.Answer) (list []fault) {
	wanted, ok := map[sim.Fault]crm.Outcome{
		sim.NotExecuted: crm.NotApplied, sim.RefusedNow: crm.Refused, sim.BadRequestAfter: crm.Unknown,
	}[f]
	for _, a := range answers {
		if !ok || a.Want != wanted || a.Applied && wanted != crm.Unknown {
			continue
		}
		x := fault{answer: forged, status: a.Status, header: a.Header, body: a.Body}
		if a.Applied {
			x.effect = once
		}
		list = append(list, x)
	}
	return list
}
