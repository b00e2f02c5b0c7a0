package audit

import (
	"maps"
	"slices"
	"strings"

	"github.com/leadonce/leadonce/engine/job"
)

// The kinds of findings in the comparison with the CRM.
const (
	Lost     Kind = "lost"     // confirmed in the log, and not in the CRM
	Orphaned Kind = "orphaned" // in the CRM, and no job of the log stands for it
)

// Lead is one lead that exists in the CRM.
type Lead struct {
	ExternalID string `json:"external_id"` // the operation id
	CRMID      string `json:"crm_id"`
}

// Compare adds to the report where the CRM's leads differ from the log's. Leads
// without an external id are somebody else's. A lead of an operation that still
// waits, for a worker or in needs_reconciliation, is no finding: that is what
// the waiting is for.
//
// before and after are the CRM's leads as they were before and after Verify read
// the log, so that leads made meanwhile are no findings; the same list twice
// where nothing happened meanwhile.
func (r *Report) Compare(before, after []Lead) {
	byOperation, afterwards := group(before), group(after)
	add := func(kind Kind, subject, detail string) {
		r.Findings = append(r.Findings, Finding{kind, subject, detail})
	}
	for _, id := range slices.Sorted(maps.Keys(byOperation)) {
		ids := byOperation[id]
		op, known := r.operations[id]
		if len(ids) > 1 {
			add(Doubled, id, "the CRM has leads "+strings.Join(ids, ", "))
		}
		switch {
		case !known:
			add(Orphaned, id, "lead "+ids[0]+": no job of the log has this operation")
		case op.phase == job.DeadLetter:
			add(Orphaned, op.key.String(), "lead "+ids[0]+": its job is a dead letter")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.operations)) {
		op := r.operations[id]
		if op.crmID != "" && !slices.Contains(afterwards[id], op.crmID) {
			add(Lost, op.key.String(), "lead "+op.crmID+" of operation "+id+" is not in the CRM")
		}
	}
}

func group(leads []Lead) map[string][]string {
	byOperation := map[string][]string{}
	for _, l := range leads {
		if l.ExternalID != "" {
			byOperation[l.ExternalID] = append(byOperation[l.ExternalID], l.CRMID)
		}
	}
	return byOperation
}
