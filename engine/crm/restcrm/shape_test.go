package restcrm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// TestTheExampleOfTheShapeLoads and makes the lead that it describes.
func TestTheExampleOfTheShapeLoads(t *testing.T) {
	text, err := os.ReadFile("SHAPE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	document, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("SHAPE.md has no example")
	}
	s := &scripted{answers: []any{answer(201, `{"id":"A-1","external_id":"op-1"}`)}}
	c := open(t, document, restcrm.Config{Sender: s, Vars: map[string]string{"owner": "ann"}, Secrets: vendorEnvironment})
	receipt, err := c.Create(t.Context(), operation("op-1", map[string]string{"text": "Hello\nthere"}))
	if err != nil || receipt != (crm.Receipt{CRMID: "A-1"}) {
		t.Fatalf("%+v, %v", receipt, err)
	}
	if got, want := string(s.sent[0].Body), `{"external_id":"op-1","pipeline":7,"title":"Hello there"}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// TestTheStepsOfTheShape load, and make a lead that is joined to its contact.
func TestTheStepsOfTheShape(t *testing.T) {
	text, err := os.ReadFile("SHAPE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\nsteps:\n")
	steps, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("SHAPE.md has no steps")
	}
	s := &scripted{answers: []any{
		answer(200, `{"id":7,"ref":"op-1-contact"}`), answer(201, `{"id":"L-1","external_id":"op-1"}`), answer(204, ""),
	}}
	c := open(t, "name: acme\nbase_url: http://crm.example\nsteps:\n"+steps, restcrm.Config{Sender: s})
	op := operation("op-1-contact", nil)
	op.Made = map[string]string{}
	for _, step := range c.Steps() {
		receipt, err := step.Connector.Create(t.Context(), op)
		if err != nil {
			t.Fatalf("%s: %v", step.Name, err)
		}
		op.Made[step.Name], op.ID = receipt.CRMID, "op-1"
	}
	if op.Made["association"] != "L-1-7" || s.sent[2].URL.Path != "/leads/L-1/contacts/7" {
		t.Errorf("made %v", op.Made)
	}
}
