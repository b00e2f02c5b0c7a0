package job

import "time"

// The referee is a second opinion on what follows from an outcome, written from
// the rules in words and sharing no code with the decisions:
//
//	A lead that is known is confirmed, whoever saw it and however late; one that
//	contradicts what is recorded is an incident.
//	Proof that nothing left gives the claim back and costs no attempt.
//	Proof that nothing was applied costs one.
//	What is unknown is repeated only if that is certain to be safe.
//	A job ends without a lead only if none of its requests can have made one.

// verdict is what an event list must come to.
type verdict struct {
	event string // "" for none
	human bool
	due   time.Time // of events that name a time
}

// refereeRecord judges the outcome of a request under a claim that is the job's
// present one, or is not.
func refereeRecord(s State, present bool, o Outcome, now time.Time, share float64, r Rules) verdict {
	if o.Class == Created && o.CRMID != "" {
		return refereeReceipt(s, o.Step, o.CRMID)
	}
	if s.Phase != Claimed || !present {
		return verdict{}
	}
	requests := s.Spent + 1
	switch o.Class {
	case NotSent:
		return verdict{event: "ClaimReleased", due: now.Add(wait(s.Releases+1, share, r.Policy))}
	case NotApplied:
		if requests < r.Policy.MaxAttempts {
			pause := wait(requests, share, r.Policy)
			if asked := min(o.RetryAfter, r.Policy.RetryMax); asked > pause {
				pause = asked
			}
			return verdict{event: "AttemptNotApplied", due: now.Add(pause)}
		}
		return refereeGiveUp(s, r)
	case Refused:
		return refereeGiveUp(s, r)
	default:
		return refereeUnknown(s, now, share, r)
	}
}

func refereeReceipt(s State, step, id string) verdict {
	for _, m := range s.Made {
		switch {
		case m.Step == step && m.CRMID == id:
			return verdict{}
		case m.Step == step:
			return refereeIncident(s, step+" "+id)
		}
	}
	if step != "" && s.Phase.Final() {
		return refereeIncident(s, step+" "+id)
	}
	if step != "" {
		return verdict{event: "StepConfirmed"}
	}
	switch s.Phase {
	case Pending, Claimed, NeedsReconciliation:
		return verdict{event: "LeadConfirmed"}
	}
	if s.CRMID == id {
		return verdict{}
	}
	return refereeIncident(s, id)
}

func refereeIncident(s State, id string) verdict {
	for _, known := range s.OtherCRMIDs {
		if known == id {
			return verdict{}
		}
	}
	return verdict{event: "ReceiptConflicted"}
}

func refereeGiveUp(s State, r Rules) verdict {
	if s.Ambiguous {
		return refereeReconcile(s, r)
	}
	for _, m := range s.Made {
		if m.Step == "lead" {
			return verdict{event: "ReconciliationNeeded", human: true}
		}
	}
	return verdict{event: "JobDeadLettered"}
}

func refereeUnknown(s State, now time.Time, share float64, r Rules) verdict {
	again := now.Add(wait(s.Spent+1, share, r.Policy))
	first := s.Claim.At
	if !s.FirstSent.IsZero() {
		first = s.FirstSent
	}
	safe := r.Capability.Repeatable
	if r.Capability.Validity > 0 {
		arrives := again.Add(r.Policy.CallTimeout).Add(r.Capability.Settle).Add(r.Policy.ClockSkew)
		safe = safe && arrives.Sub(first) < r.Capability.Validity
	}
	if safe && s.Spent+1 < r.Policy.MaxAttempts {
		return verdict{event: "OutcomeUnknown", due: again}
	}
	return refereeReconcile(s, r)
}

func refereeReconcile(s State, r Rules) verdict {
	if !r.Capability.CanFind {
		return verdict{event: "ReconciliationNeeded", human: true}
	}
	end := s.LastDeadline
	if end.Before(s.Claim.Deadline) {
		end = s.Claim.Deadline
	}
	return verdict{event: "ReconciliationNeeded", due: end.Add(r.Capability.Settle + r.Policy.ClockSkew)}
}

func wait(tries int, share float64, p Policy) time.Duration {
	bound := p.RetryFirst
	for range tries - 1 {
		bound = min(2*bound, p.RetryMax)
	}
	return time.Duration(share * float64(bound))
}

// verdictOf is what a decision came to.
func verdictOf(events []Event) verdict {
	if len(events) == 0 {
		return verdict{}
	}
	v := verdict{event: events[len(events)-1].Name()}
	switch e := events[len(events)-1].(type) {
	case ClaimReleased:
		v.due = e.NotBefore
	case AttemptNotApplied:
		v.due = e.NotBefore
	case OutcomeUnknown:
		v.due = e.NotBefore
	case ReconciliationNeeded:
		v.due, v.human = e.NotBefore, e.Human
	}
	return v
}
