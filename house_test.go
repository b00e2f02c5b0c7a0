package leadonce_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
)

const module = "github.com/leadonce/leadonce"

// arrows is the policy of imports: which of our packages and which modules a
// package may import beside the standard library. The first row whose pattern
// matches the package's folder counts. Tests may import what they like.
var arrows = []struct {
	folder  string
	ours    []string
	modules []string
}{
	{"engine/job", nil, []string{"github.com/looplab/fsm"}},
	{"engine/eventlog", nil, nil},
	{"engine/eventlog/eventlogtest", []string{"engine/eventlog"}, []string{"go.uber.org/goleak", "golang.org/x/sync"}},
	{"engine/eventlog/memory", []string{"engine/eventlog"}, nil},
	{"engine/eventlog/sqlite", []string{"engine/eventlog"}, []string{"modernc.org/sqlite", "modernc.org/libc"}},
	{"engine/eventlog/kurrentdb", []string{"engine/eventlog"}, []string{"github.com/EventStore/EventStore-Client-Go/v4", "google.golang.org/grpc", "github.com/google/uuid"}},
	{"engine/eventlog/kurrentdb/kurrentdbtest", nil,
		[]string{"github.com/EventStore/EventStore-Client-Go/v4", "google.golang.org/grpc", "github.com/google/uuid"}},
	{"engine/eventlog/kurrentdb/kurrentdbtest/**", []string{"engine/eventlog/kurrentdb/kurrentdbtest"}, nil},
	{"engine/logcopy", []string{"engine/eventlog"}, nil},
	{"engine/crm", nil, nil},
	{"engine/crm/crmtest", []string{"engine/crm"}, nil},
	{"engine/crm/httponce", []string{"engine/crm"}, []string{"golang.org/x/net/idna"}},
	{"engine/crm/restcrm", []string{"engine/crm", "engine/crm/httponce", "engine/yamlmistake"},
		[]string{"github.com/expr-lang/expr", "golang.org/x/time", "github.com/goccy/go-yaml", "github.com/google/uuid"}},
	{"engine/crm/restcrm/trytontest", nil, nil},
	{"engine/crm/*", []string{"engine/crm", "engine/crm/httponce"}, nil}, // a connector
	{"engine/yamlmistake", nil, []string{"github.com/goccy/go-yaml"}},
	{"engine/rules", []string{"engine/job"}, []string{"github.com/expr-lang/expr"}},
	{"engine", []string{"engine/job", "engine/eventlog", "engine/crm"}, nil},
	{"engine/audit", []string{"engine", "engine/job", "engine/eventlog"}, nil},
	{"projections", []string{"engine/job", "engine/eventlog"}, []string{"modernc.org/sqlite"}},
	{"crmsim", nil, []string{"github.com/go-chi/chi/v5"}},
	{"ingress", []string{"engine", "engine/**", "projections"}, []string{"github.com/go-chi/chi/v5"}},
	{"ingress/*", []string{"engine", "engine/**", "projections", "ingress/**"},
		[]string{"github.com/go-chi/chi/v5", "github.com/prometheus/client_golang", "golang.org/x/sync"}},
	{"properties/mutants", []string{"properties/mutants/mutant"}, nil},
	{"properties/mutants/mutant", nil, nil},
	{"properties", []string{"engine/job", "engine/eventlog", "engine/eventlog/eventlogtest", "engine/crm", "engine/crm/crmtest", "properties/sim"}, nil},
	{"properties/sim", []string{"engine", "engine/**", "ingress/telegram"}, []string{"github.com/google/uuid"}},
	{"properties/defects", []string{"properties/sim"}, nil},
	{"properties/defects/hunt", []string{"properties/sim"}, nil},
	{"cmd/leadonce/demo", nil, nil},
	{"cmd/leadonce", []string{"**"}, []string{"github.com/spf13/cobra", "github.com/goccy/go-yaml", "github.com/google/uuid"}},
}

