package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rules is what decisions depend on beside the job itself.
type Rules struct {
	Policy     Policy
	Capability Capability
}

// MaxRepeats is how many DeliveryRepeated events one stream takes.
const MaxRepeats = 100

// Receive accepts an update under the key.
func Receive(u Update, key Key) UpdateReceived {
	return UpdateReceived{
		Key: key, Fingerprint: u.Fingerprint, Kind: u.Kind, Chat: u.Chat, User: u.User,
		Update: string(u.Raw),
	}
}

// Repeat answers a later delivery of the update that the job holds: nothing
// once the stream has noted enough of them.
func (s State) Repeat() []Event {
	if s.Repeats >= MaxRepeats {
		return nil
	}
	return []Event{DeliveryRepeated{Reason: "same event key and fingerprint"}}
}

// Conflict answers an update that came under the job's key and is another one,
// which was stored under storedAs.
func (s State) Conflict(u Update, storedAs Key) []Event {
	if _, known := s.Variants[u.Fingerprint]; known {
		return nil
	}
	return []Event{KeyConflicted{Fingerprint: u.Fingerprint, StoredAs: storedAs.String()}}
}

// Start decides about a pending job by its plan, before any claim: the events
// that end it, or none when it asks for an effect.
func Start(plan Plan) []Event {
	switch {
	case plan.Undecodable != "":
		return []Event{JobDeadLettered{Reason: "undecodable: " + plan.Undecodable}}
	case !plan.Effect:
		return []Event{NoEffectNeeded{Reason: plan.Reason}}
	default:
		return nil
	}
}

// ClaimBy lets worker send one request for the step of the plan, bound to the
// operation of the job's first claim, from now on.
func (s State) ClaimBy(worker string, plan Plan, step string, now time.Time, p Policy) JobClaimed {
	plan = s.Bind(plan)
	fields := NewFields(plan.Fields)
	if s.Fields != "" {
		fields = "" // they are in the first claim
	}
	return JobClaimed{
		Worker: worker, Attempt: s.Attempts + 1,
		Action: plan.Action, BusinessKey: plan.BusinessKey,
		OperationID: OperationID(s.Key.Bot, plan.Action, plan.BusinessKey),
		LeaseUntil:  now.Add(p.Lease), Deadline: now.Add(p.CallTimeout),
		Step: step, Fields: fields,
	}
}

// Renew prolongs the claim from now on.
func Renew(now time.Time, p Policy) ClaimRenewed {
	return ClaimRenewed{LeaseUntil: now.Add(p.Lease), Deadline: now.Add(p.CallTimeout)}
}

// Permission is the last judgement before a request leaves.
type Permission int

// The permissions.
const (
	MaySend  Permission = iota
	TooLate             // the claim's deadline is near or over: renew it first
	MayNever            // an earlier request may have had its effect, and this one could double it
)

// Permit judges, right before the call and after the claim is recorded, whether
// the claimed job's request may leave. The deadline was set before this check,
// so a process that is paused after it cannot send late.
func (s State) Permit(now time.Time, r Rules) Permission {
	if s.Ambiguous && (!s.DoubtedUntil.IsZero() || !r.Capability.repeatableAt(s.FirstSent, s.Claim.Deadline, r.Policy)) {
		return MayNever // of a doubted request nothing is known, also not how old it is
	}
	if s.Claim.Deadline.Sub(now) < r.Policy.CallTimeout/2 {
		return TooLate
	}
	return MaySend
}

// OutcomeClass is what is known of a request.
type OutcomeClass string

// The outcome classes. What is not positively one of the others is Unknown.
const (
	Created    OutcomeClass = "created"     // the lead exists, with its id
	NotSent    OutcomeClass = "not sent"    // proven: nothing left the process
	NotApplied OutcomeClass = "not applied" // proven: the CRM did nothing
	Refused    OutcomeClass = "refused"     // proven: the CRM never will
	Unknown    OutcomeClass = "unknown"
)

// Outcome is what came of one request.
type Outcome struct {
	Class      OutcomeClass
	Step       string        // that the request was for
	CRMID      string        // for Created
	How        Confirmation  // for Created
	Reason     string        // for the others
	RetryAfter time.Duration // for NotApplied; 0 when the CRM named none
}

