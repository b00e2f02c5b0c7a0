package restcrm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// stepped is a description of a contact, a lead and what joins them.
const stepped = `name: acme
base_url: https://crm.example
vars: {token: '${env:TOKEN}'}
auth: {type: header, value: '${vars.token}'}
steps:
  - name: contact
    class: upsert
    create:
      method: PUT
      path: /contacts/${key}
      body: {name: '${op.name}'}
      outcome: [{when: status == 200, is: created, id: body.id}]
  - name: lead
    class: lookup
    classes: [unique_create, none]
    settle: 30s
    create:
      path: /leads
      body: {ref: '${key}', contact: {$: int(steps.contact)}}
      outcome: [{when: status == 201, is: created, id: body.id}, {when: status == 409, is: unknown}]
    lookup:
      path: /leads
      query: {ref: '${key}'}
      outcome: [{when: status == 200, is: found}]
      items: body
      match: item.ref == key
      item_id: item.id
  - name: association
    class: idempotency_key
    key_validity: 1h
    create:
      path: /leads/${steps.lead}/contacts/${steps["contact"]}
      key_header: Idempotency-Key
      outcome: [{when: status == 204, is: created, id: 'steps.lead + "-" + steps.contact'}]
`

func withToken(string) (string, bool) { return secret, true }

// connectors are those of the steps, by name.
func connectors(t testing.TB, c *restcrm.Connector) map[string]crm.Connector {
	t.Helper()
	all := map[string]crm.Connector{}
	for _, s := range c.Steps() {
		all[s.Name] = s.Connector
	}
	return all
}

// TestStepsAreDescribedOneByOne: what the configuration overrules is the lead's.
func TestStepsAreDescribedOneByOne(t *testing.T) {
	c := open(t, stepped, restcrm.Config{Secrets: withToken, Class: crm.UniqueCreate, Settle: time.Minute, KeyValidity: 2 * time.Hour})
	lead := crm.Description{Name: "acme/lead", Class: crm.UniqueCreate, CanFind: true, Settle: time.Minute}
	want := []crm.Description{
		{Name: "acme/contact", Class: crm.Upsert},
		lead,
		{Name: "acme/association", Class: crm.IdempotencyKey, KeyValidity: time.Hour},
	}
	for i, s := range c.Steps() {
		if s.Connector.Describe() != want[i] || s.Name != strings.TrimPrefix(want[i].Name, "acme/") {
			t.Errorf("%s is %+v, want %+v", s.Name, s.Connector.Describe(), want[i])
		}
	}
	if c.Describe() != lead || len(c.Steps()) != len(want) {
		t.Errorf("%d steps, the lead is %+v", len(c.Steps()), c.Describe())
	}
	if plain := open(t, small, restcrm.Config{}); plain.Steps() != nil {
		t.Errorf("a file without steps has %v", plain.Steps())
	}
	if classes := load(t, stepped).Classes(); len(classes) != 3 || classes[0] != crm.Lookup {
		t.Errorf("the classes of the lead are %v", classes)
	}
	if _, err := restcrm.New(load(t, stepped), restcrm.Config{Secrets: withToken, Class: crm.Upsert}); err == nil {
		t.Error("the lead has no class upsert, and may be used as that")
	}
}

