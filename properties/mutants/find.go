package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// finder walks the files and notes every mutation, with the edits that make it.
type finder struct {
	*source
	found  []Mutant
	name   string            // of the function at hand
	result []types.Type      // of the same
	last   ast.Stmt          // the statement that ends its body
	keys   map[string]int    // how often a key was given
	skip   map[ast.Expr]bool // operands for which another mutation stands already
}

// find notes the mutations of the files. Numbers go through all of them.
func find(files []*source) []Mutant {
	f := finder{keys: map[string]int{}, skip: map[ast.Expr]bool{}}
	for _, s := range files {
		f.source = s
		for _, d := range s.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && !textOnly(fn) {
				f.function(fn)
			}
		}
		if len(s.edits) > 0 {
			end := s.set.File(s.tree.Pos()).Base() + s.set.File(s.tree.Pos()).Size()
			s.wrap(0, s.tree.Name.End(), token.Pos(end), "; import mutant \""+helpers+"\"", "\nvar _ = mutant.On\n")
		}
	}
	return f.found
}

// textOnly reports whether a function does nothing but make a text, or is a
// constant: declarations are no behaviour.
func textOnly(fn *ast.FuncDecl) bool {
	if fn.Recv != nil && (fn.Name.Name == "Error" || fn.Name.Name == "Unwrap") {
		return true
	}
	if len(fn.Body.List) != 1 {
		return false
	}
	r, ok := fn.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return false
	}
	_, literal := r.Results[0].(*ast.BasicLit)
	return literal
}

// add notes a mutation of the text [from,to) and returns its number.
func (f *finder) add(from, to token.Pos, change string) int {
	m := Mutant{
		ID: len(f.found) + 1, File: f.path, Func: f.name, Line: f.set.Position(from).Line,
		Text: f.original(from, to), Change: change,
	}
	key := m.Key()
	if f.keys[key]++; f.keys[key] > 1 {
		m.Change += " #" + itoa(f.keys[key])
	}
	f.found = append(f.found, m)
	return m.ID
}

func (f *finder) function(fn *ast.FuncDecl) {
	f.name = fn.Name.Name
	if fn.Recv != nil && len(fn.Recv.List) == 1 {
		t := fn.Recv.List[0].Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		if id, ok := t.(*ast.Ident); ok {
			f.name = id.Name + "." + f.name
		}
	}
	f.in(fn.Type, fn.Body)
}

// in walks the body of a function or of a literal.
func (f *finder) in(t *ast.FuncType, body *ast.BlockStmt) {
	outer := *f
	f.result, f.last = nil, nil
	if n := len(body.List); n > 0 {
		f.last = body.List[n-1]
	}
	ends := ""
	for _, field := range fieldsOf(t.Results) {
		named := max(1, len(field.Names))
		for range named {
			f.result = append(f.result, f.info.Types[field.Type].Type)
			ends += ", *new(" + string(f.text[f.offset(field.Type.Pos()):f.offset(field.Type.End())]) + ")"
		}
	}
	f.block(body.List)
	if _, returns := f.last.(*ast.ReturnStmt); !returns && ends != "" {
		// A deleted return may let the function end here.
		f.wrap(0, body.Rbrace, body.Rbrace, "return "+ends[2:]+" ", "")
	}
	f.result, f.last = outer.result, outer.last
}

func fieldsOf(l *ast.FieldList) []*ast.Field {
	if l == nil {
		return nil
	}
	return l.List
}

// value walks an expression whose value goes to something of type want, and
// mutates the value as a whole too.
func (f *finder) value(e ast.Expr, want types.Type) {
	e = ast.Unparen(e)
	tv := f.info.Types[e]
	switch {
	case isText(f, e) || tv.IsNil() || tv.IsType():
		return
	case tv.Value != nil:
		f.constant(e, tv)
		return
	case isBool(tv.Type):
		f.flip(e)
	case f.zeroable(tv.Type, want) && !f.nothing(e) && !makesEmpty(e):
		f.zero(e, tv.Type, want)
	}
	f.expr(e)
}

// makesEmpty reports whether a call makes an empty slice with room: nil is as good.
func makesEmpty(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) < 3 {
		return false
	}
	fn, ok := call.Fun.(*ast.Ident)
	return ok && fn.Name == "make"
}

