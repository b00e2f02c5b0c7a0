package main

import (
	"go/ast"
	"go/constant"
	"go/token"
)

// block walks statements that stand one below the other, so that each of them can
// be left out.
func (f *finder) block(list []ast.Stmt) {
	for _, s := range list {
		f.deletion(s)
		f.stmt(s)
	}
}

// deletion leaves a statement out, where that leaves a program.
func (f *finder) deletion(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt, *ast.DeferStmt:
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || len(s.Lhs) > 1 && len(s.Rhs) == len(s.Lhs) {
			return
		}
		if id, ok := s.Lhs[0].(*ast.Ident); ok && (id.Name == "_" && len(s.Lhs) == 1 && !isCall(s.Rhs[0]) || contains(wordy, id.Name)) {
			return
		}
	case *ast.ReturnStmt:
		if s == f.last || f.endsAsIs(s) {
			return
		}
	default:
		return
	}
	id := f.add(s.Pos(), s.End(), "left out")
	f.wrap(id, s.Pos(), s.End(), "if !"+on(id)+" { ", " }")
}

func isCall(e ast.Expr) bool {
	_, ok := e.(*ast.CallExpr)
	return ok
}

func (f *finder) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		f.expr(s.X)
	case *ast.DeferStmt:
		f.call(s.Call)
	case *ast.IncDecStmt:
		f.expr(s.X)
	case *ast.AssignStmt:
		f.assign(s)
	case *ast.DeclStmt:
		f.declared(s)
	case *ast.ReturnStmt:
		f.returned(s)
	case *ast.BlockStmt:
		f.block(s.List)
	case *ast.IfStmt:
		f.stmt(s.Init)
		f.condition(s.Cond)
		f.block(s.Body.List)
		if s.Else != nil {
			f.stmt(s.Else)
		}
	case *ast.ForStmt:
		f.stmt(s.Init)
		f.condition(s.Cond)
		f.stmt(s.Post)
		f.block(s.Body.List)
	case *ast.RangeStmt:
		f.ranged(s)
	case *ast.SwitchStmt:
		f.stmt(s.Init)
		f.expr(s.Tag)
		f.cases(s.Body, s.Tag == nil)
	case *ast.TypeSwitchStmt:
		f.cases(s.Body, false)
	}
}

// assign mutates what is assigned. With several values, each of them may keep what
// was there.
func (f *finder) assign(s *ast.AssignStmt) {
	if id, ok := s.Lhs[0].(*ast.Ident); ok && len(s.Lhs) == 1 && contains(wordy, id.Name) {
		return
	}
	if len(s.Lhs) > 1 && len(s.Rhs) == len(s.Lhs) {
		for i, x := range s.Rhs {
			tv := f.info.Types[s.Lhs[i]]
			name, ok := "", false
			if tv.Type != nil {
				name, ok = f.typeName(tv.Type)
			}
			if s.Tok == token.ASSIGN && ok {
				before := string(f.text[f.offset(s.Lhs[i].Pos()):f.offset(s.Lhs[i].End())])
				id := f.add(x.Pos(), x.End(), before+" stays")
				f.wrap(id, x.Pos(), x.End(), "mutant.Keep["+name+"]("+itoa(id)+", "+before+", ", ")")
			}
			f.expr(x)
		}
		return
	}
	for _, x := range s.Lhs {
		f.expr(x)
	}
	if id, ok := s.Lhs[0].(*ast.Ident); ok && s.Tok == token.DEFINE && len(s.Lhs) == 1 && f.info.Defs[id] != nil {
		f.value(s.Rhs[0], f.info.Defs[id].Type())
		return
	}
	for _, x := range s.Rhs {
		f.place(x)
	}
}

func (f *finder) declared(s *ast.DeclStmt) {
	d, ok := s.Decl.(*ast.GenDecl)
	if !ok || d.Tok != token.VAR {
		return
	}
	for _, spec := range d.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok {
			for _, x := range v.Values {
				f.expr(x)
			}
		}
	}
}

// endsAsIs reports whether a function that goes on behind this return comes to its
// end, and returns the same nothing there.
func (f *finder) endsAsIs(s *ast.ReturnStmt) bool {
	_, returns := f.last.(*ast.ReturnStmt)
	if f.last == nil || returns || s.Pos() < f.last.Pos() {
		return false
	}
	for _, x := range s.Results {
		if !f.nothing(x) {
			return false
		}
	}
	return true
}

// nothing reports whether an expression is its type's zero value, by its looks.
func (f *finder) nothing(e ast.Expr) bool {
	tv := f.info.Types[e]
	literal, ok := e.(*ast.CompositeLit)
	switch {
	case tv.IsNil(), ok && len(literal.Elts) == 0:
		return true
	case tv.Value == nil:
		return false
	case tv.Value.Kind() == constant.Bool:
		return !constant.BoolVal(tv.Value)
	case tv.Value.Kind() == constant.String:
		return constant.StringVal(tv.Value) == ""
	default:
		return constant.Sign(tv.Value) == 0
	}
}

// returned mutates what is returned. Beside a failure or a false, a result that is
// nothing is no promise; beside an error that is made there, none is.
func (f *finder) returned(s *ast.ReturnStmt) {
	n := len(s.Results)
	if n != len(f.result) {
		for _, x := range s.Results {
			f.expr(x)
		}
		return
	}
	last := ast.Expr(nil)
	if n > 1 {
		last = s.Results[n-1]
	}
	fails := last != nil && (f.result[n-1].String() == "error" && !f.nothing(last) || isBool(f.result[n-1]) && f.nothing(last))
	for i, x := range s.Results {
		if !fails || x == last || !f.nothing(x) && !makesError(last) {
			f.value(x, f.result[i])
		}
	}
}

// ranged mutates a loop: it never begins, or it ends after its first round.
func (f *finder) ranged(s *ast.RangeStmt) {
	f.expr(s.X)
	if len(s.Body.List) > 0 {
		first, last := s.Body.List[0], s.Body.List[len(s.Body.List)-1]
		id := f.add(s.Pos(), s.Body.Lbrace, "never")
		f.wrap(id, first.Pos(), first.Pos(), "if "+on(id)+" { break }; ", "")
		if _, ends := last.(*ast.ReturnStmt); !ends && !continues(s.Body) {
			id := f.add(s.Pos(), s.Body.Lbrace, "once")
			f.wrap(id, last.End(), last.End(), "", "; if "+on(id)+" { break }")
		}
	}
	f.block(s.Body.List)
}

// continues reports whether a body may go on with its next round from its middle.
func continues(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if b, ok := n.(*ast.BranchStmt); ok && b.Tok == token.CONTINUE {
			found = true
		}
		return !found
	})
	return found
}

// cases mutates the cases of a switch: each may do nothing.
func (f *finder) cases(body *ast.BlockStmt, conditions bool) {
	for _, s := range body.List {
		c, ok := s.(*ast.CaseClause)
		if !ok {
			continue
		}
		for _, e := range c.List {
			if conditions {
				f.condition(e)
			}
		}
		if n := len(c.Body); n > 1 || n == 1 && !deletable(c.Body[0]) {
			from, to := c.Body[0].Pos(), c.Body[n-1].End()
			id := f.add(c.Pos(), c.Colon, "does nothing")
			f.wrap(id, from, to, "if !"+on(id)+" { ", " }")
		}
		f.block(c.Body)
	}
}

func deletable(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.AssignStmt, *ast.ReturnStmt, *ast.BranchStmt:
		return true
	default:
		return false
	}
}
