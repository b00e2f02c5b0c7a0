package job

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"time"
)

// LeadStep is the step that makes the lead itself, where a lead takes several
// effects. Its key is the operation id.
const LeadStep = "lead"

// Made is what one step made in the CRM.
type Made struct {
	Step  string       `json:"step"`
	CRMID string       `json:"crm_id"`
	How   Confirmation `json:"how"`
}

// StepKey is the name under which the CRM knows what a step of the operation makes:
// the operation id for the lead itself, else the UUIDv5 of the operation id and the
// step. So it is the same over every retry, process and restored log.
func StepKey(operationID, step string) string {
	if step == "" || step == LeadStep {
		return operationID
	}
	h := sha1.New()
	h.Write(operationNamespace[:])
	fmt.Fprintf(h, "%s\n%s", operationID, step)
	return uuid5(h.Sum(nil))
}

// Has is what the step made, if it is known.
func (s State) Has(step string) (Made, bool) {
	i := slices.IndexFunc(s.Made, func(m Made) bool { return m.Step == step })
	if i < 0 {
		return Made{}, false
	}
	return s.Made[i], true
}

// MadeIDs are the CRM's ids of what the steps so far made, by step.
func (s State) MadeIDs() map[string]string {
	ids := make(map[string]string, len(s.Made))
	for _, m := range s.Made {
		ids[m.Step] = m.CRMID
	}
	return ids
}

// NextStep is the step of which a request may leave next; steps are the connector's,
// and empty for one that makes the lead by itself. It is finished when all are made.
// What an ambiguous request was for has to be settled before anything else is.
func (s State) NextStep(steps []string) (step string, finished bool) {
	if s.Ambiguous {
		return s.Step, false
	}
	if len(steps) == 0 {
		_, finished = s.Has(LeadStep) // by a connector that took several
		return "", finished
	}
	for _, step := range steps {
		if _, made := s.Has(step); !made {
			return step, false
		}
	}
	return "", true
}

// Finish confirms the lead of a job whose every step is made, or given up by whom g
// names.
func (s State) Finish(g Signature) []Event {
	lead, _ := s.Has(LeadStep)
	return []Event{LeadConfirmed{CRMID: lead.CRMID, How: lead.How, By: g.By, Reason: g.Reason}}
}

// id is the CRM's id behind the name of its step: ids of two steps can be equal.
func (r ReceiptConflicted) id() string {
	if r.Step == "" {
		return r.CRMID
	}
	return r.Step + " " + r.CRMID
}

// GoOnDoubting decides about a job whose step before was doubted and found: requests
// that this log does not know of may have been for this one as well. It is looked up
// before anything is sent. There are no events when nothing is doubted.
func (s State) GoOnDoubting(worker string, plan Plan, step string, now time.Time, r Rules) []Event {
	if s.DoubtedUntil.IsZero() || len(s.Made) == 0 || s.Ambiguous {
		return nil
	}
	claim := s.ClaimBy(worker, plan, step, now, r.Policy)
	doubt := s.Evolve(claim, now).reconcile("the step before was doubted, and so is "+step, r)
	doubt.DoubtedUntil = s.DoubtedUntil
	return []Event{claim, doubt}
}

// incomplete puts a lead before a person that lacks what belongs to it: a dead letter
// would hide it. There are no events when the lead is not made.
func (s State) incomplete(reason string) []Event {
	lead, ok := s.Has(LeadStep)
	if !ok {
		return nil
	}
	reason = fmt.Sprintf("lead %s is made, and its step %s is not: %s", lead.CRMID, s.Step, reason)
	return []Event{ReconciliationNeeded{Reason: reason, Human: true}}
}

// made is what to record of a CRM id that came for a step.
func made(step, crmID string, how Confirmation, g Signature) Event {
	if step == "" {
		return LeadConfirmed{CRMID: crmID, How: how, By: g.By, Reason: g.Reason}
	}
	return StepConfirmed{Step: step, CRMID: crmID, How: how, By: g.By, Reason: g.Reason}
}
