package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
)

// fault is what happens to one port call.
type fault int

const (
	none       fault = iota
	down             // proven: nothing happened
	lostBefore       // no effect, and no answer
	lostAfter        // the effect, and no answer
	invalid          // the log will never take it

	cut    // reads: an error after the first event
	unseen // reads: the stream is not there yet

	lateEffect  // CRM: no answer, and the effect comes later
	limited     // CRM: 429
	refused     // CRM: never
	unsent      // CRM: a lookup that did not leave
	withoutID   // CRM: the effect, and a success without the id
	unspecified // CRM: an error that is not classified
)

// faultsAt are what can happen at a point.
func faultsAt(point string) []fault {
	switch {
	case strings.HasPrefix(point, "append "):
		return []fault{down, lostBefore, lostAfter}
	case point == "read":
		return []fault{down, cut}
	case point == "create":
		return []fault{down, lostBefore, lostAfter, lateEffect, limited, refused, withoutID, unspecified}
	case point == "find":
		return []fault{down, limited}
	default:
		return []fault{none}
	}
}

var errWeather = errors.New("bad weather")

// faultyLog is one process's connection to the log.
type faultyLog struct {
	eventlog.Log
	w *world
}

func (l *faultyLog) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	name := nameOf(events[0].Type)
	switch l.w.at("append " + name) {
	case down:
		return eventlog.Appended{}, fmt.Errorf("append: %w", eventlog.ErrUnavailable)
	case invalid:
		return eventlog.Appended{}, fmt.Errorf("append: %w", eventlog.ErrInvalid)
	case lostAfter:
		_, _ = l.Log.Append(ctx, stream, expected, events...)
		fallthrough
	case lostBefore:
		return eventlog.Appended{}, &eventlog.UnknownError{Stream: stream, Err: errWeather}
	}
	a, err := l.Log.Append(ctx, stream, expected, events...)
	if err == nil {
		l.w.at("appended " + name)
	}
	return a, err
}

func (l *faultyLog) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	fault := l.w.at("read")
	events := l.Log.ReadStream(ctx, stream, from)
	if fault == none {
		return events
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		if fault == unseen {
			return
		}
		if fault == cut {
			for r, err := range events {
				if !yield(r, err) {
					return
				}
				break
			}
		}
		yield(eventlog.Recorded{}, fmt.Errorf("read: %w", eventlog.ErrUnavailable))
	}
}

// simulatedCRM keeps exactly the promise of its class, and a journal.
type simulatedCRM struct {
	w           *world
	description crm.Description
	indexLag    time.Duration // a lead is found when it is older
	retryAfter  time.Duration // of limited
	refusal     string        // the reason of refused

	mu       sync.Mutex
	leads    []lead                // in the order of their making, for ever
	keys     map[string]remembered // idempotency keys
	late     []late
	requests map[string]int    // creates that reached it, by operation
	handed   map[string]string // CRM id → operation, of every receipt a create gave
	open     map[string]int    // creates by operation that were not answered with a proof of no effect
	asked    []crm.Operation   // of the connector; a lookup's without fields
}

type lead struct {
	id, operation string
	at            time.Time
}

type remembered struct {
	id string
	at time.Time
}

// late is an effect that is on its way; it arrives at the latest by.
type late struct {
	operation string
	by        time.Time
}

const (
	settle   = 20 * time.Second
	validity = 10 * time.Minute
)

func newSimulatedCRM(w *world, class crm.Class) *simulatedCRM {
	d := crm.Description{Name: "simulated", Class: class, Settle: settle, CanFind: class == crm.Lookup || class == crm.IdempotencyKey}
	if class == crm.IdempotencyKey {
		d.KeyValidity = validity
	}
	return &simulatedCRM{
		w: w, description: d, indexLag: settle / 4, retryAfter: 5 * time.Second, refusal: "422",
		keys: map[string]remembered{}, requests: map[string]int{}, handed: map[string]string{}, open: map[string]int{},
	}
}

// apply is a create that arrives now, by the class's promise.
func (c *simulatedCRM) apply(operation string, now time.Time) crm.Receipt {
	switch c.description.Class {
	case crm.IdempotencyKey:
		if k, ok := c.keys[operation]; ok && now.Before(k.at.Add(c.description.KeyValidity)) {
			return crm.Receipt{CRMID: k.id}
		}
	case crm.Upsert, crm.UniqueCreate:
		for _, l := range c.leads {
			if l.operation == operation {
				return crm.Receipt{CRMID: l.id, Existing: c.description.Class == crm.UniqueCreate}
			}
		}
	}
	made := lead{fmt.Sprintf("L-%d", len(c.leads)+1), operation, now}
	c.leads = append(c.leads, made)
	c.keys[operation] = remembered{made.id, now}
	return crm.Receipt{CRMID: made.id}
}

