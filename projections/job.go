package projections

import (
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// Job is what is known of one job, without anything a person wrote.
type Job struct {
	Number int64  `json:"number"` // order of acceptance in the log, 1 for the first
	Stream string `json:"stream"`

	// Key and what follows up to Kind are empty when the stream's first event
	// cannot be decoded.
	Key         string `json:"event_key"`
	Bot         int64  `json:"bot"`
	UpdateID    int64  `json:"update_id"`
	Chat        int64  `json:"chat"` // 0: none
	User        int64  `json:"user"` // 0: none
	Kind        string `json:"kind"`
	Fingerprint string `json:"fingerprint"`

	Phase     job.Phase `json:"phase"`
	Attempts  int       `json:"attempts"`            // claims so far
	Spent     int       `json:"spent"`               // attempts that count against the budget
	NotBefore time.Time `json:"not_before,omitzero"` // when the next step is due; zero: now, or never
	Human     bool      `json:"human"`               // only an operator can go on
	Ambiguous bool      `json:"ambiguous"`           // an earlier request may have had its effect

	BusinessKey string    `json:"business_key,omitempty"`
	Action      string    `json:"action,omitempty"`
	OperationID string    `json:"operation_id,omitempty"`
	Step        string    `json:"step,omitempty"`       // of the newest claim, where a lead takes several effects
	Worker      string    `json:"worker,omitempty"`     // while claimed
	LeaseUntil  time.Time `json:"lease_until,omitzero"` // while claimed

	CRMID       string           `json:"crm_id,omitempty"`
	How         job.Confirmation `json:"how,omitempty"`
	ConfirmedBy string           `json:"confirmed_by,omitempty"`  // event key of the job that made the lead instead
	SharedCRMID string           `json:"shared_crm_id,omitempty"` // that job's lead

	LastError    string `json:"last_error,omitempty"`
	LastOperator string `json:"last_operator,omitempty"`
	Repeats      int    `json:"repeats"`   // later deliveries of the update
	Incidents    int    `json:"incidents"` // keys and receipts in conflict
	Requeues     int    `json:"requeues"`

	ReceivedAt     time.Time `json:"received_at,omitzero"`
	FirstClaimedAt time.Time `json:"first_claimed_at,omitzero"`
	FinishedAt     time.Time `json:"finished_at,omitzero"` // zero unless the phase is final
	UpdatedAt      time.Time `json:"updated_at,omitzero"`  // time of the newest event applied

	Position string `json:"position"` // of the newest event applied, commit/prepare
	Revision uint64 `json:"revision"` // of that event, in its stream
	Stopped  Stop   `json:"stopped,omitzero"`
}

// Stop is why a job's events are not applied any more, from the one at Position
// on. The zero Stop is none.
type Stop struct {
	Position    string    `json:"position"` // commit/prepare
	Revision    uint64    `json:"revision"`
	Type        string    `json:"type"`         // of that event
	UnknownType bool      `json:"unknown_type"` // a release that knows the type goes on by itself
	At          time.Time `json:"at"`
	Reason      string    `json:"reason"`
}

// column ties a field of Job to its place in the file.
type column struct {
	name, kind string
	fixed      bool // never changes behind the job's first event
	field      func(*Job) any
}

const (
	whole = "INTEGER NOT NULL"
	text  = "TEXT NOT NULL"
)

// columns is the table jobs; number and state are before and behind them.
var columns = []column{
	{"stream", "TEXT NOT NULL UNIQUE", true, func(j *Job) any { return &j.Stream }},
	{"event_key", text, true, func(j *Job) any { return &j.Key }},
	{"bot", whole, true, func(j *Job) any { return &j.Bot }},
	{"update_id", whole, true, func(j *Job) any { return &j.UpdateID }},
	{"chat", whole, true, func(j *Job) any { return &j.Chat }},
	{"user", whole, true, func(j *Job) any { return &j.User }},
	{"kind", text, true, func(j *Job) any { return &j.Kind }},
	{"fingerprint", text, true, func(j *Job) any { return &j.Fingerprint }},
	{"phase", text, false, func(j *Job) any { return (*string)(&j.Phase) }},
	{"attempts", whole, false, func(j *Job) any { return &j.Attempts }},
	{"spent", whole, false, func(j *Job) any { return &j.Spent }},
	{"not_before", text, false, func(j *Job) any { return (*stamp)(&j.NotBefore) }},
	{"human", whole, false, func(j *Job) any { return &j.Human }},
	{"ambiguous", whole, false, func(j *Job) any { return &j.Ambiguous }},
	{"business_key", text, false, func(j *Job) any { return &j.BusinessKey }},
	{"action", text, false, func(j *Job) any { return &j.Action }},
	{"operation_id", text, false, func(j *Job) any { return &j.OperationID }},
	{"step", text, false, func(j *Job) any { return &j.Step }},
	{"worker", text, false, func(j *Job) any { return &j.Worker }},
	{"lease_until", text, false, func(j *Job) any { return (*stamp)(&j.LeaseUntil) }},
	{"crm_id", text, false, func(j *Job) any { return &j.CRMID }},
	{"how", text, false, func(j *Job) any { return (*string)(&j.How) }},
	{"confirmed_by", text, false, func(j *Job) any { return &j.ConfirmedBy }},
	{"shared_crm_id", text, false, func(j *Job) any { return &j.SharedCRMID }},
	{"last_error", text, false, func(j *Job) any { return &j.LastError }},
	{"last_operator", text, false, func(j *Job) any { return &j.LastOperator }},
	{"repeats", whole, false, func(j *Job) any { return &j.Repeats }},
	{"incidents", whole, false, func(j *Job) any { return &j.Incidents }},
	{"requeues", whole, false, func(j *Job) any { return &j.Requeues }},
	{"received_at", text, true, func(j *Job) any { return (*stamp)(&j.ReceivedAt) }},
	{"first_claimed_at", text, false, func(j *Job) any { return (*stamp)(&j.FirstClaimedAt) }},
	{"finished_at", text, false, func(j *Job) any { return (*stamp)(&j.FinishedAt) }},
	{"updated_at", text, false, func(j *Job) any { return (*stamp)(&j.UpdatedAt) }},
	{"position", text, false, func(j *Job) any { return &j.Position }},
	{"revision", whole, false, func(j *Job) any { return &j.Revision }},
	{"stopped_position", text, false, func(j *Job) any { return &j.Stopped.Position }},
	{"stopped_revision", whole, false, func(j *Job) any { return &j.Stopped.Revision }},
	{"stopped_type", text, false, func(j *Job) any { return &j.Stopped.Type }},
	{"stopped_unknown", whole, false, func(j *Job) any { return &j.Stopped.UnknownType }},
	{"stopped_at", text, false, func(j *Job) any { return (*stamp)(&j.Stopped.At) }},
	{"stopped_reason", text, false, func(j *Job) any { return &j.Stopped.Reason }},
}

// columnList is number and every column, each behind the prefix.
func columnList(prefix string) string {
	var b strings.Builder
	b.WriteString(prefix + "number")
	for _, c := range columns {
		b.WriteString(", " + prefix + c.name)
	}
	return b.String()
}

// fields points to what columnList names, in that order.
func (j *Job) fields() []any {
	to := make([]any, 0, len(columns)+2)
	to = append(to, &j.Number)
	for _, c := range columns {
		to = append(to, c.field(j))
	}
	return to
}

// derive sets every column that follows from the state alone.
func (j *Job) derive(s job.State) {
	if s.EventCount > 0 {
		j.Key, j.Revision = s.Key.String(), s.Revision()
	}
	j.Bot, j.UpdateID = s.Key.Bot, s.Key.Update
	j.Chat, j.User, j.Kind, j.Fingerprint = s.Chat, s.User, s.Kind, s.Fingerprint
	j.Phase, j.Attempts, j.Spent = s.Now(), s.Attempts, s.Spent
	j.NotBefore, j.Human, j.Ambiguous = instant(s.NotBefore), s.Human, s.Ambiguous
	j.BusinessKey, j.Action, j.OperationID = s.BusinessKey, s.Action, s.OperationID
	j.Step = s.Step
	j.Worker, j.LeaseUntil = s.Claim.Worker, instant(s.Claim.LeaseUntil)
	j.CRMID, j.How = s.CRMID, s.How
	j.ConfirmedBy, j.SharedCRMID = s.ConfirmedBy, s.SharedCRMID
	j.LastError, j.LastOperator = s.LastError, s.LastOperator
	j.Repeats, j.Incidents, j.Requeues = s.Repeats, len(s.Variants)+len(s.OtherCRMIDs), s.Requeues
	j.ReceivedAt, j.UpdatedAt = instant(s.ReceivedAt), instant(s.LastEventAt)
}

// observe sets what the state does not remember of its events.
func (j *Job) observe(a arrival, before, after job.State) {
	j.Position = a.Recorded.Position.String()
	if _, claimed := a.event.(job.JobClaimed); claimed && j.FirstClaimedAt.IsZero() {
		j.FirstClaimedAt = a.Time
	}
	switch {
	case !after.Phase.Final():
		j.FinishedAt = time.Time{}
	case !before.Phase.Final():
		j.FinishedAt = a.Time
	}
}
