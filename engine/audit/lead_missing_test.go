package audit_test

import (
	"testing"

	"github.com/leadonce/leadonce/engine/audit"
	"github.com/leadonce/leadonce/engine/job"
)

func TestCompare(t *testing.T) {
	s := newStory(t)
	first, second := s.done(1, "", "L-1"), s.done(2, "", "L-2")
	waits := s.begun(3, "").OperationID
	s.tell(key(3), job.ReconciliationNeeded{Reason: "unknown", Human: true})
	dead := s.begun(4, "").OperationID
	s.tell(key(4), job.JobDeadLettered{Reason: "refused"})
	claimed := s.begun(5, "").OperationID

	right := []audit.Lead{{first, "L-1"}, {second, "L-2"}}
	with := func(more ...audit.Lead) []audit.Lead { return append(right[:len(right):len(right)], more...) }
	for name, c := range map[string]struct {
		before, after []audit.Lead
		want          [][3]string
	}{
		"as it should be":                   {right, right, nil},
		"in another order":                  {[]audit.Lead{right[1], right[0]}, []audit.Lead{right[1], right[0]}, nil},
		"somebody else's":                   {with(audit.Lead{"", "L-9"}), with(audit.Lead{"", "L-9"}), nil},
		"of a job that waits for a person":  {with(audit.Lead{waits, "L-3"}), with(audit.Lead{waits, "L-3"}), nil},
		"of a job that is being worked on":  {with(audit.Lead{claimed, "L-5"}), with(audit.Lead{claimed, "L-5"}), nil},
		"made while the log was read":       {right[:1], right, nil},
		"of an operation begun behind that": {right, with(audit.Lead{"unheard-of", "L-9"}), nil},
		"lost":                              {right[:1], right[:1], [][3]string{{"lost", "telegram/1/2", "lead L-2 of operation " + second}}},
		"all lost":                          {nil, nil, [][3]string{{"lost", "", ""}, {"lost", "", ""}}},
		"deleted while the log was read":    {right, right[:1], [][3]string{{"lost", "telegram/1/2", "L-2"}}},
		"another id": {
			[]audit.Lead{{first, "L-1"}, {second, "L-7"}}, []audit.Lead{{first, "L-1"}, {second, "L-7"}},
			[][3]string{{"lost", "telegram/1/2", "L-2"}},
		},
		"doubled": {with(audit.Lead{second, "L-7"}), with(audit.Lead{second, "L-7"}),
			[][3]string{{"doubled", second, "the CRM has leads L-2, L-7"}}},
		"doubled while it waits": {with(audit.Lead{waits, "L-3"}, audit.Lead{waits, "L-4"}), right,
			[][3]string{{"doubled", waits, "the CRM has leads L-3, L-4"}}},
		"of no job": {with(audit.Lead{"unheard-of", "L-9"}), right,
			[][3]string{{"orphaned", "unheard-of", "lead L-9: no job of the log has this operation"}}},
		"of a dead letter": {with(audit.Lead{dead, "L-4"}), right,
			[][3]string{{"orphaned", "telegram/1/4", "lead L-4: its job is a dead letter"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.verify()
			r.Compare(c.before, c.after)
			if name == "all lost" {
				if len(r.Findings) != 2 || r.Findings[0].Kind != audit.Lost || r.Findings[1].Kind != audit.Lost {
					t.Errorf("findings %v, want two lost", r.Findings)
				}
				return
			}
			want(t, r, c.want...)
		})
	}
}
