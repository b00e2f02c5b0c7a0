package restcrm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// creation describes how a lead is made.
type creation struct {
	node    *node
	request message
	outcome []*rule
}

func (l *loader) creation(n *node) *creation {
	c := &creation{node: n}
	has := inRequest
	if l.earlier != nil {
		has = inStep
	}
	readers := l.readers(&c.request, has)
	readers["key_header"] = func(n *node) { c.request.keyHeader = l.keyHeader(n) }
	readers["outcome"] = func(n *node) { c.outcome = l.rules(n, ofCreate, slices.Concat(inAnswer, has)) }
	l.keys(n, readers)
	if l.err == nil && len(c.outcome) == 0 {
		l.fail(n, "outcome is missing; without it every answer is unknown")
	}
	l.complete(n, &c.request, http.MethodPost)
	return c
}

// Create asks the CRM for the operation's lead. At most one request leaves that
// can make it; what leaves beside it is a login before, and a lookup after the
// CRM said that the lead exists. Its error is a *crm.Error.
func (c *Connector) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	if !isOperationID(op.ID) {
		return crm.Receipt{}, errOperationID
	}
	if !op.Deadline.After(c.now()) {
		return crm.Receipt{}, errLate
	}
	env := c.environment(op.ID)
	env["op"] = op.Fields
	if op.Fields == nil {
		env["op"] = map[string]string{}
	}
	made := map[string]any{}
	for _, step := range c.stage.earlier {
		if op.Made[step] == "" {
			return crm.Receipt{}, &crm.Error{Outcome: crm.Refused, Reason: "the step " + step + " comes before and has made nothing"}
		}
		made[step] = op.Made[step]
	}
	env["steps"] = made
	request, err := c.creationRequest(env, c.within(op.Deadline))
	if err != nil {
		return crm.Receipt{}, &crm.Error{Outcome: crm.Refused, Reason: "the create cannot be built: " + err.Error()}
	}
	var receipt crm.Receipt
	var lookup string
	err = c.exchange(ctx, request, func(a httponce.Answer) (verdict, error) {
		var v verdict
		receipt, lookup, v, err = c.judge(withAnswer(env, a), a)
		return v, err
	})
	if lookup != "" {
		return c.existing(ctx, op, lookup)
	}
	return receipt, err
}

func (c *Connector) creationRequest(env map[string]any, deadline time.Time) (httponce.Request, error) {
	m := &c.stage.create.request
	request, err := m.build(c.base, env, deadline)
	if err == nil && m.keyHeader != nil && c.description.Class == crm.IdempotencyKey {
		err = m.keyHeader.setHeader(request.Header, env)
	}
	return request, err
}

// judge says what an answer proves. lookup is not empty when the receipt has to
// be looked up; it is the reason for that.
func (c *Connector) judge(env map[string]any, a httponce.Answer) (receipt crm.Receipt, lookup string, v verdict, err error) {
	r, failed := first(c.stage.create.outcome, env)
	fail := func(outcome crm.Outcome, reason string) error {
		return &crm.Error{Outcome: outcome, Reason: reason, RetryAfter: v.rest}
	}
	if failed != nil {
		return receipt, "", v, fail(crm.Unknown, fmt.Sprintf("HTTP %d: the rule in line %d cannot be evaluated", a.Status, r.node.line))
	}
	v.rest = retryAfter(r, env, a, c.now())
	if r == nil {
		return receipt, "", v, fail(crm.Unknown, fmt.Sprintf("HTTP %d meets no rule", a.Status))
	}
	v.healthy = r.is != unauthorized
	switch r.is {
	case created:
		receipt, ok := r.receipt(env)
		if ok && a.Status/100 == 2 {
			return receipt, "", v, nil
		}
		v.healthy = false
		if ok {
			return crm.Receipt{}, "", v, fail(crm.Unknown, fmt.Sprintf("HTTP %d is no success, and the rule in line %d says %s", a.Status, r.node.line, created))
		}
		return receipt, "", v, fail(crm.Unknown, fmt.Sprintf("HTTP %d, and the rule in line %d gives no id", a.Status, r.node.line))
	case exists:
		lookup = r.says(a.Status, "exists")
		switch receipt, ok := r.receipt(env); {
		case !c.description.Class.Repeatable():
			return receipt, "", v, fail(crm.Unknown, lookup+", which class "+string(c.description.Class)+" cannot know")
		case ok:
			receipt.Existing = true
			return receipt, "", v, nil
		case !c.description.CanFind:
			return receipt, "", v, fail(crm.Unknown, lookup+" without an id")
		}
		return receipt, lookup, v, nil
	case notApplied:
		return receipt, "", v, fail(crm.NotApplied, r.says(a.Status, "not applied"))
	case refused:
		return receipt, "", v, fail(crm.Refused, r.says(a.Status, "refused"))
	case unauthorized:
		// The session is given up; the next attempt logs in. This one is over.
		v.unauthorized, v.rest = true, max(v.rest, afterUnauthorized)
		return receipt, "", v, fail(crm.NotApplied, r.says(a.Status, "unauthorized"))
	default:
		return receipt, "", v, fail(crm.Unknown, r.says(a.Status, "unknown"))
	}
}

// receipt reads the id, and whether the lead was there before.
func (r *rule) receipt(env map[string]any) (crm.Receipt, bool) {
	if r.id == nil {
		return crm.Receipt{}, false
	}
	v, err := r.id.eval(env)
	if err != nil {
		return crm.Receipt{}, false
	}
	id, ok := idOf(v)
	if !ok {
		return crm.Receipt{}, false
	}
	receipt := crm.Receipt{CRMID: id}
	if r.existing != nil {
		if receipt.Existing, err = r.existing.truth(env); err != nil {
			return crm.Receipt{}, false
		}
	}
	return receipt, true
}

// existing is the receipt for a lead that has our key already.
func (c *Connector) existing(ctx context.Context, op crm.Operation, why string) (crm.Receipt, error) {
	leads, err := c.Find(ctx, op.ID, op.Deadline)
	if err != nil {
		failure := crm.Classify(err)
		return crm.Receipt{}, &crm.Error{Reason: why + ", and the lookup failed: " + failure.Reason, RetryAfter: failure.RetryAfter}
	}
	if len(leads) != 1 {
		return crm.Receipt{}, &crm.Error{Reason: fmt.Sprintf("%s, and the lookup found %d leads", why, len(leads))}
	}
	return leads[0], nil
}

var (
	errOperationID = &crm.Error{Outcome: crm.Refused, Reason: "the operation id is not 1 to 200 of A-Z a-z 0-9 _ -"}
	errLate        = &crm.Error{Outcome: crm.NotSent, Reason: "the deadline was over"}
	errNoLookup    = errors.New("the CRM cannot be searched")
)

// isOperationID reports whether every CRM keeps the id as it is.
func isOperationID(id string) bool {
	for i := range len(id) {
		switch b := id[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= 200
}
