package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

func itoa(n int) string { return strconv.Itoa(n) }

// condition walks what an if, a for or a case depends on, and mutates it as a
// whole.
func (f *finder) condition(e ast.Expr) {
	if e == nil {
		return
	}
	e = ast.Unparen(e)
	yes := f.add(e.Pos(), e.End(), "true")
	f.wrap(yes, e.Pos(), e.End(), "("+on(yes)+" || (", "))")
	no := f.add(e.Pos(), e.End(), "false")
	f.wrap(no, e.Pos(), e.End(), "(!"+on(no)+" && (", "))")
	f.skip[e] = true
	f.expr(e)
}

// expr walks an expression and mutates what is in it.
func (f *finder) expr(e ast.Expr) {
	if e == nil || isText(f, e) || makesError(e) {
		return
	}
	tv := f.info.Types[e]
	if tv.IsType() || tv.Value != nil {
		return
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		f.expr(e.X)
	case *ast.BinaryExpr:
		f.binary(e)
	case *ast.UnaryExpr:
		f.expr(e.X)
	case *ast.CallExpr:
		f.call(e)
	case *ast.CompositeLit:
		f.composite(e)
	case *ast.FuncLit:
		f.in(e.Type, e.Body)
	case *ast.SelectorExpr:
		f.expr(e.X)
	case *ast.StarExpr:
		f.expr(e.X)
	case *ast.TypeAssertExpr:
		f.expr(e.X)
	case *ast.IndexExpr:
		f.expr(e.X)
		f.place(e.Index)
	case *ast.SliceExpr:
		f.expr(e.X)
		f.place(e.Low)
		f.place(e.High)
	}
}

// place walks an index or a bound of a slice.
func (f *finder) place(e ast.Expr) {
	if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.INT {
		f.number(e, f.info.Types[e])
		return
	}
	f.expr(e)
}

var compared = map[token.Token][2]string{
	token.LSS: {"Less", "<="}, token.LEQ: {"AtMost", "<"}, token.GTR: {"More", ">="}, token.GEQ: {"AtLeast", ">"},
}

var calculated = map[token.Token][2]string{
	token.ADD: {"Sum", "-"}, token.SUB: {"Difference", "+"}, token.MUL: {"Product", "/"}, token.QUO: {"Quotient", "*"},
	token.AND: {"Common", "|"}, token.OR: {"Either", "&"},
}

func (f *finder) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND, token.LOR:
		f.logic(e)
		return
	case token.EQL, token.NEQ:
		if !f.skip[e] {
			id := f.add(e.Pos(), e.End(), map[token.Token]string{token.EQL: "!=", token.NEQ: "=="}[e.Op])
			f.wrap(id, e.Pos(), e.End(), "((", ") != "+on(id)+")")
		}
	}
	t := f.info.Types[e.X].Type
	if helper, ok := compared[e.Op]; ok {
		f.operator(e, helper)
	} else if helper, ok := calculated[e.Op]; ok && !isString(t) {
		f.operator(e, helper)
	}
	if e.Op == token.ADD && isString(t) {
		for _, x := range []ast.Expr{e.X, e.Y} {
			if _, nested := x.(*ast.BinaryExpr); !nested {
				f.value(x, f.info.Types[x].Type)
			} else {
				f.expr(x)
			}
		}
		return
	}
	f.operand(e.X, e)
	f.operand(e.Y, e)
}

// operand walks one side of a binary expression. Numbers that are compared are
// left alone: the other comparison is as good.
func (f *finder) operand(x ast.Expr, of *ast.BinaryExpr) {
	_, compares := compared[of.Op]
	if of.Op == token.EQL || of.Op == token.NEQ || compares {
		f.expr(x)
		return
	}
	f.place(x)
}

func (f *finder) operator(e *ast.BinaryExpr, helper [2]string) {
	id := f.add(e.Pos(), e.End(), helper[1])
	f.wrap(id, e.Pos(), e.End(), "mutant."+helper[0]+"("+itoa(id)+", ", ")")
	f.replace(id, e.OpPos, e.OpPos+token.Pos(len(e.Op.String())), ",")
}

