package properties_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/properties/sim"
)

var (
	propertyRow = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|")
	testNamed   = regexp.MustCompile("`([a-z/]+)/((?:Test|Fuzz)\\w+)`")
)

// TestTheCatalogueIsTheCode holds PROPERTIES.md and the suites together: what is
// judged is told, what is told exists, and no test here is left out.
func TestTheCatalogueIsTheCode(t *testing.T) {
	text, err := os.ReadFile("PROPERTIES.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range propertyRow.FindAllStringSubmatch(string(text), -1) {
		told = append(told, m[1])
	}
	var judged []string
	for _, p := range slices.Concat(sim.Properties, sim.OutsideProperties) {
		judged = append(judged, string(p))
	}
	slices.Sort(told)
	slices.Sort(judged)
	if !slices.Equal(told, judged) {
		t.Errorf("the catalogue tells\n%v\nand the simulation judges\n%v", told, judged)
	}
	ours := testsBelow(t, ".")
	named := map[string]bool{}
	for _, m := range testNamed.FindAllStringSubmatch(string(text), -1) {
		folder, name := m[1], m[2]
		if folder == "properties" {
			folder = "."
		}
		if tests, ok := ours[folder]; ok {
			named[folder+"/"+name] = true
			if !slices.Contains(tests, name) {
				t.Errorf("there is no %s in properties/%s", name, folder)
			}
			continue
		}
		if !slices.Contains(testsBelow(t, path.Join("..", folder))["."], name) {
			t.Errorf("there is no %s in %s", name, folder)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(ours)) {
		for _, name := range ours[folder] {
			if name != "TestMain" && !named[folder+"/"+name] {
				t.Errorf("properties/%s/%s is not in the catalogue", folder, name)
			}
		}
	}
}

// testsBelow are the tests of each folder below root, by the folder's path from
// there.
func testsBelow(t *testing.T, root string) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		from, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		for _, decl := range tree.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				folder := filepath.ToSlash(from)
				tests[folder] = append(tests[folder], f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
