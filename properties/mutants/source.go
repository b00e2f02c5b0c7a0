package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// source is one file to mutate, with the types of its expressions.
type source struct {
	path    string // slashes, from the root
	text    []byte
	tree    *ast.File
	set     *token.FileSet
	info    *types.Info
	pkg     *types.Package
	imports map[string]string // path → the name that the file has for it
	edits   []edit
}

// Mutant is one small change of one file.
type Mutant struct {
	ID     int // from 1, over all files
	File   string
	Func   string
	Line   int
	Text   string // what is changed, in one line
	Change string // into what
}

// Key names the mutant by what it is and not by where it stands, so that it can be
// found again when lines move.
func (m Mutant) Key() string { return m.File + " " + m.Func + ": " + m.Text + " → " + m.Change }

// target is a package to mutate.
type target struct {
	folder string // slashes, from the root
	left   []string
}

// load reads and type-checks the targets below root. What they import comes from
// the build cache.
func load(root string, targets []target) ([]*source, error) {
	exports, err := exported(root, targets)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var all []*source
	for _, t := range targets {
		list, err := check(root, t, set, from)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// exported tells where the compiler left what each imported package exports.
func exported(root string, targets []target) (map[string]string, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, t := range targets {
		args = append(args, "./"+t.folder)
	}
	out, err := goTool(root, args...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err == io.EOF {
			return exports, nil
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
	}
}

func goTool(root string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("go %s: %w\n%s%s", args[0], err, complaints.Bytes(), out.Bytes())
	}
	return out.Bytes(), nil
}

func check(root string, t target, set *token.FileSet, from types.Importer) ([]*source, error) {
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(t.folder), "*.go"))
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	var list []*source
	var trees []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
		path := t.folder + "/" + filepath.Base(name)
		list = append(list, &source{path: path, text: text, tree: tree, set: set, info: info, imports: importsOf(tree)})
	}
	pkg, err := (&types.Config{Importer: from}).Check(t.folder, set, trees, info)
	if err != nil {
		return nil, err
	}
	kept := list[:0]
	for _, s := range list {
		s.pkg = pkg
		if !contains(t.left, filepath.Base(s.path)) {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func importsOf(tree *ast.File) map[string]string {
	names := map[string]string{}
	for _, i := range tree.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		names[path] = name
	}
	return names
}

// typeName spells the type as the file would; false when the file cannot.
func (s *source) typeName(t types.Type) (string, bool) {
	ok := true
	name := types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		name := s.imports[p.Path()]
		ok = ok && name != ""
		return name
	})
	return name, ok
}

func (s *source) offset(p token.Pos) int { return s.set.Position(p).Offset }

var spaces = regexp.MustCompile(`\s+`)

// original is the text of a node in one line, cut where it gets long.
func (s *source) original(from, to token.Pos) string {
	text := strings.TrimSpace(spaces.ReplaceAllString(string(s.text[s.offset(from):s.offset(to)]), " "))
	const most = 90
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
