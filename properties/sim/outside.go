package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Call is one call of a connector.
type Call struct {
	Ctx       context.Context
	Connector crm.Connector
	Operation crm.Operation // of a lookup: the id alone
	Lookup    bool
	Left      time.Duration // until the deadline; the Operation's own is in simulated time
	Fault     Fault
}

// Passage is what came of a call, and what the wire saw of it.
type Passage struct {
	Receipts []crm.Receipt
	Err      error

	Creates int           // requests that can make a lead
	Held    bool          // one of them arrives later
	Overdue time.Duration // how long after its deadline the call still waited for an answer
}

// outside is a process's connector to a CRM from outside, and the judge beside it.
type outside struct {
	crm.Connector
	p *process
}

// connectOutside makes the connector that a new process has.
func (p *process) connectOutside() (crm.Connector, error) {
	c, err := p.w.parts.crm.Connect()
	if err != nil {
		return nil, err
	}
	return &witnessed{&outside{c, p}, p.w}, nil
}

// Describe is the connector's own description, with the simulation's times: the
// engine lives in simulated time, and waits through them in no time at all.
func (o *outside) Describe() crm.Description {
	d := o.Connector.Describe()
	if d.CanFind {
		d.Settle = settle
	}
	if d.KeyValidity > 0 {
		d.KeyValidity = keyValidity
	}
	return d
}

func (o *outside) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	w := o.p.w
	f := w.await(point{port: creating})
	left := op.Deadline.Sub(o.p.now())
	passage := w.parts.crm.Carry(Call{Ctx: ctx, Connector: o.Connector, Operation: op, Left: left, Fault: f})
	w.judgePassage(passage, left)
	w.noteCreate(op, op.Deadline.Add(-o.p.skew), f, passage)
	w.await(point{port: created})
	if passage.Err != nil {
		return crm.Receipt{}, passage.Err
	}
	return passage.Receipts[0], nil
}

// judgePassage holds a create against the rules that need no knowledge of the CRM.
func (w *world) judgePassage(p Passage, left time.Duration) {
	w.breaks(p.Creates > 1, OneRequest, "one Create puts %d requests on the wire", p.Creates)
	w.breaks(p.Creates > 0 && left <= 0, InTime, "a create leaves although its deadline is over")
	w.breaks(p.Overdue > 0, InTime, "a create still waits for its answer %s after its deadline", p.Overdue.Round(time.Millisecond))
	w.breaks(p.Err == nil && p.Receipts[0].CRMID == "", OnlyOnProof, "the connector says that the lead exists, and has no id of it")
	if p.Err != nil {
		proves := crm.Classify(p.Err).Outcome
		w.breaks(proves == crm.NotSent && p.Creates > 0, OnlyOnProof, "the connector says that nothing was sent, and a request is on the wire (%s)", p.Err)
	}
}

// noteCreate shows the judge a create that may have reached the CRM.
func (w *world) noteCreate(op crm.Operation, deadline time.Time, f Fault, p Passage) {
	o := w.crm.op(op.ID)
	proves := crm.Unknown
	if p.Err != nil {
		proves = crm.Classify(p.Err).Outcome
	}
	if p.Creates == 0 && proves == crm.NotSent {
		return
	}
	w.requested(o, deadline)
	number := len(o.requests) - 1
	if p.Held {
		w.crm.late = append(w.crm.late, lateEffect{op.ID, deadline.Add(settle - indexLag)})
	}
	made := w.see(o)
	if p.Err != nil {
		w.tell("    the connector: %s", p.Err)
		w.breaks(made && proves != crm.Unknown, OnlyOnProof, "the connector says %q (%s), and the CRM has made %s of this request", proves, p.Err, strings.Join(o.made(), ", "))
	}
	switch f {
	case NotExecuted, RefusedNow: // documented by the vendor
		o.requests[number].proof = true
	case None:
		o.requests[number].proof = p.Err != nil && proves != crm.Unknown && !made
	}
	o.refusals = o.refusals || proves == crm.Refused
}

// see looks at what the CRM has of the operation, and reports whether that is more
// than before.
func (w *world) see(o *operated) (more bool) {
	ids, err := w.parts.crm.Leads(o.id)
	w.breaks(err != nil, SandboxAnswers, "the sandbox's leads cannot be read: %v", err)
	for _, id := range ids {
		if slices.Contains(o.made(), id) {
			continue
		}
		more = true
		o.leads = append(o.leads, lead{id: id, at: w.now})
		w.tell("    the CRM has lead %s of operation %.8s", id, o.id)
	}
	if more {
		w.effected(o)
	}
	return more
}

// inspect asks a CRM from outside what it has of the operation by now.
func (w *world) inspect(o *operated) *operated {
	if w.parts.crm != nil {
		w.see(o)
	}
	return o
}

func (w *world) landOutside(o *operated) {
	w.parts.crm.Land(o.id)
	w.see(o)
}

func (o *outside) Find(ctx context.Context, operation string, deadline time.Time) ([]crm.Receipt, error) {
	w := o.p.w
	f := w.await(point{port: finding})
	passage := w.parts.crm.Carry(Call{
		Ctx: ctx, Connector: o.Connector, Operation: crm.Operation{ID: operation}, Lookup: true,
		Left: deadline.Sub(o.p.now()), Fault: f,
	})
	w.breaks(passage.Creates > 0, OneRequest, "a lookup puts a request on the wire that can make a lead")
	w.looked(operation)
	record := w.crm.op(operation)
	w.see(record)
	if passage.Err != nil {
		w.tell("    the connector: %s", passage.Err)
	} else {
		w.judgeLookup(record, f, passage.Receipts)
	}
	w.await(point{port: found})
	return passage.Receipts, passage.Err
}

// judgeLookup compares what the connector finds with what there is.
func (w *world) judgeLookup(o *operated, f Fault, receipts []crm.Receipt) {
	w.breaks(f != None, FindsExactly, "the connector takes what is no answer for a list of %d leads", len(receipts))
	w.tells(o, len(o.made()))
	got, want := idsOf(receipts), slices.Sorted(slices.Values(o.made()))
	if !slices.Equal(got, want) {
		w.breaks(true, FindsExactly, "the connector finds the leads %v of operation %.8s, and after the settle time the CRM has %v", got, o.id, want)
	}
}

func idsOf(receipts []crm.Receipt) (ids []string) {
	for _, r := range receipts {
		ids = append(ids, r.CRMID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// possibleOutside are the faults that the wire before a CRM from outside can bring.
func (w *world) possibleOutside(at port) []Fault {
	creates, finds := w.parts.crm.Faults()
	switch at {
	case creating:
		return creates
	case finding:
		return finds
	default:
		return nil // what becomes of an answer is decided when the request leaves
	}
}