// TestAStepUsesWhatEarlierOnesMade, in its request and in what it reads.
func TestAStepUsesWhatEarlierOnesMade(t *testing.T) {
	s := &scripted{answers: []any{answer(201, `{"id":"L-1"}`), answer(204, "")}}
	step := connectors(t, open(t, stepped, restcrm.Config{Secrets: withToken, Sender: s}))
	op := operation("op-1", nil)
	op.Made = map[string]string{"contact": "70", "lead": "L/1", "other": "x"}
	if r, err := step["lead"].Create(t.Context(), op); err != nil || r.CRMID != "L-1" {
		t.Fatalf("%+v, %v", r, err)
	}
	if got, want := string(s.sent[0].Body), `{"contact":70,"ref":"op-1"}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if r, err := step["association"].Create(t.Context(), op); err != nil || r.CRMID != "L/1-70" {
		t.Fatalf("%+v, %v", r, err)
	}
	if got, want := s.sent[1].URL.EscapedPath(), "/leads/L%2F1/contacts/70"; got != want || s.sent[1].Header.Get("Idempotency-Key") != "op-1" {
		t.Errorf("sent to %s, want %s", got, want)
	}
}

// TestAStepIsNotMadeBeforeThoseBeforeIt: nothing leaves.
func TestAStepIsNotMadeBeforeThoseBeforeIt(t *testing.T) {
	for _, made := range []map[string]string{nil, {"lead": "L-1"}, {"contact": ""}} {
		s := &scripted{answers: []any{done}}
		op := operation("op-1", nil)
		op.Made = made
		_, err := open(t, stepped, restcrm.Config{Secrets: withToken, Sender: s}).Create(t.Context(), op)
		wantOutcome(t, err, crm.Refused, "the step contact comes before and has made nothing")
		if s.count() != 0 {
			t.Errorf("%v: a request left", made)
		}
	}
}

// TestStepsShareTheAccount: the pause that one was asked for is obeyed by all.
func TestStepsShareTheAccount(t *testing.T) {
	document := strings.Replace(stepped, "is: created, id: body.id}]", "is: created, id: body.id}, {when: status == 429, is: not_applied}]", 1)
	s := &scripted{answers: []any{answer(429, "", "Retry-After", "7"), done}}
	clock := &wall{}
	step := connectors(t, open(t, document, restcrm.Config{Secrets: withToken, Sender: s, Now: clock.Now, Sleep: clock.Sleep}))
	op := crm.Operation{ID: "op-1", Deadline: clock.in(3 * time.Second), Made: map[string]string{"contact": "7"}}
	_, err := step["contact"].Create(t.Context(), op)
	if crm.Classify(err).Outcome != crm.NotApplied {
		t.Fatal(err)
	}
	_, err = step["lead"].Create(t.Context(), op)
	if e := crm.Classify(err); err == nil || e.Outcome != crm.NotSent || e.RetryAfter != 7*time.Second || s.count() != 1 {
		t.Errorf("%v after %d requests", err, s.count())
	}
}

var stepMistakes = []struct{ old, new, want string }{
	{"steps:", "class: lookup\nsteps:", "acme.yaml:5: class: with steps it belongs to each of them; move it to the step lead"},
	{"steps:", "create: {path: /x}\nsteps:", "acme.yaml:5: create: with steps it belongs"},
	{"steps:", "lookup: {path: /x}\nsteps:", "acme.yaml:5: lookup: with steps it belongs"},
	{"steps:", "settle: 1s\nsteps:", "acme.yaml:5: settle: with steps it belongs"},
	{"steps:", "key_validity: 1s\nsteps:", "acme.yaml:5: key_validity: with steps it belongs"},
	{"steps:", "classes: [none]\nsteps:", "acme.yaml:5: classes: with steps it belongs"},
	{"name: association", "name: contact", "acme.yaml:28: steps[2].name: the name stands twice"},
	{"name: lead", "name: leads", "acme.yaml:6: steps: no step is called lead"},
	{"- name: association\n    class", "- class", "acme.yaml:28: steps[2].name: it is missing"},
	{"name: association", "name: An Association", "acme.yaml:28: steps[2].name: give the step a name of 1 to 40"},
	{"name: association", "name: " + strings.Repeat("a", 41), "acme.yaml:28: steps[2].name: give the step a name of 1 to 40"},
	{"    class: upsert\n", "", "acme.yaml:6: steps[0].class: it is missing; give one of idempotency_key"},
	{"    settle: 30s\n", "", "acme.yaml:13: steps[1].settle: it is missing"},
	{"    key_validity: 1h\n", "", "acme.yaml:28: steps[2].key_validity: it is missing"},
	{"int(steps.contact)", "int(steps.association)", `acme.yaml:19: steps[1].create.body.contact.$: column 11: unknown field association; the names here are vars.token, steps.contact, key`},
	{"int(steps.contact)", "int(steps.lead)", `column 11: unknown field lead`},
	{"{$: int(steps.contact)}", "{$: 'int(steps[op.step])'}", `acme.yaml:19: steps[1].create.body.contact.$: steps stands without the name of a step; the names here are vars.token, steps.contact`},
	{"int(steps.contact)", `int($env.steps.association)`, `the expression uses $env; write the name alone`},
	{"${op.name}", "${steps.lead}", "acme.yaml:11: steps[0].create.body.name: column 7: unknown field lead"},
	{"query: {ref: '${key}'}", "query: {ref: '${key}', c: '${steps.contact}'}", "acme.yaml:23: steps[1].lookup.query.c: column 1: unknown name steps"},
	{"path: /contacts/${key}", "path: /contacts", "acme.yaml:9: steps[0].create: the request does not say ${key}"},
	{"auth: {type: header, value: '${vars.token}'}", "auth: {type: header, value: '${steps.lead}'}", "acme.yaml:4: auth.value: column 1: unknown name steps"},
	{"class: upsert", "class: upsert\n    timeout: 3s", "acme.yaml:8: steps[0].timeout: unknown key; the keys here are class, classes, create, key_validity, lookup, name, remove, settle"},
	{"class: upsert", "class: upsert\n    class: none", "acme.yaml:8"},
}

func TestMistakesInSteps(t *testing.T) {
	load(t, stepped)
	for _, c := range stepMistakes {
		checkMistake(t, stepped, c.old, c.new, c.want)
	}
	for _, list := range []string{"[]", "{}", "7", "lead"} {
		_, err := restcrm.Load("acme.yaml", []byte("name: acme\nsteps: "+list+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "acme.yaml:2: steps: give a list of steps") {
			t.Errorf("steps: %s: %v", list, err)
		}
	}
}
