package projections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// storedState is job.State as a row keeps it: without the update's text, the lead's
// fields and what is empty. It has the same fields in the same order, or the
// conversions below do not compile: a new field of job.State gets a line here.
type storedState struct {
	Phase job.Phase `json:"phase,omitempty"`
	Key   job.Key   `json:"key,omitzero"`

	Fingerprint string    `json:"fingerprint,omitempty"`
	Kind        string    `json:"kind,omitempty"`
	Chat        int64     `json:"chat,omitempty"`
	User        int64     `json:"user,omitempty"`
	Update      string    `json:"-"`
	ReceivedAt  time.Time `json:"received_at,omitzero"`

	Action      string `json:"action,omitempty"`
	BusinessKey string `json:"business_key,omitempty"`
	OperationID string `json:"operation_id,omitempty"`

	Fields job.Fields `json:"-"` // what a person wrote
	Step   string     `json:"step,omitempty"`
	Made   []job.Made `json:"made,omitempty"`

	Claim    job.Claim `json:"claim,omitzero"`
	Attempts int       `json:"attempts,omitempty"`
	Spent    int       `json:"spent,omitempty"`
	Releases int       `json:"releases,omitempty"`
	Lookups  int       `json:"lookups,omitempty"`

	Ambiguous    bool      `json:"ambiguous,omitempty"`
	FirstSent    time.Time `json:"first_sent,omitzero"`
	LastDeadline time.Time `json:"last_deadline,omitzero"`
	DoubtedUntil time.Time `json:"doubted_until,omitzero"`

	NotBefore time.Time        `json:"not_before,omitzero"`
	Human     bool             `json:"human,omitempty"`
	CRMID     string           `json:"crm_id,omitempty"`
	How       job.Confirmation `json:"how,omitempty"`
	LastError string           `json:"last_error,omitempty"`

	Repeats      int               `json:"repeats,omitempty"`
	Variants     map[string]string `json:"variants,omitempty"`
	OtherCRMIDs  []string          `json:"other_crm_ids,omitempty"`
	Requeues     int               `json:"requeues,omitempty"`
	ConfirmedBy  string            `json:"confirmed_by,omitempty"`
	SharedCRMID  string            `json:"shared_crm_id,omitempty"`
	EventCount   uint64            `json:"event_count,omitempty"`
	LastEventAt  time.Time         `json:"last_event_at,omitzero"`
	LastOperator string            `json:"last_operator,omitempty"`
}

func encodeState(s job.State) (string, error) {
	data, err := json.Marshal(storedState(s))
	if err != nil {
		return "", fmt.Errorf("encode the state of %s: %w", s.Key, err)
	}
	return string(data), nil
}

func decodeState(data string) (job.State, error) {
	var s storedState
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		return job.State{}, fmt.Errorf("decode a job's state: %w", err)
	}
	return job.State(s), nil
}
