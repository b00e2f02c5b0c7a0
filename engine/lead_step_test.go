package engine_test

import (
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// TestTheLeadHasOneName on both sides of the ports, which do not know each other.
func TestTheLeadHasOneName(t *testing.T) {
	if job.LeadStep != crm.LeadStep {
		t.Errorf("a job calls it %q, a connector %q", job.LeadStep, crm.LeadStep)
	}
}