// zero puts the zero value of its type in the place of e.
func (f *finder) zero(e ast.Expr, own, want types.Type) {
	t := ""
	if basic, ok := own.(*types.Basic); f.info.Types[e].Value != nil || ok && basic.Info()&types.IsUntyped != 0 || types.IsInterface(want) && !types.IsInterface(own) {
		if types.IsInterface(want) && f.info.Types[e].Value == nil {
			own = want
		}
		name, ok := f.typeName(own)
		if !ok {
			return
		}
		t = "[" + name + "]"
	}
	id := f.add(e.Pos(), e.End(), "zero")
	f.wrap(id, e.Pos(), e.End(), "mutant.Zero"+t+"("+itoa(id)+", ", ")")
}

// zeroable reports whether a zero value can be told from a crash.
func (f *finder) zeroable(own, want types.Type) bool {
	if want != nil && types.IsInterface(want) {
		return want.String() == "error"
	}
	switch t := own.Underlying().(type) {
	case *types.Basic:
		return t.Kind() != types.UnsafePointer && t.Kind() != types.UntypedNil && t.Kind() != types.Invalid
	case *types.Struct, *types.Slice, *types.Map, *types.Array:
		return true
	default:
		return false
	}
}

func (f *finder) flip(e ast.Expr) {
	f.skip[e] = true
	if not, ok := e.(*ast.UnaryExpr); ok {
		id := f.add(e.Pos(), e.End(), f.original(not.X.Pos(), not.X.End()))
		f.wrap(id, e.Pos(), e.End(), "((", ") != "+on(id)+")")
		return
	}
	id := f.add(e.Pos(), e.End(), "not")
	f.wrap(id, e.Pos(), e.End(), "((", ") != "+on(id)+")")
}

// constant mutates a constant that is used as a value.
func (f *finder) constant(e ast.Expr, tv types.TypeAndValue) {
	if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.INT {
		f.number(e, tv)
		return
	}
	switch v := tv.Value; v.Kind() {
	case constant.Bool:
		change := "true"
		if constant.BoolVal(v) {
			change = "false"
		}
		id := f.add(e.Pos(), e.End(), change)
		f.wrap(id, e.Pos(), e.End(), "(", " != "+on(id)+")")
	case constant.String:
		if constant.StringVal(v) != "" {
			f.zero(e, tv.Type, tv.Type)
		}
	default:
		if constant.Sign(v) != 0 {
			f.zero(e, tv.Type, tv.Type)
		}
	}
}

// number mutates a whole number by one, up and down.
func (f *finder) number(e ast.Expr, tv types.TypeAndValue) {
	name, ok := f.typeName(types.Default(tv.Type))
	if !ok {
		return
	}
	basic, _ := tv.Type.Underlying().(*types.Basic)
	for _, d := range []string{"+1", "-1"} {
		zero := constant.Sign(tv.Value) == 0
		if d == "-1" && (zero || basic != nil && basic.Info()&types.IsUnsigned != 0) {
			continue // an index of -1 is a crash
		}
		id := f.add(e.Pos(), e.End(), d)
		delta := strings.TrimPrefix(d, "+")
		f.wrap(id, e.Pos(), e.End(), "mutant.Shift["+name+"]("+itoa(id)+", ", ", "+delta+")")
	}
}

func isBool(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

func isString(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// wordy are the names of what takes a text for people.
var wordy = []string{"reason", "Reason", "hint", "Hint", "act", "Act", "shown"}

// isText reports whether an expression only makes a text for people.
func isText(f *finder, e ast.Expr) bool {
	pkg, name := calls(e)
	if pkg == nil {
		return false
	}
	_, imported := f.info.Uses[pkg].(*types.PkgName)
	return imported && pkg.Name == "fmt" && name == "Sprintf"
}

// makesError reports whether a call makes an error with a text: the error may be
// lost, but its words are no behaviour.
func makesError(e ast.Expr) bool {
	pkg, name := calls(e)
	return pkg != nil && (pkg.Name == "fmt" && name == "Errorf" || pkg.Name == "errors" && name == "New")
}

// calls is what a call of the form pkg.name(…) calls; pkg is nil for everything else.
func calls(e ast.Expr) (pkg *ast.Ident, name string) {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil, ""
	}
	fn, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil, ""
	}
	pkg, _ = fn.X.(*ast.Ident)
	return pkg, fn.Sel.Name
}
