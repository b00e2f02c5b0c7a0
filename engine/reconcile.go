package engine

import (
	"context"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// reconcile looks an operation up whose outcome is unknown, once its last
// request can no longer take effect.
func (e *Engine) reconcile(ctx context.Context, s job.State) (time.Time, error) {
	rules := e.rulesOf(s.Step)
	if !rules.Capability.CanFind { // the connector was another one then
		_, err := e.record(ctx, s, job.ReconciliationNeeded{Reason: s.LastError, Human: true})
		return time.Time{}, err
	}
	now := e.Clock.Now()
	settled := rules.Capability.SettledAt(s.LastDeadline, e.Policy)
	if now.Before(settled) {
		return settled, nil
	}
	if until := e.pause.until(); now.Before(until) {
		return until, nil
	}
	connector, _ := e.steps.named(s.Step) // it can find, so there is one
	receipts, err := connector.Find(ctx, job.StepKey(s.OperationID, s.Step), now.Add(e.Policy.CallTimeout))
	ids := make([]string, len(receipts))
	for i, r := range receipts {
		if ids[i] = r.CRMID; r.CRMID == "" && err == nil {
			err = &crm.Error{Outcome: crm.Unknown, Reason: "the lookup found a lead without an id"}
		}
	}
	if err != nil {
		failure := crm.Classify(err)
		e.called(s, Find, now, failure)
		if failure.Outcome == crm.NotSent || failure.Outcome == crm.NotApplied {
			return e.patience(s, now), nil // the CRM is out of reach or busy: that is nothing about the lead
		}
		_, err = e.record(ctx, s, s.NotFound(cut(failure.Reason), e.Clock.Now(), e.share(), e.Policy)...)
		return time.Time{}, err
	}
	e.called(s, Find, now, nil)
	if events := s.Found(ids, now, rules); len(events) > 0 {
		_, err := e.record(ctx, s, events...)
		return time.Time{}, err
	}
	return e.patience(s, now), nil
}
