package crmtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Verdict is what was shown of a class, or of one thing that it needs.
type Verdict string

// The verdicts.
const (
	Held     Verdict = "held"      // it was tried, and the CRM kept it
	Broken   Verdict = "broken"    // it was tried, and the CRM did not keep it
	NotShown Verdict = "not shown" // it could not be tried
	Seen     Verdict = "seen"      // worth knowing; the class does not need it
)

// Candidate is a connector to certify, and the CRM that it speaks to. Nothing else
// shows which leads exist: the witnesses are the ids that creates answer and the
// connector's own lookup, which is tried for lies first.
type Candidate struct {
	// Connect makes the connector in a class, with its CRM at the URL. Of a
	// crm.Stepped, the class is that of the step crm.LeadStep.
	Connect func(url string, class crm.Class) (crm.Connector, error)
	// URL is where the CRM is. It may hold a password.
	URL string
	// Classes are those to try.
	Classes []crm.Class

	// Fields of the leads to make, beside a text that asks for the lead's removal and
	// what a message has.
	Fields map[string]string
	// Refused are the fields of a lead that the CRM refuses. Default: one that the
	// simulated CRM does.
	Refused map[string]string

	// WaitExpiry: the end of a key's validity is waited for, however long it is.
	// Without it, up to a minute.
	WaitExpiry bool

	// Soak is the age at least at which the first create is repeated: a CRM may take
	// two for one that follow each other closely, and a lost answer may be repeated
	// much later.
	Soak time.Duration

	// Patience bounds one request, and what the connector and the CRM ask to be left
	// alone for. Default 30 s.
	Patience time.Duration
	// Progress, if set, is told what is being done.
	Progress func(text string)
}

// Remover is a connector that may be able to remove a lead from its CRM.
type Remover interface {
	CanRemove() bool
	Remove(ctx context.Context, crmID string, deadline time.Time) error
}

// Certificate is what was shown of each class: one result for each, or for each
// step of it.
type Certificate struct {
	Results []Result
}

// Result is what was shown of one class, or of one step's.
type Result struct {
	Class   crm.Class // the one tried
	Step    string    // "" of a lead that takes one effect
	Promise crm.Class // what the step promises; Class itself for a lead of one effect
	Verdict Verdict
	Why     string // what decided; "" when it held
	Probes  []Probe
	Leads   []Lead // all that were made, and what may have been
}

// Probe is one thing that was tried.
type Probe struct {
	Name     string  `json:"probe"`
	Verdict  Verdict `json:"verdict"`
	Evidence string  `json:"evidence"` // what was sent, counted, answered and seen; no secrets, no field of a lead
}

// Lead is one that was made.
type Lead struct {
	Operation string
	CRMID     string // "" when it is not known whether there is one
	Removed   bool
}

// Of is the verdict on a class: the worst of its steps.
func (c Certificate) Of(class crm.Class) Verdict {
	verdict := NotShown
	for i, r := range c.of(class) {
		if i == 0 || r.Verdict == Broken || verdict == Held {
			verdict = r.Verdict
		}
	}
	return verdict
}

func (c Certificate) of(class crm.Class) (results []Result) {
	for _, r := range c.Results {
		if r.Class == class {
			results = append(results, r)
		}
	}
	return results
}

// Strongest is the strongest class that held; "" when none did.
func (c Certificate) Strongest() crm.Class {
	for _, class := range crm.Classes {
		if c.Of(class) == Held {
			return class
		}
	}
	return ""
}

func (c Candidate) withDefaults() Candidate {
	fields := map[string]string{
		"source": "leadonce crm certify", "text": "A trial of leadonce crm certify. Please delete this lead.",
		"name": "Leadonce Certify", "username": "leadonce_certify", "language": "en",
		// By these a CRM may take the second enquiry of a person for the first.
		"bot_id": "1", "chat_id": "1", "user_id": "1", "sent_at": "2026-01-01T00:00:00Z",
		"phone": "+12025550100", "email": "leadonce-certify@example.com",
		"contact_name": "Leadonce Certify", "contact_user_id": "1",
	}
	maps.Copy(fields, c.Fields)
	c.Fields = fields
	if len(c.Refused) == 0 {
		c.Refused = map[string]string{"reject": "yes"}
	}
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	return c
}

