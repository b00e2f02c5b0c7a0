package rules

import (
	"strings"

	"github.com/leadonce/leadonce/engine/job"
)

// Reply is a text to the person of an update, ready for use by any number of
// goroutines. R1, R2 and R6 hold for it as for a plan.
type Reply struct{ text template }

// NewReply compiles a reply's text. Every ${…} in it is an expression over the names
// that rules have, and crm_id, the lead's id or "". source and path say where it
// stands, for the errors: each is an *Error.
func NewReply(source, path, name, text string) (*Reply, error) {
	t, err := compiler{source: source, path: path, reply: true}.text(name, text)
	if err != nil {
		return nil, err
	}
	return &Reply{t}, nil
}

// Letter is a reply as it is to be sent.
type Letter struct {
	Text      string // empty: nothing is to be said
	MessageID int64  // the message to reply to; 0 when the update is none, such as a button's
}

// Write is the reply to an update. crmID is its lead's, if there is one. A bot gets no
// letter: two of them would write to each other for ever.
func (r *Reply) Write(u job.Update, crmID string) (Letter, error) {
	e, err := read(u)
	if err != nil || e.User.IsBot {
		return Letter{}, err
	}
	e.CRMID = crmID
	text, err := r.text.text(e)
	if err != nil {
		return Letter{}, err
	}
	l := Letter{Text: strings.TrimSpace(strings.ToValidUTF8(text, ""))}
	if messageKinds[u.Kind] {
		l.MessageID = e.MessageID
	}
	return l, nil
}
