package sim

import "github.com/leadonce/leadonce/engine/job"

// moves is the transition table in the judge's own words: what an event may do
// to a job, besides events that keep its phase.
var moves = map[string][]struct{ from, to job.Phase }{
	"UpdateReceived":    {{job.New, job.Pending}},
	"JobClaimed":        {{job.Pending, job.Claimed}},
	"ClaimRenewed":      {{job.Claimed, job.Claimed}},
	"ClaimReleased":     {{job.Claimed, job.Pending}},
	"AttemptNotApplied": {{job.Claimed, job.Pending}},
	"OutcomeUnknown":    {{job.Claimed, job.Pending}},
	"ReconciliationNeeded": {
		{job.Claimed, job.NeedsReconciliation}, {job.NeedsReconciliation, job.NeedsReconciliation},
	},
	"LeadConfirmed": {
		{job.Pending, job.Done}, {job.Claimed, job.Done}, {job.NeedsReconciliation, job.Done},
	},
	"StepConfirmed": {
		{job.Pending, job.Pending}, {job.Claimed, job.Pending}, {job.NeedsReconciliation, job.Pending},
	},
	"ReceiptConflicted": {
		{job.Pending, job.Pending}, {job.Claimed, job.Claimed}, {job.NeedsReconciliation, job.NeedsReconciliation},
		{job.Done, job.Done}, {job.DeadLetter, job.DeadLetter},
	},
	"NoEffectNeeded": {{job.Pending, job.Done}},
	"LeadAbsent":     {{job.NeedsReconciliation, job.Pending}},
	"JobDeadLettered": {
		{job.Pending, job.DeadLetter}, {job.Claimed, job.DeadLetter}, {job.NeedsReconciliation, job.DeadLetter},
	},
	"JobRequeued": {{job.DeadLetter, job.Pending}},
}

// allowed reports whether the event may lead from one phase to the other.
func allowed(event string, from, to job.Phase) bool {
	if event == "DeliveryRepeated" || event == "KeyConflicted" {
		return from == to && from != job.New
	}
	for _, m := range moves[event] {
		if m.from == from && m.to == to {
			return true
		}
	}
	return false
}
