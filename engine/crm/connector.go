package crm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Class is what a CRM's create gives for safe repetition. It is declared in
// configuration and proven by certification.
type Class string

// The capability classes.
const (
	IdempotencyKey Class = "idempotency_key" // key → response, for a validity
	Upsert         Class = "upsert"          // create or update on a server-unique key
	UniqueCreate   Class = "unique_create"   // "exists" means done
	Lookup         Class = "lookup"          // nothing unique, but a search by our reference
	None           Class = "none"            // nothing
)

// Classes lists them, the strongest first.
var Classes = []Class{IdempotencyKey, Upsert, UniqueCreate, Lookup, None}

// ParseClass reads a class name.
func ParseClass(s string) (Class, error) {
	for _, c := range Classes {
		if string(c) == s {
			return c, nil
		}
	}
	return "", fmt.Errorf("capability class %q is unknown, want one of %v", s, Classes)
}

// Repeatable reports whether a create may be sent again under its operation id
// while the outcome of an earlier one is unknown.
func (c Class) Repeatable() bool {
	return c == IdempotencyKey || c == Upsert || c == UniqueCreate
}

// Description is what a connector says of its CRM.
type Description struct {
	Name  string
	Class Class

	// KeyValidity is how long the CRM remembers an idempotency key; 0 for the
	// other classes, which remember for ever.
	KeyValidity time.Duration

	// CanFind: Find works.
	CanFind bool

	// Settle is how long after a request's deadline its effect can still become
	// visible: the CRM's longest request plus the lag of its index.
	Settle time.Duration
}

// Operation is one effect to make.
type Operation struct {
	ID       string            // operation_id, in [A-Za-z0-9_-]
	Fields   map[string]string // of the lead
	Deadline time.Time         // no byte may leave after it

	// Made are the CRM's ids of what the steps before this one made, by step.
	Made map[string]string
}

// Receipt is proof that a lead exists.
type Receipt struct {
	CRMID    string // not empty
	Existing bool   // it was there already, under this operation's unique key
}

// Connector speaks to one CRM. Its methods are safe for concurrent use.
type Connector interface {
	Describe() Description

	// Create asks the CRM for the operation's lead. Its error is an *Error;
	// anything else counts as Unknown.
	Create(ctx context.Context, op Operation) (Receipt, error)

	// Find answers the leads that carry the operation id; none is an answer,
	// proving what the settle time allows it to prove. It may be called only if
	// the description says CanFind.
	Find(ctx context.Context, operationID string, deadline time.Time) ([]Receipt, error)
}

// LeadStep is the name of the step that makes the lead itself.
const LeadStep = "lead"

// Step is one of several effects that a lead takes, as a contact and then the lead.
// Each is an operation of its own, with a key derived from the lead's, and with what
// its own description promises.
type Step struct {
	Name      string // 1 to 40 of a-z 0-9 _ -, each once in a connector
	Connector Connector
}

// Stepped is a connector whose lead takes several effects. Its own methods are those
// of the step LeadStep, whose key is the lead's operation id.
type Stepped interface {
	Connector
	// Steps lists them in the order in which they are made; one is LeadStep. It is
	// the same at every call. Without any, the connector makes the lead by itself.
	Steps() []Step
}

// StepsOf are the effects that a lead takes, in order: one without a name where the
// connector makes the lead by itself.
func StepsOf(c Connector) []Step {
	if stepped, ok := c.(Stepped); ok {
		if steps := stepped.Steps(); len(steps) > 0 {
			return steps
		}
	}
	return []Step{{Connector: c}}
}

// Outcome is what an error proves about a request.
type Outcome int

// The outcomes of a request that gave no receipt.
const (
	Unknown    Outcome = iota // it may have had its effect
	NotSent                   // nothing left the process
	NotApplied                // the CRM did nothing; a later try may succeed
	Refused                   // the CRM did nothing and never will
)

// String is the outcome's name as it stands in events and logs.
func (o Outcome) String() string {
	switch o {
	case NotSent:
		return "not sent"
	case NotApplied:
		return "not applied"
	case Refused:
		return "refused"
	default:
		return "unknown"
	}
}

// Error says what is known of a request that gave no receipt.
type Error struct {
	Outcome Outcome
	Reason  string // short; without secrets and without the lead's fields

	// RetryAfter is how long the CRM asks to be left alone, as a whole; 0 when it
	// does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Outcome.String() + ": " + e.Reason }

// Classify is what err proves: what an *Error in its chain says, else Unknown.
func Classify(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Outcome: Unknown, Reason: "the connector failed without a classified error"}
}
