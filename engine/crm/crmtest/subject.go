package crmtest

import (
	"context"
	"net/http"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Sandbox is the CRM behind the wire.
type Sandbox interface {
	// URL is where the connector would reach the CRM.
	URL() string
	// Leads are the ids of the leads that carry the operation id, by another way
	// than the connector's.
	Leads(ctx context.Context, operationID string) ([]string, error)
}

// Subject is what is checked.
type Subject struct {
	// Connect makes a connector whose CRM is at the URL. It must not ask for an
	// idle connection to be kept for another connector.
	Connect func(url string) (crm.Connector, error)
	Sandbox Sandbox

	// Fields of the leads to make. Default: a name.
	Fields map[string]string
	// Made are ids of what earlier steps made, by step; for the connector of a step.
	Made map[string]string

	// IsCreate tells the requests that can make a lead from the others. Default:
	// neither GET nor HEAD.
	IsCreate func(*http.Request) bool

	// Answers and Searches are the vendor's own answers, and what each proves.
	Answers  []Answer
	Searches []Search

	// Secrets must not occur in any error: tokens, passwords.
	Secrets []string

	// Patience bounds a request that nothing delays. Default 5 s.
	Patience time.Duration
	// Short is the time given to a request that is never answered. Default 250 ms.
	Short time.Duration
}

// Answer is one answer of the vendor's to a create.
type Answer struct {
	Name   string
	Status int
	Header map[string]string
	Body   string

	// Applied: the request had its effect all the same.
	Applied bool
	Want    crm.Outcome
}

// Search is one answer of the vendor's to a lookup.
type Search struct {
	Name   string
	Status int
	Body   func(operationID string) string
	Want   []string // ids of leads
	Fails  bool     // an error is wanted instead
}

// WithDefaults is the subject with every field that has a default.
func (s Subject) WithDefaults() Subject {
	if s.Fields == nil {
		s.Fields = map[string]string{"name": "Ada Lovelace of the suite"}
	}
	if s.IsCreate == nil {
		s.IsCreate = func(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }
	}
	if s.Patience == 0 {
		s.Patience = 5 * time.Second
	}
	if s.Short == 0 {
		s.Short = 250 * time.Millisecond
	}
	return s
}
