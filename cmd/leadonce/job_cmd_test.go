package main

import (
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

// Who looks into the CRM for what a step made looks for the step's key: whoever looks
// for the lead's finds nothing, says --absent, and has it made a second time.
func TestJobShowTellsTheKeyOfTheStep(t *testing.T) {
	const operation = "ce675a11-55ec-5891-9fc5-77a33e07ab9b"
	for step, want := range map[string]string{"": "", job.LeadStep: "", "contact": "367afa23-b069-5b82-b0f2-4e801d8dba76"} {
		var b strings.Builder
		j := projections.Job{OperationID: operation, Step: step}
		if err := writeJob(&b, shownJob{Job: j, StepKey: stepKey(j)}); err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(b.String(), "step_key")
		if line, _, _ := strings.Cut(after, "\n"); found != (want != "") || strings.TrimSpace(line) != want {
			t.Errorf("step %q:\n%s", step, b.String())
		}
	}
}
