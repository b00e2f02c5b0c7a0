package defects

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/properties/sim"
)

// root is the module's folder.
const root = "../.."

func load(t *testing.T) []Defect {
	t.Helper()
	list, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestEveryDefectApplies: a defect whose lines are no longer there would be a defect
// that is no longer looked for.
func TestEveryDefectApplies(t *testing.T) {
	list := load(t)
	if len(list) < 100 {
		t.Fatalf("%d defects: the search is broken", len(list))
	}
	for _, d := range list {
		files, err := d.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		for name, text := range files {
			original, err := os.ReadFile(filepath.Join(root, name))
			if err != nil || text == string(original) {
				t.Errorf("%s leaves %s as it is (%v)", d.Name, name, err)
			}
			if err := reads(name, text); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
		if d.Test != "" && !strings.Contains(tests(t, d.Package), "func "+d.Test+"(") {
			t.Errorf("%s: there is no %s in %s", d.Name, d.Test, d.Package)
		}
	}
}

// reads is the error of a changed file that could not be built, or loaded, at all.
func reads(name, text string) error {
	if path.Ext(name) == ".yaml" {
		_, err := restcrm.Load(name, []byte(text))
		return err
	}
	_, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	return err
}

// tests is the text of a package's tests.
func tests(t *testing.T, folder string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range paths {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// TestEveryPropertyHasADefect: a property that catches nothing may be one that
// cannot fail.
func TestEveryPropertyHasADefect(t *testing.T) {
	has := map[sim.Property]bool{}
	for _, d := range load(t) {
		if len(d.Properties) == 1 {
			has[d.Properties[0]] = true
		}
	}
	for _, p := range sim.Properties {
		if !has[p] {
			t.Errorf("no defect is there for %s alone", p)
		}
	}
}

// TestAStaleDefectIsAnError: it names itself and what it did not find.
func TestAStaleDefectIsAnError(t *testing.T) {
	text := "name: X\nwrong: x\nproperty: ends\n\n--- README.md\n<<<<\nthese lines are nowhere\n====\n>>>>\n"
	d, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = d.Apply(root); err == nil || !strings.Contains(err.Error(), "defect X is stale: README.md has these lines 0 times") {
		t.Errorf("got %v", err)
	}
	for _, broken := range []string{
		strings.Replace(text, "ends", "end", 1),
		strings.Replace(text, "ends", "test engine", 1),
		strings.Replace(text, "wrong: x\n", "", 1),
		strings.Replace(text, "====\n", "", 1),
		strings.Replace(text, ">>>>\n", "", 1),
		strings.Replace(text, "README.md", "README.md twice", 1),
		text[:strings.Index(text, "\n---")],
	} {
		if _, err := Parse(broken); err == nil {
			t.Errorf("this is taken for a defect:\n%s", broken)
		}
	}
}