// logic mutates && and ||: each operand left out, and one for the other. By De
// Morgan's law, the other operator is the same one with everything negated.
func (f *finder) logic(e *ast.BinaryExpr) {
	other := map[token.Token]string{token.LAND: "||", token.LOR: "&&"}[e.Op]
	swap := f.add(e.Pos(), e.End(), other)
	f.wrap(swap, e.Pos(), e.End(), "((", ") != "+on(swap)+")")
	for _, x := range []ast.Expr{e.X, e.Y} {
		f.wrap(swap, x.Pos(), x.End(), "((", ") != "+on(swap)+")")
		inner := ast.Unparen(x)
		if b, ok := inner.(*ast.BinaryExpr); !ok || b.Op != e.Op { // a longer chain has each operand once
			id := f.add(x.Pos(), x.End(), "left out of "+e.Op.String())
			if e.Op == token.LAND {
				f.wrap(id, x.Pos(), x.End(), "("+on(id)+" || (", "))")
			} else {
				f.wrap(id, x.Pos(), x.End(), "(!"+on(id)+" && (", "))")
			}
		}
		f.expr(x)
	}
}

// composite mutates the fields of a literal, each by its zero value.
func (f *finder) composite(e *ast.CompositeLit) {
	t := f.info.Types[e].Type.Underlying()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem().Underlying()
	}
	for i, x := range e.Elts {
		kv, keyed := x.(*ast.KeyValueExpr)
		switch t := t.(type) {
		case *types.Struct:
			if !keyed {
				f.value(x, t.Field(i).Type())
			} else if key, ok := kv.Key.(*ast.Ident); ok && !contains(wordy, key.Name) {
				f.value(kv.Value, f.info.Types[kv.Value].Type)
			}
		case *types.Slice, *types.Array:
			if !keyed {
				f.expr(x)
			}
		case *types.Map:
			f.expr(kv.Key)
			f.value(kv.Value, t.Elem())
		}
	}
}

// call mutates the arguments of a call.
func (f *finder) call(e *ast.CallExpr) {
	if id, ok := e.Fun.(*ast.Ident); ok {
		if _, builtin := f.info.Uses[id].(*types.Builtin); builtin {
			f.builtin(e, id.Name)
			return
		}
	}
	if f.info.Types[e.Fun].IsType() { // a conversion
		f.expr(e.Args[0])
		return
	}
	if f.instant(e) {
		return
	}
	f.expr(e.Fun)
	signature, ok := f.info.Types[e.Fun].Type.Underlying().(*types.Signature)
	if !ok {
		return
	}
	params := signature.Params()
	for i, x := range e.Args {
		p := params.At(min(i, params.Len()-1))
		t := p.Type()
		if slice, ok := t.(*types.Slice); ok && signature.Variadic() && i >= params.Len()-1 && !e.Ellipsis.IsValid() {
			t = slice.Elem()
		}
		switch {
		case contains(wordy, p.Name()):
		case types.IsInterface(t) || t.String() == "error" || e.Ellipsis.IsValid() && i == len(e.Args)-1:
			f.expr(x)
		default:
			f.value(x, t)
		}
	}
}

// instant mutates a comparison of two instants.
func (f *finder) instant(e *ast.CallExpr) bool {
	fn, ok := e.Fun.(*ast.SelectorExpr)
	if !ok || len(e.Args) != 1 || fn.Sel.Name != "Before" && fn.Sel.Name != "After" {
		return false
	}
	if t := f.info.Types[fn.X].Type; t == nil || t.String() != "time.Time" {
		return false
	}
	id := f.add(e.Pos(), e.End(), "or at the same instant")
	f.wrap(id, e.Pos(), e.End(), "mutant."+fn.Sel.Name+"("+itoa(id)+", ", "")
	f.replace(id, fn.X.End(), e.Lparen+1, ", ")
	f.expr(fn.X)
	f.expr(e.Args[0])
	return true
}

func (f *finder) builtin(e *ast.CallExpr, name string) {
	switch name {
	case "min", "max":
		if len(e.Args) == 2 {
			helper, other := "Min", "max"
			if name == "max" {
				helper, other = "Max", "min"
			}
			id := f.add(e.Pos(), e.End(), other)
			f.replace(id, e.Fun.Pos(), e.Lparen+1, "mutant."+helper+"("+itoa(id)+", ")
		}
	case "make", "new": // lengths of what is made are no behaviour
		return
	case "append":
		f.expr(e.Args[0])
		for _, x := range e.Args[1:] {
			if e.Ellipsis.IsValid() || f.info.Types[e].Type == nil {
				f.expr(x)
			} else {
				f.value(x, f.info.Types[e].Type.Underlying().(*types.Slice).Elem())
			}
		}
		return
	}
	for _, x := range e.Args {
		f.place(x)
	}
}