// Record decides what an outcome means for the job as it stands now, which may
// be long after the claim was lost. fence is the claim's; share is a random
// number from [0,1).
func (s State) Record(fence uint64, o Outcome, now time.Time, share float64, r Rules) []Event {
	if o.Class == Created && o.CRMID == "" {
		o = Outcome{Class: Unknown, Reason: "the lead is said to exist, but its id is missing"}
	}
	if s.Phase != Claimed || s.Claim.Fence != fence {
		return s.recordLate(o)
	}
	switch o.Class {
	case Created:
		return []Event{made(o.Step, o.CRMID, o.How, Signature{})}
	case NotSent:
		return []Event{ClaimReleased{Reason: o.Reason, NotBefore: now.Add(r.Policy.Backoff(s.Releases+1, share))}}
	case NotApplied:
		if s.Spent+1 >= r.Policy.MaxAttempts {
			return s.giveUp(fmt.Sprintf("%d attempts, the last: %s", s.Spent+1, o.Reason), r)
		}
		wait := max(r.Policy.Backoff(s.Spent+1, share), min(o.RetryAfter, r.Policy.RetryMax))
		return []Event{AttemptNotApplied{Reason: o.Reason, NotBefore: now.Add(wait)}}
	case Refused:
		return s.giveUp("refused: "+o.Reason, r)
	default:
		return s.unknown(o.Reason, now, share, r)
	}
}

// recordLate keeps a receipt that came after the claim was lost. Any other late
// outcome tells nothing: the claim already counts as ambiguous.
func (s State) recordLate(o Outcome) []Event {
	if o.Class != Created {
		return nil
	}
	step, recorded, confirmed := o.Step, s.CRMID, s.Phase.Final()
	if s.isLead(step) {
		step = LeadStep // the lead is the lead, whether it was a step then or not
	} else {
		recorded = ""
	}
	if m, known := s.Has(step); known {
		recorded, confirmed = m.CRMID, true
	}
	switch {
	case !confirmed && !s.inQuestion(o.Step):
		return []Event{made(o.Step, o.CRMID, ByLate, Signature{})}
	case !confirmed && step == LeadStep: // nothing more is sent for it
		return []Event{made("", o.CRMID, ByLate, Signature{})}
	case confirmed && o.CRMID == recorded, step == LeadStep && o.CRMID == s.SharedCRMID:
		return nil // recorded already
	}
	conflict := ReceiptConflicted{CRMID: o.CRMID, Confirmed: recorded, Step: o.Step}
	if slices.Contains(s.OtherCRMIDs, conflict.id()) {
		return nil
	}
	return []Event{conflict}
}

func (s State) isLead(step string) bool { return step == "" || step == LeadStep }

// inQuestion reports whether a request for another step than this one is under way, or
// its effect is not known: the configuration was another one then. A receipt for this
// one must not make the job forget that.
func (s State) inQuestion(step string) bool {
	return (s.Phase == Claimed || s.Ambiguous) && StepKey("", step) != StepKey("", s.Step)
}

// giveUp ends a job that no further request can help, unless an earlier request
// may have had its effect: then its outcome has to be found out.
func (s State) giveUp(reason string, r Rules) []Event {
	if s.Ambiguous {
		return []Event{s.reconcile(reason+"; an earlier attempt is ambiguous", r)}
	}
	if unfinished := s.incomplete(reason); len(unfinished) > 0 {
		return unfinished
	}
	return []Event{JobDeadLettered{Reason: reason}}
}

// unknown decides about a claimed job whose request may have had its effect.
func (s State) unknown(reason string, now time.Time, share float64, r Rules) []Event {
	first := s.FirstSent
	if first.IsZero() {
		first = s.Claim.At
	}
	wait := r.Policy.Backoff(s.Spent+1, share)
	again := now.Add(wait)
	if s.Spent+1 < r.Policy.MaxAttempts && r.Capability.repeatableAt(first, again.Add(r.Policy.CallTimeout), r.Policy) {
		return []Event{OutcomeUnknown{Reason: reason, NotBefore: again}}
	}
	return []Event{s.reconcile(reason, r)}
}

