package job

import "time"

// Event is something that happened to a job. Its Name is also the trigger in
// the transition table.
type Event interface{ Name() string }

// UpdateReceived: the update is accepted, with its bytes.
type UpdateReceived struct {
	Key
	Fingerprint string `json:"fingerprint"`
	Kind        string `json:"kind"`
	Chat        int64  `json:"chat,omitempty"`
	User        int64  `json:"user,omitempty"`
	Update      string `json:"update"` // the body, byte for byte
}

// DeliveryRepeated: the same update was delivered again.
type DeliveryRepeated struct {
	Reason string `json:"reason"`
}

// KeyConflicted: another update came under the same key; it is stored under
// StoredAs and processed as itself.
type KeyConflicted struct {
	Fingerprint string `json:"fingerprint"`
	StoredAs    string `json:"stored_as"` // event key
}

// JobClaimed: a worker may now send one request. It is written just before the
// request, so a claim that expires is always ambiguous.
type JobClaimed struct {
	Worker      string    `json:"worker"`
	Attempt     int       `json:"attempt"` // 1 for the first
	Action      string    `json:"action"`
	BusinessKey string    `json:"business_key"`
	OperationID string    `json:"operation_id"` // the lead's, also in the claim of another step
	LeaseUntil  time.Time `json:"lease_until"`
	Deadline    time.Time `json:"deadline"` // the request cannot leave after it

	// Step is the effect that the request is for; empty where one makes the lead.
	Step string `json:"step,omitempty"`

	// Fields of the lead, in the job's first claim: whatever the rules say later, a
	// request that is repeated is the same request.
	Fields Fields `json:"fields,omitempty"`
}

// ClaimRenewed: the lease and the request's deadline are prolonged.
type ClaimRenewed struct {
	LeaseUntil time.Time `json:"lease_until"`
	Deadline   time.Time `json:"deadline"`
}

// ClaimReleased: proof that no request left.
type ClaimReleased struct {
	Reason    string    `json:"reason"`
	NotBefore time.Time `json:"not_before"`
}

// AttemptNotApplied: the CRM positively did not apply the request.
type AttemptNotApplied struct {
	Reason    string    `json:"reason"`
	NotBefore time.Time `json:"not_before"`
}

// OutcomeUnknown: the request may have had its effect and may be repeated
// safely under the same operation id.
type OutcomeUnknown struct {
	Reason    string    `json:"reason"`
	NotBefore time.Time `json:"not_before"`
}

// ReconciliationNeeded: a request may have had its effect and may not be
// repeated. It is looked up at NotBefore, or a human decides.
type ReconciliationNeeded struct {
	Reason    string    `json:"reason"`
	NotBefore time.Time `json:"not_before,omitzero"` // zero for a human
	Human     bool      `json:"human,omitempty"`

	// DoubtedUntil is set by an operator's doubt: requests that this log does not
	// know of may have left until then.
	DoubtedUntil time.Time `json:"doubted_until,omitzero"`
}

// StepConfirmed: what one of several steps makes exists, and its id is known. The
// next step is due; LeadConfirmed follows the last.
type StepConfirmed struct {
	Step   string       `json:"step"`
	CRMID  string       `json:"crm_id"`
	How    Confirmation `json:"how"`
	By     string       `json:"by,omitempty"` // the operator
	Reason string       `json:"reason,omitempty"`
}

// LeadConfirmed: the lead exists, and its id is known.
type LeadConfirmed struct {
	CRMID  string       `json:"crm_id"`
	How    Confirmation `json:"how"`
	By     string       `json:"by,omitempty"` // the operator
	Reason string       `json:"reason,omitempty"`
}

// Confirmation is how a lead's id became known.
type Confirmation string

// The ways in which a lead is confirmed.
const (
	ByCreate   Confirmation = "create"
	ByUpsert   Confirmation = "upsert"
	ByExists   Confirmation = "exists" // the unique key was there already
	ByLookup   Confirmation = "lookup"
	ByOperator Confirmation = "operator"
	ByLate     Confirmation = "late response" // after the claim was lost
)

// ReceiptConflicted: a CRM id arrived that contradicts what is recorded: a
// second id for one operation, or any id for a job that ended without one. It
// is an incident for a human and changes no phase.
type ReceiptConflicted struct {
	CRMID     string `json:"crm_id"`
	Confirmed string `json:"confirmed,omitempty"` // the id that is recorded
	Step      string `json:"step,omitempty"`      // whose id it is; empty: the lead's
}

// NoEffectNeeded: the update asks for nothing, or its operation belongs to
// another job that confirmed it.
type NoEffectNeeded struct {
	Reason      string `json:"reason"`
	ConfirmedBy string `json:"confirmed_by,omitempty"` // event key of that job
	CRMID       string `json:"crm_id,omitempty"`       // and its lead
}

// LeadAbsent: evidence that no lead was made.
type LeadAbsent struct {
	How    Confirmation `json:"how"` // ByLookup or ByOperator
	By     string       `json:"by,omitempty"`
	Reason string       `json:"reason,omitempty"`
}

// JobDeadLettered: given up, with the reason.
type JobDeadLettered struct {
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"` // the operator
}

// JobRequeued: an operator wants another try.
type JobRequeued struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Name methods: the triggers of the transition table.

func (UpdateReceived) Name() string       { return "UpdateReceived" }
func (DeliveryRepeated) Name() string     { return "DeliveryRepeated" }
func (KeyConflicted) Name() string        { return "KeyConflicted" }
func (JobClaimed) Name() string           { return "JobClaimed" }
func (ClaimRenewed) Name() string         { return "ClaimRenewed" }
func (ClaimReleased) Name() string        { return "ClaimReleased" }
func (AttemptNotApplied) Name() string    { return "AttemptNotApplied" }
func (OutcomeUnknown) Name() string       { return "OutcomeUnknown" }
func (ReconciliationNeeded) Name() string { return "ReconciliationNeeded" }
func (StepConfirmed) Name() string        { return "StepConfirmed" }
func (LeadConfirmed) Name() string        { return "LeadConfirmed" }
func (ReceiptConflicted) Name() string    { return "ReceiptConflicted" }
func (NoEffectNeeded) Name() string       { return "NoEffectNeeded" }
func (LeadAbsent) Name() string           { return "LeadAbsent" }
func (JobDeadLettered) Name() string      { return "JobDeadLettered" }
func (JobRequeued) Name() string          { return "JobRequeued" }