// pure are packages in which time, randomness, I/O and goroutines arrive from
// outside, so that a scheduler can drive them.
var pure = []string{"engine/job", "engine/rules", "engine", "engine/eventlog", "engine/crm"}

// impure is what those packages may not import.
var impure = []string{
	"net", "net/http", "os", "os/exec", "database/sql", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "sync", "syscall",
}

// goFile is one of our files that is no test.
type goFile struct {
	path   string // slashes, from the root
	folder string
	tree   *ast.File
	set    *token.FileSet
}

func productionFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	walk(t, ".go", func(name string) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, goFile{name, path.Dir(name), tree, set})
	})
	if len(files) < 50 {
		t.Fatalf("found %d files: the walk is broken", len(files))
	}
	return files
}

// walk calls f for every file of this module with the ending.
func walk(t *testing.T, ending string, f func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if d.Name() == ".git" || d.Name() == "testdata" || nested == nil {
				return filepath.SkipDir
			}
		}
		if !d.IsDir() && strings.HasSuffix(name, ending) {
			f(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func imports(f goFile) []string {
	var list []string
	for _, i := range f.tree.Imports {
		list = append(list, strings.Trim(i.Path.Value, `"`))
	}
	return list
}

func TestArrowsPointDown(t *testing.T) {
	for _, f := range productionFiles(t) {
		for _, imported := range imports(f) {
			if complaint := judge(f.folder, imported); complaint != "" {
				t.Errorf("%s imports %s: %s", f.path, imported, complaint)
			}
			if slices.Contains(pure, f.folder) && slices.Contains(impure, imported) {
				t.Errorf("%s imports %s: what a decision needs arrives as data", f.path, imported)
			}
		}
	}
}

// judge says what is wrong with a package that imports another; nothing if it
// may.
func judge(folder, imported string) string {
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for _, row := range arrows {
		if !matches(row.folder, folder) {
			continue
		}
		if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
			if slices.ContainsFunc(row.ours, func(p string) bool { return matches(p, ours) }) {
				return ""
			}
			return "that arrow does not point down"
		}
		if slices.ContainsFunc(row.modules, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }) {
			return ""
		}
		return "not one of the modules that this package may use"
	}
	return "the package has no row in the policy of imports"
}

func matches(pattern, folder string) bool {
	if pattern == "**" {
		return true
	}
	if parent, ok := strings.CutSuffix(pattern, "/**"); ok {
		return strings.HasPrefix(folder, parent+"/")
	}
	ok, _ := path.Match(pattern, folder)
	return ok
}

func TestThePolicyOfImportsRefuses(t *testing.T) {
	for _, c := range []struct{ folder, imported string }{
		{"engine/job", module + "/engine/eventlog"},
		{"engine", "modernc.org/sqlite"},
		{"engine", module + "/projections"},
		{"projections", module + "/engine"},
		{"crmsim", module + "/engine/crm"},
		{"ingress", module + "/engine2"},
		{"nowhere", "github.com/go-chi/chi/v5"},
	} {
		if judge(c.folder, c.imported) == "" {
			t.Errorf("%s may import %s", c.folder, c.imported)
		}
	}
}

func TestOnlyTheJobPackageUsesTheStateMachine(t *testing.T) {
	users := map[string]bool{}
	for _, f := range productionFiles(t) {
		if slices.Contains(imports(f), "github.com/looplab/fsm") {
			users[f.path] = true
		}
	}
	if len(users) != 1 || !users["engine/job/machine.go"] {
		t.Errorf("looplab/fsm is imported by %v, want engine/job/machine.go alone", users)
	}
}

func TestOnlyWireNamesAdapters(t *testing.T) {
	for _, f := range productionFiles(t) {
		if f.folder != "cmd/leadonce" || f.path == "cmd/leadonce/wire.go" {
			continue
		}
		for _, imported := range imports(f) {
			for _, port := range []string{"engine/eventlog/", "engine/crm/"} {
				if strings.HasPrefix(imported, module+"/"+port) && imported != module+"/engine/crm/crmtest" { // which is no adapter
					t.Errorf("%s imports %s: adapters are named in wire.go only", f.path, imported)
				}
			}
		}
	}
}

