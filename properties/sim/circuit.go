package sim

import (
	"bytes"
	"context"
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
	asShipped = sync.OnceValue(func() limits { return limits{describe(shippedLimits), 20, 5 * time.Second} })
	strict    = sync.OnceValue(func() limits { return limits{describe(strictLimits), 2, 20 * time.Second} })
)

func describe(limits string) *restcrm.Definition {
	document, err := restcrm.Document("crmsim")
	must(err)
	if !bytes.Contains(document, []byte(shippedLimits)) {
		panic("the limits of crmsim.yaml are no longer those that are judged here")
	}
	d, err := restcrm.Load("crmsim.yaml", bytes.Replace(document, []byte(shippedLimits), []byte(limits), 1))
	must(err)
	return d
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

// enters notes that the connector is about to decide whether a request may leave.
func (w *world) enters() {
	if w.current != nil {
		w.current.entered = w.calls
	}
}

// held counts what the connector kept back. The network's own errors ask for no pause.
func (w *world) held(err error) {
	if err == nil {
		return
	}
	if e := crm.Classify(err); e.Outcome == crm.NotSent && e.RetryAfter > 0 {
		w.cover.hit(heldBack)
	}
}
