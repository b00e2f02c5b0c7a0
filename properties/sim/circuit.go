package sim

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// limits are how often a process may ask the CRM, and how many failures in a row
// make it leave the CRM alone. The description of the CRM says it; these are the
// judge's own words for it.
type limits struct {
	described  *restcrm.Definition
	inSteps    map[crm.Class]*restcrm.Definition // by the class of the lead
	breakAfter int
	breakFor   time.Duration
}

const (
	shippedLimits = "limits: {break_after: 20, break_for: 5s}"
	strictLimits  = "limits: {per_second: 0.2, burst: 2, break_after: 2, break_for: 20s}"
)

// The description that ships, read once for all runs; and the same with limits that
// runs come to often.
var (
	asShipped = sync.OnceValue(func() limits { return describe(shippedLimits, 20, 5*time.Second) })
	strict    = sync.OnceValue(func() limits { return describe(strictLimits, 2, 20*time.Second) })
)

func describe(said string, breakAfter int, breakFor time.Duration) limits {
	document, err := restcrm.Document("crmsim")
	must(err)
	if !bytes.Contains(document, []byte(shippedLimits)) {
		panic("the limits of crmsim.yaml are no longer those that are judged here")
	}
	text := strings.Replace(string(document), shippedLimits, said, 1)
	l := limits{inSteps: map[crm.Class]*restcrm.Definition{}, breakAfter: breakAfter, breakFor: breakFor}
	l.described, err = restcrm.Load("crmsim.yaml", []byte(text))
	must(err)
	for _, class := range crm.Classes {
		l.inSteps[class], err = restcrm.Load("crmsim-steps.yaml", []byte(describeSteps(text, class)))
		must(err)
	}
	return l
}

// circuit is what the judge counts of a process's requests. A connector counts by
// itself, and holds back what the judge would not forgive.
type circuit struct {
	failures int       // in a row
	until    time.Time // in true time; before it the CRM is left alone
	opened   int       // calls of ports before it last opened
}

// leaves judges a request that reaches the CRM.
func (n *network) leaves() {
	w, p := n.p.w, n.p
	if a := w.current; a != nil && w.now.Before(p.circuit.until) && a.entered > p.circuit.opened {
		w.breaks(true, CRMIsSpared, "%s asks the CRM although the last %d requests failed", a.name, p.circuit.failures)
	}
}

// failed notes a request without an answer that the description knows.
func (n *network) failed() {
	w, c, l := n.p.w, &n.p.circuit, n.p.limits()
	if c.failures++; c.failures >= l.breakAfter {
		c.until, c.opened = w.now.Add(l.breakFor), w.calls
		w.cover.hit(circuitOpened)
	}
}

// answered notes one with such an answer, which makes the CRM good again.
func (n *network) answered() { n.p.circuit = circuit{} }

func (p *process) limits() limits {
	if p.w.plan.Limited {
		return strict()
	}
	return asShipped()
}

// turn is how the connector waits until the limit lets its request leave.
func (p *process) turn(ctx context.Context, d time.Duration) error {
	p.w.cover.hit(waitedForTurn)
	return (&clock{p}).Sleep(ctx, d)
}

// enters judges a call of the connector, which then decides whether a request may
// leave: the engine spares the CRM by itself, whatever a connector would hold back.
func (w *world) enters() {
	a := w.current
	if a == nil {
		return
	}
	a.entered = w.calls
	p := a.process
	w.breaks(w.now.Before(p.leftAlone) && a.began > p.asked, CRMIsSpared, "%s calls the connector, and the CRM asked to be left alone", a.name)
}

// held notes what the connector kept back, and that it asks for a pause as the CRM
// does. The network's own errors ask for none.
func (w *world) held(err error) {
	if err == nil {
		return
	}
	if e := crm.Classify(err); e.Outcome == crm.NotSent && e.RetryAfter > 0 {
		w.cover.hit(heldBack)
		if a := w.current; a != nil {
			a.asked = w.now.Add(min(e.RetryAfter, retryMax))
		}
	}
}