// land brings in what has to have arrived by now, or everything.
func (c *simulatedCRM) land(now time.Time, everything bool) {
	pending := c.late[:0:0]
	for _, l := range c.late {
		switch {
		case !now.Before(l.by):
			c.apply(l.operation, l.by)
		case everything:
			c.apply(l.operation, now)
		default:
			pending = append(pending, l)
		}
	}
	c.late = pending
}

func (c *simulatedCRM) find(operation string, now time.Time, youngest time.Duration) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.land(now, false)
	for _, l := range c.leads {
		if l.operation == operation && !now.Before(l.at.Add(youngest)) {
			ids = append(ids, l.id)
		}
	}
	return ids
}

// effects are the leads of the operation, whether they can be found or not.
func (c *simulatedCRM) effects(operation string) []string {
	return c.find(operation, c.w.time.Now(), 0)
}

// connector is one process's way to the CRM. It keeps the port's rules: after
// the deadline, by the process's own clock, nothing leaves.
type connector struct {
	crm   *simulatedCRM
	clock *clock
}

func (c *connector) Describe() crm.Description { return c.crm.description }

func (c *connector) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	c.crm.note(op)
	fault := c.crm.w.at("create")
	if ctx.Err() != nil || fault == down {
		return crm.Receipt{}, &crm.Error{Outcome: crm.NotSent, Reason: "shut down, or not connected"}
	}
	receipt, err := c.crm.create(op, op.Deadline.Add(-c.clock.skew), fault)
	c.crm.w.at("created")
	if err == nil && receipt.CRMID != "" {
		c.crm.mu.Lock()
		c.crm.handed[receipt.CRMID] = op.ID
		c.crm.mu.Unlock()
	}
	return receipt, err
}

// create is a request that reaches the CRM; deadline is in true time.
func (c *simulatedCRM) create(op crm.Operation, deadline time.Time, fault fault) (crm.Receipt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.w.time.Now()
	if now.After(deadline) {
		return crm.Receipt{}, &crm.Error{Outcome: crm.NotSent, Reason: "too late"}
	}
	c.land(now, false)
	c.requests[op.ID]++
	unknown := func(why string) error { return &crm.Error{Outcome: crm.Unknown, Reason: why} }
	switch fault {
	case limited:
		return crm.Receipt{}, &crm.Error{Outcome: crm.NotApplied, Reason: "429", RetryAfter: c.retryAfter}
	case refused:
		return crm.Receipt{}, &crm.Error{Outcome: crm.Refused, Reason: c.refusal}
	}
	c.open[op.ID]++
	switch fault {
	case lostBefore:
		return crm.Receipt{}, unknown("cut")
	case unspecified:
		return crm.Receipt{}, errWeather
	case lateEffect:
		c.late = append(c.late, late{op.ID, deadline.Add(c.description.Settle - c.indexLag)})
		return crm.Receipt{}, unknown("timed out")
	}
	receipt := c.apply(op.ID, now)
	switch fault {
	case lostAfter:
		return crm.Receipt{}, unknown("cut")
	case withoutID:
		return crm.Receipt{}, nil
	}
	return receipt, nil
}

func (c *simulatedCRM) note(op crm.Operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, op)
}

func (c *connector) Find(ctx context.Context, operation string, deadline time.Time) ([]crm.Receipt, error) {
	c.crm.note(crm.Operation{ID: operation, Deadline: deadline})
	fault := c.crm.w.at("find")
	if fault == limited {
		return nil, &crm.Error{Outcome: crm.NotApplied, Reason: "429", RetryAfter: c.crm.retryAfter}
	}
	if fault == unsent {
		return nil, &crm.Error{Outcome: crm.NotSent, Reason: "not connected"}
	}
	if fault != none || ctx.Err() != nil {
		return nil, &crm.Error{Outcome: crm.Unknown, Reason: "cut"}
	}
	var receipts []crm.Receipt
	for _, id := range c.crm.find(operation, c.crm.w.time.Now(), c.crm.indexLag) {
		receipts = append(receipts, crm.Receipt{CRMID: id, Existing: true})
	}
	c.crm.w.at("found")
	return receipts, nil
}

// stepped is a connector whose lead takes the steps by name, in the same CRM.
type stepped struct {
	connector
	names []string
}

func (s *stepped) Steps() []crm.Step {
	steps := make([]crm.Step, len(s.names))
	for i, name := range s.names {
		steps[i] = crm.Step{Name: name, Connector: &s.connector}
	}
	return steps
}

// breakingLog ends each ReadAll in an error after n events.
type breakingLog struct {
	eventlog.Log
	n int
}

func (l *breakingLog) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		n := 0
		for r, err := range l.Log.ReadAll(ctx, after) {
			if n == l.n {
				break
			}
			if n++; !yield(r, err) {
				return
			}
		}
		yield(eventlog.Recorded{}, errWeather)
	}
}
