package properties

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/properties/sim"
)

// childVariable makes a process the child of TestFailuresAreTold.
const childVariable = "LEADONCE_PROPERTIES_CHILD"

// TestChild gives a broken part to the function that a team calls.
func TestChild(t *testing.T) {
	switch part := os.Getenv(childVariable); part {
	case "class", "connector":
		subject := sound(openBox(t, crmsim.Config{Class: crmsim.Lookup}, nil), crm.Lookup)
		sound := subject.Connect
		subject.Connect = func(url string) (crm.Connector, error) {
			c, err := sound(url)
			return wrong{Connector: c, create: taking("HTTP 500", crm.NotApplied).create}, err
		}
		counted := map[string]crm.Class{"class": crm.UniqueCreate, "connector": crm.Lookup}
		CheckConnector(t, subject, counted[part])
	case "log":
		CheckLog(t, broken("loses what it acknowledged"))
	case "rules":
		CheckRules(t, brokenRules["shares what people say"].plan())
	default:
		t.Skip("only in a child process")
	}
}

// TestFailuresAreTold: the functions fail on broken parts, and say what to do next.
func TestFailuresAreTold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts four processes")
	}
	for part, want := range map[string][]string{
		"class":     {"declares the class lookup, and unique_create is counted on"},
		"connector": {"--- FAIL: TestChild/conformance", "C3"},
		"log":       {"--- FAIL: TestChild/conformance", "--- FAIL: TestChild/engine", "Run it again:", SeedVariable + "=", "-run '^TestChild$/^engine$'"},
		"rules":     {"--- FAIL: TestChild/laws", "two-updates-two-operations", "--- SKIP: TestChild/engine"},
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v", "-test.timeout=100s")
			child.Env = append(os.Environ(), childVariable+"="+part)
			out, err := child.CombinedOutput()
			if err == nil {
				t.Error("the child passes")
			}
			for _, text := range want {
				if !strings.Contains(string(out), text) {
					t.Errorf("the child does not say %q:\n%s", text, out)
				}
			}
		})
	}
}

// TestTheDeadlineIsTranslated: what is over in the engine's time is over in real
// time, and nothing leaves.
func TestTheDeadlineIsTranslated(t *testing.T) {
	b := openBox(t, crmsim.Config{Class: crmsim.Upsert}, nil)
	w, err := openWire(sound(b, crm.Upsert).WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	c := newCarrier(w, crm.Upsert)
	connector, err := connect(restcrm.Config{BaseURL: w.url(), Class: crm.Upsert})
	if err != nil {
		t.Fatal(err)
	}
	call := sim.Call{Ctx: context.Background(), Connector: connector, Operation: crm.Operation{ID: "e-1"}}
	if p := c.Carry(call); p.Creates > 0 || crm.Classify(p.Err).Outcome != crm.NotSent {
		t.Errorf("with the deadline over, %d creates left: %v", p.Creates, p.Err)
	}
	call.Left = w.subject.Patience
	if p := c.Carry(call); p.Creates != 1 || p.Err != nil {
		t.Errorf("with time left, %d creates left: %v", p.Creates, p.Err)
	}
	if leads, err := c.Leads(call.Operation.ID); len(leads) != 1 || err != nil {
		t.Errorf("the sandbox has %v (%v)", leads, err)
	}
}
