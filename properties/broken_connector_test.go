package properties

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/properties/sim"
)

// wrong is a connector of which a part was replaced.
type wrong struct {
	crm.Connector
	create   func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error)
	find     func(b box, sound crm.Connector, ctx context.Context, id string, deadline time.Time) ([]crm.Receipt, error)
	declares crm.Class
	box      box
}

func (w wrong) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	if w.create == nil {
		return w.Connector.Create(ctx, op)
	}
	return w.create(w.Connector, ctx, op)
}

func (w wrong) Find(ctx context.Context, id string, deadline time.Time) ([]crm.Receipt, error) {
	if w.find == nil {
		return w.Connector.Find(ctx, id, deadline)
	}
	return w.find(w.box, w.Connector, ctx, id, deadline)
}

func (w wrong) Describe() crm.Description {
	d := w.Connector.Describe()
	if w.declares != "" {
		d.Class = w.declares
	}
	return d
}

// failing takes failures that have the text in their reason for something else.
func failing(text string, change func(e *crm.Error) (crm.Receipt, error)) wrong {
	return wrong{create: func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error) {
		receipt, err := sound.Create(ctx, op)
		if e := crm.Classify(err); err != nil && strings.Contains(e.Reason, text) {
			return change(e)
		}
		return receipt, err
	}}
}

func taking(text string, outcome crm.Outcome) wrong {
	return failing(text, func(e *crm.Error) (crm.Receipt, error) {
		return crm.Receipt{}, &crm.Error{Outcome: outcome, Reason: e.Reason}
	})
}

// sender changes requests on their way.
type sender func(*httponce.Request)

func (s sender) Send(ctx context.Context, r httponce.Request) (httponce.Answer, error) {
	s(&r)
	return (&httponce.Client{}).Send(ctx, r)
}

// brokenConnector is one way to be wrong, and what a run of the engine says of it.
type brokenConnector struct {
	class  crm.Class // that the CRM has
	crm    crmsim.Config
	settle time.Duration
	send   sender
	wrong  wrong
	breaks []sim.Property
}

var twoLeads = []sim.Property{sim.AtMostOneEffect}

var brokenConnectors = map[string]brokenConnector{
	"sends no key":          {class: crm.IdempotencyKey, send: func(r *httponce.Request) { r.Header.Del("Idempotency-Key") }, breaks: twoLeads},
	"a new key per try":     {class: crm.IdempotencyKey, send: func(r *httponce.Request) { r.Header.Set("Idempotency-Key", rand.Text()) }, breaks: twoLeads},
	"500 for not applied":   {class: crm.Lookup, wrong: taking("HTTP 500", crm.NotApplied), breaks: []sim.Property{sim.OnlyOnProof, sim.ProofIsProof}},
	"400 for refused":       {class: crm.UniqueCreate, wrong: taking("HTTP 400", crm.Refused), breaks: []sim.Property{sim.OnlyOnProof, sim.NoHiddenEffect}},
	"time-out for not sent": {class: crm.Lookup, wrong: taking("time-out", crm.NotSent), breaks: []sim.Property{sim.OnlyOnProof}},
	"success without an id": {class: crm.Lookup, breaks: []sim.Property{sim.OnlyOnProof}, wrong: failing("HTTP 200 meets no rule",
		func(*crm.Error) (crm.Receipt, error) { return crm.Receipt{}, nil })},
	"a made-up id": {class: crm.Lookup, breaks: []sim.Property{sim.VerdictIsRight}, wrong: failing("HTTP 200 meets no rule",
		func(*crm.Error) (crm.Receipt, error) { return crm.Receipt{CRMID: "L-unknown"}, nil })},
	"a hidden retry": {class: crm.Lookup, breaks: []sim.Property{sim.OneRequest, sim.AtMostOneEffect}, wrong: wrong{
		create: func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error) {
			receipt, err := sound.Create(ctx, op)
			if err != nil {
				return sound.Create(ctx, op)
			}
			return receipt, nil
		}}},
	"ignores the deadline": {class: crm.Upsert, breaks: []sim.Property{sim.InTime}, wrong: wrong{
		create: func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error) {
			op.Deadline = time.Now().Add(time.Minute)
			return sound.Create(ctx, op)
		}}},
	"a lookup that matches neighbours": {class: crm.Lookup, breaks: []sim.Property{sim.FindsExactly}, wrong: wrong{
		find: func(b box, _ crm.Connector, _ context.Context, id string, _ time.Time) (found []crm.Receipt, err error) {
			for _, e := range b.Effects() {
				if e.ExternalID[:1] == id[:1] {
					found = append(found, crm.Receipt{CRMID: e.CRMID})
				}
			}
			return found, nil
		}}},
	"trusts a stale search": {class: crm.Lookup, breaks: []sim.Property{sim.FindsExactly}, settle: time.Millisecond,
		crm: crmsim.Config{IndexLag: 300 * time.Millisecond, Rates: map[crmsim.Fault]float64{crmsim.LookupLags: 1}}},
	"finds nothing when it cannot look": {class: crm.Lookup, breaks: []sim.Property{sim.FindsExactly}, wrong: wrong{
		find: func(_ box, sound crm.Connector, ctx context.Context, id string, deadline time.Time) ([]crm.Receipt, error) {
			found, err := sound.Find(ctx, id, deadline)
			if err != nil {
				return nil, nil
			}
			return found, nil
		}}},
	"declares unique_create": {class: crm.Lookup, wrong: wrong{declares: crm.UniqueCreate}, breaks: twoLeads},
}

// TestBrokenConnectors: a run of the engine finds each of them, and says it with
// the property that is broken.
func TestBrokenConnectors(t *testing.T) {
	t.Parallel()
	for name, b := range brokenConnectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.crm.Class = crmsim.Class(b.class)
			subject := sound(openBox(t, b.crm, nil), b.class)
			subject.Patience = 400 * time.Millisecond
			subject.Connect = func(url string) (crm.Connector, error) {
				config := restcrm.Config{BaseURL: url, Class: b.class, Settle: max(b.settle, time.Millisecond)}
				if b.send != nil {
					config.Sender = b.send
				}
				c, err := connect(config)
				w := b.wrong
				w.Connector, w.box = c, subject.Sandbox.(box)
				return w, err
			}
			counts := b.class
			if b.wrong.declares != "" {
				counts = b.wrong.declares
			}
			began := time.Now()
			f, runs := hunt(t, subject, counts, 1, time.Minute)
			if f == nil {
				t.Fatalf("%d runs, and nothing is broken", runs)
			}
			for _, p := range b.breaks {
				if f.violation.Property == p {
					t.Logf("after %d runs, %s: %v\n%s", runs, time.Since(began), &f.violation, f.story)
					return
				}
			}
			t.Errorf("after %d runs: %v, want one of %v\n%s", runs, &f.violation, b.breaks, f.story)
		})
	}
}