// Certify tries every class of the candidate. It makes some ten leads in each, and up
// to forty in one that lies, asks for no more than eight at once, and removes them if
// the connector can; what it leaves is in the results. The error says that it could
// not begin, or that ctx has ended: then the results are those so far.
func Certify(ctx context.Context, c Candidate) (Certificate, error) {
	c = c.withDefaults()
	var done Certificate
	if err := c.dial(ctx); err != nil {
		return done, err
	}
	shutOut := false
	for _, class := range crm.Classes {
		if !slices.Contains(c.Classes, class) {
			continue
		}
		if shutOut {
			done.Results = append(done.Results, Result{Class: class, Promise: class, Verdict: NotShown, Why: notLetIn,
				Probes: []Probe{{probeCreate, NotShown, notLetIn}}})
			continue
		}
		var results []Result
		var err error
		results, shutOut, err = c.try(ctx, class)
		done.Results = append(done.Results, results...)
		if err != nil {
			return done, err
		}
	}
	return done, ctx.Err()
}

const notLetIn = "not tried: the CRM refuses whoever sends, as it did in the class before"

// dial tries whether anybody is there: behind the tap, a CRM that is not looks like one
// that hangs up.
func (c Candidate) dial(ctx context.Context) error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" {
		return errors.New("the CRM's address cannot be read: give http[s]://host[:port][/path]") // it may hold a password
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	port := cmp.Or(u.Port(), u.Scheme)
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("the CRM cannot be reached: %w", err)
	}
	return connection.Close()
}

// try is one class, step by step. shutOut says that the CRM let nobody in.
func (c Candidate) try(ctx context.Context, class crm.Class) (results []Result, shutOut bool, err error) {
	line, err := openTap(c)
	if err != nil {
		return nil, false, err
	}
	defer line.close()
	target, err := throughTap(c.URL, line)
	if err != nil {
		return nil, false, err
	}
	connector, err := c.Connect(target, class)
	if err != nil {
		return nil, false, err
	}
	steps := crm.StepsOf(connector)
	var trials []*trial
	made := map[string]string{}
	for _, step := range steps {
		t := newTrial(ctx, c, line, class, step, made)
		trials = append(trials, t)
		t.run()
		if id := t.firstID(); step.Name != "" {
			made[step.Name] = id
		}
		results = append(results, t.result())
		shutOut = t.shutOut
		if ctx.Err() != nil || shutOut || step.Name != "" && made[step.Name] == "" {
			break // what comes after cannot be made
		}
	}
	for _, step := range steps[len(results):] {
		results = append(results, Result{Class: class, Step: step.Name, Promise: step.Connector.Describe().Class,
			Verdict: NotShown, Why: "a step before it made nothing"})
	}
	for i := len(trials) - 1; i >= 0; i-- { // the last step's first: it may hang on the others
		trials[i].cleanUp()
		results[i].Leads = trials[i].leads
	}
	return results, shutOut, ctx.Err()
}

// throughTap is the tap's address with the login that the CRM's has.
func throughTap(address string, line *tap) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	through, err := url.Parse(line.wire.url())
	if err != nil {
		return "", err
	}
	through.User = u.User
	return through.String(), nil
}

// result is the verdict: broken when one thing is, not shown when one thing is not.
func (t *trial) result() Result {
	r := Result{Class: t.class, Step: t.step, Promise: t.about.Class, Verdict: Held, Probes: t.probes}
	for _, p := range t.probes {
		if p.Verdict == Broken && r.Verdict != Broken || p.Verdict == NotShown && r.Verdict == Held {
			r.Verdict, r.Why = p.Verdict, p.Name+": "+p.Evidence
		}
	}
	if t.ctx.Err() != nil {
		r.Verdict, r.Why = NotShown, "interrupted"
	}
	return r
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func these(ids []string) string { return strings.Join(ids, ", ") }
