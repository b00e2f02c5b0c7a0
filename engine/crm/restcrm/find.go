package restcrm

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// search describes how leads are looked up.
type search struct {
	node     *node
	request  message
	outcome  []*rule
	items    *expression
	complete *expression // whether the list is whole; nil: always
	match    *expression
	itemID   *expression
}

func (l *loader) search(n *node) *search {
	s := &search{node: n}
	answer := slices.Concat(inAnswer, inSearch)
	readers := l.readers(&s.request, inSearch)
	readers["outcome"] = func(n *node) { s.outcome = l.rules(n, ofLookup, answer) }
	readers["items"] = func(n *node) { s.items = l.expression(n, l.text(n), answer, false) }
	readers["complete"] = func(n *node) { s.complete = l.expression(n, l.text(n), answer, true) }
	readers["match"] = func(n *node) { s.match = l.expression(n, l.text(n), inItem, true) }
	readers["item_id"] = func(n *node) { s.itemID = l.expression(n, l.text(n), inItem, false) }
	l.keys(n, readers)
	l.complete(n, &s.request, http.MethodGet)
	switch {
	case l.err != nil:
	case len(s.outcome) == 0 || s.items == nil || s.itemID == nil:
		l.fail(n, "outcome, items and item_id are needed; say which answers have a list, where it is, and where a lead has its id")
	case s.match == nil || !s.match.mentions("item") || !s.match.mentions("key"):
		l.fail(n, "match is needed, for searches return neighbours; compare with key, as in item.external_id == key")
	case !s.request.uses("key"):
		l.fail(n, "the request does not say ${key}; ask for the operation")
	}
	return s
}

// Find answers the leads that carry the operation id. Its error is a *crm.Error.
func (c *Connector) Find(ctx context.Context, operationID string, deadline time.Time) ([]crm.Receipt, error) {
	switch {
	case !c.description.CanFind:
		return nil, &crm.Error{Outcome: crm.NotSent, Reason: errNoLookup.Error()}
	case !isOperationID(operationID):
		return nil, errOperationID
	case !deadline.After(c.now()):
		return nil, errLate
	}
	env := c.environment(operationID)
	request, err := c.stage.lookup.request.build(c.base, env, c.within(deadline))
	if err != nil {
		return nil, &crm.Error{Outcome: crm.NotSent, Reason: "the lookup cannot be built: " + err.Error()}
	}
	var receipts []crm.Receipt
	err = c.exchange(ctx, request, func(a httponce.Answer) (verdict, error) {
		var v verdict
		receipts, v, err = c.read(withAnswer(env, a), a)
		return v, err
	})
	return receipts, err
}

// read reads the answer to a lookup.
func (c *Connector) read(env map[string]any, a httponce.Answer) ([]crm.Receipt, verdict, error) {
	var v verdict
	s := c.stage.lookup
	r, failed := first(s.outcome, env)
	v.rest = retryAfter(r, env, a, c.now())
	fail := func(reason string) error { return &crm.Error{Outcome: crm.Unknown, Reason: reason, RetryAfter: v.rest} }
	switch {
	case failed != nil:
		return nil, v, fail(fmt.Sprintf("HTTP %d: the rule in line %d cannot be evaluated", a.Status, r.node.line))
	case r == nil:
		return nil, v, fail(fmt.Sprintf("HTTP %d meets no rule", a.Status))
	case r.is == unauthorized:
		v.unauthorized, v.rest = true, max(v.rest, afterUnauthorized)
		return nil, v, fail(r.says(a.Status, "unauthorized"))
	}
	v.healthy = true
	if r.is == notApplied {
		// It says nothing of the lead, and nothing is wrong with the search.
		return nil, v, &crm.Error{Outcome: crm.NotApplied, Reason: r.says(a.Status, "not applied"), RetryAfter: v.rest}
	}
	if r.is == none {
		return nil, v, nil
	}
	receipts, problem := s.receipts(env)
	if problem != "" {
		v.healthy = false
		return nil, v, fail(fmt.Sprintf("HTTP %d %s", a.Status, problem))
	}
	return receipts, v, nil
}

// receipts are the leads of the list that carry the key. Those with another are
// neighbours of a search and not ours.
func (s *search) receipts(env map[string]any) (receipts []crm.Receipt, problem string) {
	v, err := s.items.eval(env)
	items, ok := v.([]any)
	if err != nil || !ok {
		return nil, "without a list of leads"
	}
	env = maps.Clone(env)
	for _, item := range items {
		env["item"] = item
		ours, err := s.match.truth(env)
		if err != nil {
			return nil, "with a list that has something else than a lead"
		}
		if !ours {
			continue
		}
		v, err := s.itemID.eval(env)
		id, ok := idOf(v)
		if err != nil || !ok {
			return nil, "with a lead that has no id"
		}
		receipt := crm.Receipt{CRMID: id, Existing: true}
		if !slices.Contains(receipts, receipt) {
			receipts = append(receipts, receipt)
		}
	}
	if s.complete != nil && len(receipts) == 0 {
		if whole, err := s.complete.truth(env); err != nil || !whole {
			return nil, "with a list that is not whole"
		}
	}
	return receipts, ""
}
