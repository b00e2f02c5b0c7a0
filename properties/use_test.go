package properties

import (
	"go/format"
	"os"
	"strings"
	"testing"
)

// TestTheExampleInUSE: what a team is to copy is Go, formatted, and calls what there
// is.
func TestTheExampleInUSE(t *testing.T) {
	page, err := os.ReadFile("USE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```go\n")
	code, _, found := strings.Cut(rest, "```")
	if formatted, err := format.Source([]byte(code)); err != nil || !found || string(formatted) != code {
		t.Errorf("the example is not formatted Go: %v", err)
	}
	for _, name := range []string{"properties.CheckConnector(t,", "properties.CheckLog(t,", "properties.CheckRules(t,", TimeVariable} {
		if !strings.Contains(string(page), name) {
			t.Errorf("the page does not show %s", name)
		}
	}
}
