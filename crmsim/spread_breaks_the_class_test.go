package crmsim_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/leadonce/leadonce/crmsim"
)

// TestSpreadDoublesNoLeadByItself sends one create under every fault of the spread: what a class
// cannot undo must never be doubled by the CRM's own doing.
func TestSpreadDoublesNoLeadByItself(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		for _, fault := range crmsim.Spread(class, crmsim.Create) {
			sim := newCRM(t, crmsim.Config{Class: class})
			sim.open()
			sim.create(t.Context(), "e-1", nil, fault)
			sim.awaitPending(0)
			if n := len(sim.Effects()); n > 1 {
				t.Errorf("one request under %s made %d leads", fault, n)
			}
		}
	})
}

// TestDocumentedSpreadIsTheRealOne reads the table of the package comment.
func TestDocumentedSpreadIsTheRealOne(t *testing.T) {
	classesOf := map[string][]crmsim.Class{
		"all":     crmsim.Classes(),
		"finders": {crmsim.IdempotencyKey, crmsim.Upsert, crmsim.UniqueCreate, crmsim.Lookup},
		"dedup":   {crmsim.IdempotencyKey, crmsim.Upsert, crmsim.UniqueCreate},
		"-":       {},
	}
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\t([a-z_]+) +(create find|create|find) .* (all|finders|dedup|-)$`)
	documented := map[crmsim.Fault]bool{crmsim.NoFault: true}
	for _, match := range row.FindAllStringSubmatch(string(text), -1) {
		fault := crmsim.Fault(match[1])
		documented[fault] = true
		for _, class := range crmsim.Classes() {
			for _, op := range []crmsim.Op{crmsim.Create, crmsim.Find} {
				want := slices.Contains(classesOf[match[3]], class) &&
					regexp.MustCompile(string(op)).MatchString(match[2]) && (op == crmsim.Create || class.CanFind())
				if got := slices.Contains(crmsim.Spread(class, op), fault); got != want {
					t.Errorf("%s on %s of %s: in the spread %v, documented %v", fault, op, class, got, want)
				}
			}
		}
	}
	for _, fault := range crmsim.Faults() {
		if !documented[fault] {
			t.Errorf("fault %s is not in the table", fault)
		}
	}
}
