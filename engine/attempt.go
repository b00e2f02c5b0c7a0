package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// attempt is claim → call → record.
func (e *Engine) attempt(ctx context.Context, s job.State, plan job.Plan, step string) error {
	s, err := e.record(ctx, s, s.ClaimBy(e.Worker, plan, step, e.Clock.Now(), e.Policy))
	if err != nil {
		return err
	}
	fence := s.Claim.Fence
	s, may, err := e.permit(ctx, s)
	switch {
	case err != nil:
		// Nothing has left. A claim that stayed behind would count as ambiguous.
		if !eventlog.IsConflict(err) {
			e.Observer.Troubled(s.Key.Stream(), fmt.Errorf("keep a claim: %w", err))
		}
		return e.conclude(ctx, s, fence, job.Outcome{Class: job.NotSent, Step: step, Reason: "the claim could not be kept until the request"})
	case !may:
		return nil
	}
	return e.conclude(ctx, s, fence, e.call(ctx, s))
}

// renewals is how often a claim is prolonged because its time ran out before
// the request left.
const renewals = 3

// permit makes sure that the claimed job's request may leave now. When it may
// not, the claim is given up.
func (e *Engine) permit(ctx context.Context, s job.State) (job.State, bool, error) {
	var err error
	rules := e.rulesOf(s.Step)
	for range renewals {
		now := e.Clock.Now()
		switch s.Permit(now, rules) {
		case job.MaySend:
			return s, true, nil
		case job.MayNever:
			_, err = e.record(ctx, s, s.Unrepeatable(rules)...)
			return s, false, err
		}
		if s, err = e.record(ctx, s, job.Renew(now, e.Policy)); err != nil {
			return s, false, err
		}
	}
	now := e.Clock.Now()
	_, err = e.record(ctx, s, job.ClaimReleased{
		Reason: "the claim's time ran out before the request could leave", NotBefore: now.Add(e.Policy.RetryFirst),
	})
	return s, false, err
}

// maxReason is the length in bytes to which a connector's reason is cut: an
// outcome must never be too large to be recorded.
const maxReason = 500

func cut(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}

// call makes the request and says what came of it. The claim was permitted, so its
// step is one of the connector's.
func (e *Engine) call(ctx context.Context, s job.State) job.Outcome {
	began := e.Clock.Now()
	connector, _ := e.steps.named(s.Step)
	receipt, err := connector.Create(ctx, crm.Operation{
		ID: job.StepKey(s.OperationID, s.Step), Fields: s.Fields.Map(), Deadline: s.Claim.Deadline, Made: s.MadeIDs(),
	})
	if err == nil && receipt.CRMID == "" {
		err = &crm.Error{Outcome: crm.Unknown, Reason: "a success without the lead's id"}
	}
	if err != nil {
		failure := crm.Classify(err)
		e.called(s, Create, began, failure)
		return job.Outcome{Class: outcomeClass(failure.Outcome), Step: s.Step, Reason: cut(failure.Reason), RetryAfter: failure.RetryAfter}
	}
	e.called(s, Create, began, nil)
	how := job.ByCreate
	switch {
	case connector.Describe().Class == crm.Upsert:
		how = job.ByUpsert
	case receipt.Existing:
		how = job.ByExists
	}
	return job.Outcome{Class: job.Created, Step: s.Step, CRMID: receipt.CRMID, How: how}
}

// called tells the observer of a request, and lets a CRM rest that asks for it
// or cannot be reached.
func (e *Engine) called(s job.State, request Request, began time.Time, failure *crm.Error) {
	now := e.Clock.Now()
	if failure != nil && failure.Outcome == crm.NotSent {
		e.pause.lost(now, func(inARow int) time.Duration { return e.Policy.Backoff(inARow, e.share()) })
	} else {
		e.pause.met()
	}
	if failure != nil && failure.RetryAfter > 0 {
		e.pause.extend(now.Add(min(failure.RetryAfter, e.Policy.RetryMax)))
	}
	e.Observer.Called(s, request, now.Sub(began), failure)
}

func outcomeClass(o crm.Outcome) job.OutcomeClass {
	switch o {
	case crm.NotSent:
		return job.NotSent
	case crm.NotApplied:
		return job.NotApplied
	case crm.Refused:
		return job.Refused
	default:
		return job.Unknown
	}
}

// recordTries is how often an outcome without a receipt is offered to a log
// that is down, and not beyond the lease: then the claim expires, and the outcome
// counts as unknown. A receipt is offered for as long as the process lives.
const recordTries = 10

// conclude records the outcome of the request that was sent under fence. It
// goes on when the context ends: what was seen must not be lost.
func (e *Engine) conclude(ctx context.Context, s job.State, fence uint64, outcome job.Outcome) error {
	stream := s.Key.Stream()
	lasting, rules := context.WithoutCancel(ctx), e.rulesOf(outcome.Step)
	for failures := 0; ; {
		events := s.Record(fence, outcome, e.Clock.Now(), e.share(), rules)
		if len(events) == 0 {
			return nil
		}
		_, err := e.record(lasting, s, events...)
		if err == nil {
			return nil
		}
		fresh, unread := Load(lasting, e.Log, stream)
		if unread == nil && fresh.EventCount > s.EventCount { // decide anew
			s = fresh
			continue
		}
		failures++
		hopeless := outcome.Class != job.Created || ctx.Err() != nil || errors.Is(err, eventlog.ErrInvalid)
		switch {
		case IsStopped(unread):
			return fmt.Errorf("record that the outcome was %s %s: %w", outcome.Class, outcome.CRMID, unread)
		case hopeless && failures >= recordTries, outcome.Class != job.Created && !e.Clock.Now().Before(s.Claim.LeaseUntil):
			return fmt.Errorf("record that the outcome was %s %s: %w", outcome.Class, outcome.CRMID, err)
		}
		e.Observer.Troubled(stream, fmt.Errorf("record an outcome, try %d: %w", failures, err))
		// The waits are short: once the claim expires, others act without this
		// outcome. They outlast ctx, or a shutdown would use up the tries at once.
		_ = e.Clock.Sleep(lasting, min(e.Policy.Backoff(failures, e.share()), e.Policy.LeaseMargin()/recordTries))
	}
}
