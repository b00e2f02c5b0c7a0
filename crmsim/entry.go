package crmsim

import "time"

// kind names an entry on the wire of the journal file.
type kind string

const (
	kindOpened  kind = "opened"  // first line of a file: its format and class
	kindRequest kind = "request" // a request has arrived
	kindAnswer  kind = "answer"  // it is about to be answered, or cut
	kindCreated kind = "created" // a lead exists
	kindUpdated kind = "updated" // its fields were written again
	kindRemoved kind = "removed" // it was deleted, or merged into another
)

const journalVersion = 1

// entry is one line of the journal; each kind uses the fields it needs.
type entry struct {
	Kind    kind      `json:"kind"`
	At      time.Time `json:"at"`
	Version int       `json:"version,omitempty"`
	Class   Class     `json:"class,omitempty"`

	Request    int    `json:"request,omitempty"` // number of the request, from 1
	Op         Op     `json:"op,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	Key        string `json:"idempotency_key,omitempty"`
	Fault      Fault  `json:"fault,omitempty"`

	Outcome Outcome `json:"outcome,omitempty"`
	Status  int     `json:"status,omitempty"`

	CRMID      string            `json:"crm_id,omitempty"`
	Fields     map[string]string `json:"fields,omitempty"`
	KeyAt      time.Time         `json:"key_at,omitzero"` // when the key's validity began; zero if no key was honoured
	MergedInto string            `json:"merged_into,omitempty"`
}
