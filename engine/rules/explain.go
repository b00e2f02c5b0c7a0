package rules

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/leadonce/leadonce/engine/job"
)

// Explanation is a plan and how it came about. It is for the owner of the rules:
// Failed may repeat what a person wrote.
type Explanation struct {
	Plan   job.Plan
	Rule   string   // the one that decided; empty for the defaults
	Index  int      // its place in the list; -1 for the defaults
	Passed []Passed // the rules before it, in order
	Failed string   // what could not be evaluated, and why
}

// Passed is a rule whose condition does not hold.
type Passed struct {
	Rule    string
	Index   int
	Because string // the part of the condition that is false
}

// Explain is Plan, and says why.
func (s *Set) Explain(key job.Key, u job.Update) Explanation {
	plan, t := s.decide(key, u)
	x := Explanation{Plan: plan, Index: -1}
	if t.index < len(s.rules) {
		x.Rule, x.Index = s.rules[t.index].name, t.index
	}
	if t.failed != nil {
		x.Failed = fmt.Sprintf("rules[%d].%s: %s", t.index, t.part, short(firstLine(t.failed)))
	}
	for i := range s.rules[:t.index] {
		if t.env != nil {
			x.Passed = append(x.Passed, Passed{s.rules[i].name, i, s.rules[i].when.whyNot(t.env)})
		}
	}
	return x
}

// whyNot is the part of a condition, of those that and joins, that is false.
func (x *expression) whyNot(e *env) string {
	tree, err := parser.Parse(x.source)
	if err != nil {
		return "its condition is false"
	}
	for _, part := range conjuncts(tree.Node) {
		source := part.String()
		program, _, err := compile(source, condition, false)
		if err != nil {
			break
		}
		if held, err := vm.Run(program, e); err == nil && held == false {
			return short(source) + " is false"
		}
	}
	return short(x.source) + " is false"
}

func conjuncts(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && (b.Operator == "and" || b.Operator == "&&") {
		return append(conjuncts(b.Left), conjuncts(b.Right)...)
	}
	return []ast.Node{n}
}
