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