// TestDecisionsAreSequential keeps goroutines, selects and the clock out of the
// code that decides.
func TestDecisionsAreSequential(t *testing.T) {
	for _, f := range productionFiles(t) {
		if !slices.Contains(pure, f.folder) {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			at := func(what string) { t.Errorf("%s: %s", f.set.Position(n.Pos()), what) }
			switch n := n.(type) {
			case *ast.GoStmt:
				at("a goroutine")
			case *ast.SelectStmt:
				at("a select")
			case *ast.ChanType:
				at("a channel")
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker"}, n.Sel.Name) {
					at("the clock: time." + n.Sel.Name)
				}
			}
			return true
		})
	}
}

// The limits on size.
const (
	maxFunction = 70
	maxFile     = 400
)

func TestNothingIsTooLong(t *testing.T) {
	walk(t, ".go", func(name string) {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if lines := set.File(tree.Pos()).LineCount(); lines > maxFile {
			t.Errorf("%s has %d lines, at most %d", name, lines, maxFile)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > maxFunction {
				t.Errorf("%s: %s has %d lines, at most %d", set.Position(f.Pos()), f.Name.Name, lines, maxFunction)
			}
		}
	})
}

func TestEveryPackageHasADoc(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range productionFiles(t) {
		documented[f.folder] = documented[f.folder] || f.tree.Doc != nil
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", folder)
		}
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`/(Test|Fuzz)\w+$`) // behind its package
	link     = regexp.MustCompile(`\]\(([^)#\s]+)`)
)

// rootNames are what a path in our documentation begins with.
var rootNames = []string{"engine", "projections", "ingress", "crmsim", "properties", "cmd"}

// TestPathsInMarkdownExist reads every link, and every code span that looks like
// a path of ours.
func TestPathsInMarkdownExist(t *testing.T) {
	found := 0
	walk(t, ".md", func(name string) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pathsIn(string(text)) {
			found++
			_, fromRoot := os.Stat(p)
			_, fromHere := os.Stat(filepath.Join(filepath.Dir(name), p))
			if fromRoot != nil && fromHere != nil {
				t.Errorf("%s names %s, which does not exist", name, p)
			}
		}
	})
	if found < 20 {
		t.Errorf("found %d paths: the search is broken", found)
	}
}

func pathsIn(text string) []string {
	var list []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") {
			list = append(list, m[1])
		}
	}
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		p := strings.TrimPrefix(strings.TrimSuffix(testName.ReplaceAllString(m[1], ""), "/"), "./")
		first, _, nested := strings.Cut(p, "/")
		isPath := nested && slices.Contains(rootNames, first) && !strings.ContainsAny(p, " <>*{")
		isFile := regexp.MustCompile(`^[A-Za-z_/]+\.(md|yml|sum|mod)$`).MatchString(p)
		if isPath || isFile {
			list = append(list, p)
		}
	}
	return list
}

func TestPathsInMarkdownAreFound(t *testing.T) {
	got := fmt.Sprint(pathsIn("see `engine/job`, [x](engine/none.md), `go test ./...`, `DESIGN.md` and https://example.org/a"))
	if want := "[engine/none.md engine/job DESIGN.md]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

var update = flag.Bool("update", false, "write the state diagram into the README")

// TestStateDiagramInREADME: the diagram is drawn from the transition table.
func TestStateDiagramInREADME(t *testing.T) {
	drawn, err := job.Diagram()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const fence = "```"
	before, rest, ok1 := strings.Cut(string(readme), fence+"mermaid\n")
	_, after, ok2 := strings.Cut(rest, fence)
	if !ok1 || !ok2 {
		t.Fatal("README.md has no mermaid block")
	}
	want := before + fence + "mermaid\n" + drawn + fence + after
	if want == string(readme) {
		return
	}
	if !*update {
		t.Fatal("the diagram in README.md is not the machine's; run: make diagram")
	}
	if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
