package restcrm

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// removal describes how a lead is removed. The engine never does that: it is for
// what a certification has made.
type removal struct {
	request message
	outcome []*rule // nil: every 2xx has removed it
}

func (l *loader) removal(n *node) *removal {
	r := &removal{request: message{methods: append([]string{http.MethodDelete}, methods...)}}
	readers := l.readers(&r.request, inRemoval)
	readers["outcome"] = func(n *node) { r.outcome = l.rules(n, ofRemoval, slices.Concat(inAnswer, inRemoval)) }
	l.keys(n, readers)
	l.complete(n, &r.request, http.MethodDelete)
	if l.err == nil && !r.request.uses("id") {
		l.fail(n, "the request does not say ${id}; name the lead that is removed")
	}
	return r
}

// CanRemove reports whether the description says how a lead is removed.
func (c *Connector) CanRemove() bool { return c.stage.remove != nil }

// Remove removes a lead by the id that the CRM gave it. Its error is a *crm.Error.
func (c *Connector) Remove(ctx context.Context, crmID string, deadline time.Time) error {
	r := c.stage.remove
	switch {
	case r == nil:
		return &crm.Error{Outcome: crm.NotSent, Reason: "the file has no remove"}
	case !deadline.After(c.now()):
		return errLate
	}
	env := c.environment("")
	env["id"] = crmID
	request, err := r.request.build(c.base, env, c.within(deadline))
	if err != nil {
		return &crm.Error{Outcome: crm.NotSent, Reason: "the removal cannot be built: " + err.Error()}
	}
	return c.exchange(ctx, request, func(a httponce.Answer) (verdict, error) {
		return r.judge(withAnswer(env, a), a, c.now())
	})
}

func (r *removal) judge(env map[string]any, a httponce.Answer, now time.Time) (verdict, error) {
	met, failed := first(r.outcome, env)
	v := verdict{healthy: true, rest: retryAfter(met, env, a, now)}
	fail := func(outcome crm.Outcome, reason string) (verdict, error) {
		return v, &crm.Error{Outcome: outcome, Reason: reason, RetryAfter: v.rest}
	}
	switch {
	case failed != nil:
		return fail(crm.Unknown, fmt.Sprintf("HTTP %d: the rule in line %d cannot be evaluated", a.Status, met.node.line))
	case r.outcome == nil && a.Status/100 == 2, met != nil && met.is == removed:
		return v, nil
	case met == nil:
		return fail(crm.Unknown, fmt.Sprintf("HTTP %d meets no rule", a.Status))
	case met.is == unauthorized:
		v.healthy, v.unauthorized, v.rest = false, true, max(v.rest, afterUnauthorized)
	}
	return fail(crm.NotApplied, met.says(a.Status, met.is))
}
