package crmtest_test

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// Most of these tests wait more than they work. The command line overrules it.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

type sandbox struct {
	*sim.Server
	url string
}

func (s sandbox) URL() string { return s.url }

func (s sandbox) Leads(_ context.Context, operationID string) (ids []string, err error) {
	for _, e := range s.Effects() {
		if e.ExternalID == operationID {
			ids = append(ids, e.CRMID)
		}
	}
	return ids, nil
}

func newSandbox(t *testing.T, config sim.Config) sandbox {
	t.Helper()
	server, err := sim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(func() { _ = server.Close() })
	return sandbox{server, web.URL}
}

// connect makes the sound connector.
func connect(config restcrm.Config) (crm.Connector, error) {
	definition, err := restcrm.LoadShipped("crmsim")
	if err != nil {
		return nil, err
	}
	return restcrm.New(definition, config)
}

// wrong is the sound connector with a part replaced.
type wrong struct {
	crm.Connector
	create   func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error)
	find     func(sound crm.Connector, ctx context.Context, id string, deadline time.Time) ([]crm.Receipt, error)
	describe func(crm.Description) crm.Description
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
	return w.find(w.Connector, ctx, id, deadline)
}

func (w wrong) Describe() crm.Description {
	if w.describe == nil {
		return w.Connector.Describe()
	}
	return w.describe(w.Connector.Describe())
}

// failing changes the errors of creates.
func failing(change func(op crm.Operation, e *crm.Error) error) wrong {
	return wrong{create: func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error) {
		receipt, err := sound.Create(ctx, op)
		if err != nil {
			err = change(op, crm.Classify(err))
		}
		return receipt, err
	}}
}

// taking takes failures that have the text in their reason for the outcome.
func taking(text string, outcome crm.Outcome) wrong {
	return failing(func(_ crm.Operation, e *crm.Error) error {
		if strings.Contains(e.Reason, text) {
			return &crm.Error{Outcome: outcome, Reason: e.Reason}
		}
		return e
	})
}

// breakage is one way to be wrong, and what finds it.
type breakage struct {
	rule  crmtest.Rule
	found string // part of the name of a case that must turn red
	class crm.Class
	wrong wrong
	naive *naive // instead of the sound connector
}

var breakages = map[string]breakage{
	"retries": {rule: crmtest.C1, found: "create_500_html", wrong: wrong{
		create: func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error) {
			receipt, err := sound.Create(ctx, op)
			if err != nil {
				return sound.Create(ctx, op)
			}
			return receipt, nil
		}}},
	"keeps connections": {rule: crmtest.C1, found: "kept_connection", class: crm.IdempotencyKey, naive: &naive{}},
	"follows redirects": {rule: crmtest.C1, found: "create_307", naive: &naive{fresh: true, redirects: true}},
	"sends after the deadline": {rule: crmtest.C2, found: "deadline_is_over", wrong: wrong{
		create: func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error) {
			op.Deadline = time.Now().Add(5 * time.Second)
			return sound.Create(ctx, op)
		}}},
	"takes 5xx for not applied":       {rule: crmtest.C3, found: "create_503_html", wrong: taking("HTTP 5", crm.NotApplied)},
	"takes 4xx for refused":           {rule: crmtest.C3, found: "create_400_html", wrong: taking("HTTP 4", crm.Refused)},
	"takes a time-out for not sent":   {rule: crmtest.C3, found: "create_no_answer", wrong: taking("time-out", crm.NotSent)},
	"takes a reset for not sent":      {rule: crmtest.C3, found: "create_connection_reset", wrong: taking("connection", crm.NotSent)},
	"takes a key in use for applied":  {rule: crmtest.C3, found: "create_409_key_in_use", wrong: taking("in_use", crm.NotApplied)},
	"takes a refused dial for maybe":  {rule: crmtest.C3, found: "nothing_listens", wrong: taking("refused", crm.Unknown)},
	"takes 200 without id for done":   {rule: crmtest.C3, found: "create_200_html", naive: &naive{fresh: true, trusts200: true}},
	"takes a look-alike for its own":  {rule: crmtest.C3, found: "create_409_look_alike", naive: &naive{fresh: true, trustsIDs: true}},
	"gives errors without an outcome": {rule: crmtest.C3, found: "create_garbage", wrong: failing(func(_ crm.Operation, e *crm.Error) error { return fmt.Errorf("%s", e) })},
	"forgets the operation id": {rule: crmtest.C4, found: "lead_carries", wrong: wrong{
		create: func(sound crm.Connector, ctx context.Context, op crm.Operation) (crm.Receipt, error) {
			op.ID = "lead-" + op.ID
			return sound.Create(ctx, op)
		}}},
	"finds nothing when it cannot look": {rule: crmtest.C5, found: "find_503_html", wrong: wrong{
		find: func(sound crm.Connector, ctx context.Context, id string, deadline time.Time) ([]crm.Receipt, error) {
			receipts, err := sound.Find(ctx, id, deadline)
			if err != nil {
				return nil, nil
			}
			return receipts, nil
		}}},
	"takes a neighbour for its own": {rule: crmtest.C5, found: "find_neighbours", naive: &naive{fresh: true}},
	"quotes the lead": {rule: crmtest.C6, found: "create_connection_cut", wrong: failing(
		func(op crm.Operation, e *crm.Error) error {
			return &crm.Error{Outcome: e.Outcome, Reason: fmt.Sprintf("%s: %v", e.Reason, op.Fields)}
		})},
	"quotes the answer": {rule: crmtest.C6, found: "create_400_echoes", naive: &naive{fresh: true}},
	"overstates its class": {rule: crmtest.CLASS, found: "create_repeated", wrong: wrong{
		describe: func(d crm.Description) crm.Description { d.Class = crm.UniqueCreate; return d }}},
}