// Unrepeatable sends a claimed job whose request may never leave to
// reconciliation.
func (s State) Unrepeatable(r Rules) []Event {
	return []Event{s.reconcile("an earlier attempt is ambiguous and cannot be repeated any more", r)}
}

func (s State) reconcile(reason string, r Rules) ReconciliationNeeded {
	if !r.Capability.CanFind {
		return ReconciliationNeeded{Reason: reason, Human: true}
	}
	last := s.LastDeadline
	if s.Claim.Deadline.After(last) {
		last = s.Claim.Deadline
	}
	return ReconciliationNeeded{Reason: reason, NotBefore: r.Capability.SettledAt(last, r.Policy)}
}

// ExpiresAt is when any process may take the claim for lost, by its own clock.
func (s State) ExpiresAt(p Policy) time.Time { return s.Claim.LeaseUntil.Add(p.ClockSkew) }

// Expire decides about a claim whose lease is over. Its request may have left.
func (s State) Expire(now time.Time, share float64, r Rules) []Event {
	return s.unknown(fmt.Sprintf("the claim of worker %s expired", s.Claim.Worker), now, share, r)
}

// MaxLookups is how many lookups of one job may fail before a person has to see
// to it: the search is broken, and nobody else would notice.
const MaxLookups = 20

// NotFound decides about a job in needs_reconciliation whose lookup failed, which
// says nothing about the lead.
func (s State) NotFound(reason string, now time.Time, share float64, p Policy) []Event {
	reason = "lookup failed: " + reason
	if s.Lookups+1 >= MaxLookups {
		return []Event{ReconciliationNeeded{Reason: fmt.Sprintf("%d times, the last: %s", s.Lookups+1, reason), Human: true}}
	}
	return []Event{ReconciliationNeeded{Reason: reason, NotBefore: now.Add(p.Backoff(s.Lookups+1, share))}}
}

// maxShown is how many of the leads that a lookup found are named in its event.
const maxShown = 10

// Found decides what a lookup means that was sent at asked, by a job in
// needs_reconciliation. ids are the leads that carry the operation id.
func (s State) Found(ids []string, asked time.Time, r Rules) []Event {
	switch {
	case len(ids) == 1 && ids[0] != "":
		return []Event{made(s.Step, ids[0], ByLookup, Signature{})}
	case len(ids) > 0:
		shown := strings.Join(ids[:min(len(ids), maxShown)], ", ")
		reason := fmt.Sprintf("%d leads carry this operation: %s", len(ids), shown)
		return []Event{ReconciliationNeeded{Reason: reason, Human: true}}
	case asked.Before(r.Capability.SettledAt(s.LastDeadline, r.Policy)):
		return nil // proves nothing yet
	case s.Spent >= r.Policy.MaxAttempts:
		spent := fmt.Sprintf("%d attempts, none had an effect; the last: %s", s.Spent, s.LastError)
		if unfinished := s.incomplete(spent); len(unfinished) > 0 {
			return unfinished
		}
		return []Event{LeadAbsent{How: ByLookup}, JobDeadLettered{Reason: spent}}
	default:
		return []Event{LeadAbsent{How: ByLookup}}
	}
}

// Bind is the plan as this job may carry it out. An operation that is named in a
// claim stays: what is planned may change between releases, an operation's id may
// not. A business key that is another job's event key is refused: that job does
// not reserve its operation, for nobody else should have it.
func (s State) Bind(plan Plan) Plan {
	if s.OperationID != "" {
		plan.Effect, plan.Undecodable = true, ""
		plan.Action, plan.BusinessKey = s.Action, s.BusinessKey
		if s.Fields != "" {
			plan.Fields = s.Fields.Map()
		}
		return plan
	}
	if size := len(NewFields(plan.Fields)); size > MaxFields {
		return Plan{Undecodable: fmt.Sprintf("its fields take %d bytes, more than the %d that a lead may have", size, MaxFields)}
	}
	if _, err := ParseKey(plan.BusinessKey); err == nil && plan.BusinessKey != s.Key.String() {
		return Plan{Undecodable: "its business key is the event key of " + plan.BusinessKey}
	}
	return plan
}
