package job

import (
	"errors"
	"fmt"
	"time"
)

// Signature is who acts on a job by hand, and why. Both are recorded.
type Signature struct{ By, Reason string }

func (g Signature) check() error {
	if g.By == "" || g.Reason == "" {
		return errors.New("an operator's act needs --by and --reason")
	}
	return nil
}

// NotAllowedError says that an operator's act does not fit the job's phase.
type NotAllowedError struct {
	Key  Key
	Now  Phase
	Act  string
	Hint string // what to do instead
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("%s: cannot %s a job in phase %s: %s", e.Key, e.Act, e.Now, e.Hint)
}

func (s State) refuse(act, hint string) error {
	return &NotAllowedError{Key: s.Key, Now: s.Now(), Act: act, Hint: hint}
}

// Resolve records the operator's word that what the step makes exists as crmID. The step
// is the one that the job stands at; empty for the lead.
func (s State) Resolve(step, crmID string, g Signature) ([]Event, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if crmID == "" {
		return nil, errors.New("a lead's id is empty: give --crm-id ID")
	}
	if s.Phase != NeedsReconciliation {
		return nil, s.refuse("reconcile", "only needs_reconciliation waits for an answer; see job show")
	}
	if err := s.standsAt(step); err != nil {
		return nil, err
	}
	return []Event{made(s.Step, crmID, ByOperator, g)}, nil
}

// standsAt refuses an answer about another step than the one in question: who looked
// for the lead has not looked for its contact.
func (s State) standsAt(step string) error {
	if StepKey(s.OperationID, step) == StepKey(s.OperationID, s.Step) {
		return nil
	}
	return s.refuse("reconcile", fmt.Sprintf("it stands at its step %s: look for what that makes, and give --step %s", s.Step, s.Step))
}

// ResolveAbsent records the operator's word that the step made nothing, so that a new
// attempt is made. It is refused while a request may still arrive.
func (s State) ResolveAbsent(step string, now time.Time, g Signature, r Rules) ([]Event, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if s.Phase != NeedsReconciliation {
		return nil, s.refuse("reconcile", "only needs_reconciliation waits for an answer; see job show")
	}
	if err := s.standsAt(step); err != nil {
		return nil, err
	}
	if settled := r.Capability.SettledAt(s.LastDeadline, r.Policy); now.Before(settled) {
		return nil, s.refuse("reconcile", fmt.Sprintf("its request can still take effect until %s; look again after that", settled.UTC().Format(time.RFC3339)))
	}
	return []Event{LeadAbsent{How: ByOperator, By: g.By, Reason: g.Reason}}, nil
}

// Requeue gives a dead letter another round of attempts.
func (s State) Requeue(g Signature) ([]Event, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if s.Phase != DeadLetter {
		return nil, s.refuse("requeue", "only a dead_letter can be requeued")
	}
	return []Event{JobRequeued(g)}, nil
}

// Discard gives a job up. A claimed one is refused: its request is under way. One
// whose lead is made, and what belongs to it is not, is done without it.
func (s State) Discard(g Signature) ([]Event, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	switch s.Phase {
	case Pending, NeedsReconciliation:
		if _, ok := s.Has(LeadStep); ok {
			return s.Finish(g), nil
		}
		return []Event{JobDeadLettered{Reason: "discarded: " + g.Reason, By: g.By}}, nil
	case Claimed:
		return nil, s.refuse("discard", "a worker is calling the CRM; try again when its claim is over")
	case New, "":
		return nil, s.refuse("discard", "it has no events")
	default:
		return nil, s.refuse("discard", "it is final")
	}
}

// Doubt records that requests may have been made for an open job by processes
// whose events this log does not have because it was restored. The job is then
// reconciled before anything is sent, as if the last of them left now.
func (s State) Doubt(plan Plan, step string, now time.Time, g Signature, r Rules) ([]Event, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	doubt := ReconciliationNeeded{
		Reason: fmt.Sprintf("doubted by %s: %s", g.By, g.Reason), DoubtedUntil: now,
		Human: s.Human || !r.Capability.CanFind,
	}
	if !doubt.Human {
		doubt.NotBefore = r.Capability.SettledAt(now, r.Policy)
	}
	switch s.Phase {
	case Pending:
		return []Event{s.ClaimBy("operator "+g.By, plan, step, now, r.Policy), doubt}, nil
	case Claimed, NeedsReconciliation:
		return []Event{doubt}, nil
	default:
		return nil, s.refuse("doubt", "only an open job is about to be sent")
	}
}