// TestBrokenConnector: each breakage turns the case red that is there for it.
func TestBrokenConnector(t *testing.T) {
	for name, b := range breakages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if b.class == "" {
				b.class = crm.Lookup
			}
			box := newSandbox(t, sim.Config{Class: sim.Class(b.class)})
			findings := crmtest.Check(t.Context(), crmtest.Subject{
				Connect: func(url string) (crm.Connector, error) {
					sound, err := connect(restcrm.Config{BaseURL: url, Class: b.class, Settle: time.Second})
					b := b
					b.wrong.Connector = sound
					if b.naive != nil {
						b.wrong.Connector = b.naive.at(t, url, sound.Describe())
					}
					return b.wrong, err
				},
				Sandbox: box, Answers: answers, Searches: searches,
				Patience: 2 * time.Second, Short: 50 * time.Millisecond,
			})
			red := false
			for _, f := range findings {
				red = red || f.Rule == b.rule && strings.Contains(f.Case, b.found)
			}
			if !red {
				t.Errorf("no case like %s finds a breach of %s: %v", b.found, b.rule, findings)
			}
			t.Logf("%d findings, the first: %v", len(findings), findings[:min(len(findings), 3)])
		})
	}
}

var answers = []crmtest.Answer{
	{Name: "409_key_in_use", Status: 409, Body: `{"error":{"code":"idempotency_key_in_use"}}`, Applied: true, Want: crm.Unknown},
	{Name: "409_look_alike", Status: 409, Body: `{"error":{"code":"look_alike"},"id":"L-000001"}`, Want: crm.Refused},
}

var searches = []crmtest.Search{
	{Name: "neighbours", Status: 200, Body: func(id string) string { return `{"leads":[{"id":"L-1","external_id":"` + id + `x"}]}` }},
}

// TestKeyIgnored: a CRM that accepts the idempotency key and ignores it is found
// out by the name of its class, and nothing else is said against it.
func TestKeyIgnored(t *testing.T) {
	t.Parallel()
	box := newSandbox(t, sim.Config{Class: sim.IdempotencyKey, Rates: map[sim.Fault]float64{sim.KeyIgnored: 1}})
	findings := crmtest.Check(t.Context(), crmtest.Subject{
		Connect: func(url string) (crm.Connector, error) {
			return connect(restcrm.Config{BaseURL: url, Class: crm.IdempotencyKey})
		},
		Sandbox: box, Answers: answers, Searches: searches, Short: 50 * time.Millisecond,
	})
	if len(findings) == 0 {
		t.Fatal("nothing was found")
	}
	for _, f := range findings {
		if f.Rule != crmtest.CLASS || !strings.Contains(f.Problem, "class idempotency_key promises") {
			t.Errorf("unexpected: %v", f)
		}
	}
	t.Log(findings)
}
