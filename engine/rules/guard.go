package rules

import (
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// guard looks at an expression before it is compiled. It refuses what could cost
// more than R2 allows, and makes what is missing in an update nil.
type guard struct {
	reply         bool   // the expression is of a Reply
	problem, mend string // the first
	at            int    // characters
	instructions  int    // of the regular expressions so far
	sums          int    // so far
}

// maxInstructions bounds the regular expressions of one expression: matching takes
// their number times the text's length.
const maxInstructions = 1000

// maxSums bounds the + of one expression: each copies the texts that it joins.
const maxSums = 20

func (g *guard) refuse(n ast.Node, problem, mend string) {
	if g.problem == "" {
		g.problem, g.mend, g.at = problem, mend, n.Location().From
	}
}

// Visit is called for every part of an expression, the inner ones first.
func (g *guard) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		g.refuse(n, "variables cannot be declared", "write the value where it is used")
	case *ast.IdentifierNode:
		switch {
		case n.Value == "$env":
			g.refuse(n, "$env cannot be used", "write the name alone")
		case n.Value == "crm_id" && !g.reply: // there is no lead yet
			g.refuse(n, "unknown name crm_id", "the names are "+Names)
		}
	case *ast.CallNode:
		if _, ok := n.Callee.(*ast.IdentifierNode); !ok {
			g.refuse(n, "only functions can be called", "the functions are "+Functions)
		}
	case *ast.BinaryNode:
		g.binary(n)
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			n.Node = truth(n.Node)
		}
	case *ast.ConditionalNode:
		n.Cond = truth(n.Cond)
	case *ast.MemberNode:
		g.member(node, n)
	case *ast.BuiltinNode:
		if !slices.Contains(builtins, n.Name) {
			g.refuse(n, "unknown name "+n.Name, "the functions are "+Functions)
		}
		if slices.Contains(searches, n.Name) {
			n.Arguments[0] = call("_list", n.Arguments[0])
		}
	case *ast.PredicateNode:
		f := finder{}
		ast.Walk(&n.Node, &f)
		if f.found {
			g.refuse(n, "one list is searched for every element of another", "search one list")
		}
		n.Node = truth(n.Node)
	}
}

func (g *guard) binary(n *ast.BinaryNode) {
	switch n.Operator {
	case "&&", "and", "||", "or":
		n.Left, n.Right = truth(n.Left), truth(n.Right)
	case "+":
		if g.sums++; g.sums > maxSums {
			g.refuse(n, fmt.Sprintf("+ stands more than %d times", maxSums), "write a text with ${…} in it, or several fields")
		}
	case "..":
		g.refuse(n, "ranges cannot be used", "compare with >= and <=")
	case "matches":
		pattern, ok := n.Right.(*ast.StringNode)
		if !ok {
			g.refuse(n.Right, "the pattern of matches is no literal", "write it in quotes")
			return
		}
		if size, err := programSize(pattern.Value); err == nil { // otherwise the checker tells
			g.instructions += size
		}
		if g.instructions > maxInstructions {
			g.refuse(n.Right, fmt.Sprintf("patterns of more than %d steps", maxInstructions), "make their repetitions shorter")
		}
		n.Left = call("_short", n.Left)
	}
}

// programSize is how many steps a regular expression takes for one character.
func programSize(pattern string) (int, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// member makes x.y and x[y] nil where x has no y, for an x that is of the update.
// The names of our own have a type, by which mistakes in them are found.
func (g *guard) member(node *ast.Node, n *ast.MemberNode) {
	switch n.Node.Type().Kind() {
	case reflect.Interface, reflect.Slice:
		ast.Patch(node, call("_member", n.Node, n.Property))
	}
}

// truth lets what is missing count as false.
func truth(n ast.Node) ast.Node {
	if n.Type().Kind() == reflect.Bool {
		return n
	}
	return call("_true", n)
}

func call(name string, arguments ...ast.Node) ast.Node {
	callee := &ast.IdentifierNode{Value: name}
	n := &ast.CallNode{Callee: callee, Arguments: arguments}
	callee.SetLocation(arguments[0].Location())
	n.SetLocation(arguments[0].Location())
	return n
}

func isPredicate(n ast.Node) bool {
	_, ok := n.(*ast.PredicateNode)
	return ok
}

// finder finds a predicate.
type finder struct{ found bool }

func (f *finder) Visit(node *ast.Node) { f.found = f.found || isPredicate(*node) }

// forgetful makes the library check the arguments of calls. It checks an expression
// several times, and what has a type then, a call with all its arguments, not again:
// a mistake in them that the first check found would be forgotten. Being repeatable,
// this is the last visitor before the check that counts.
type forgetful struct{}

func (forgetful) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.CallNode); ok {
		untyped := ast.NilNode{}
		n.SetNature(*untyped.Nature())
	}
}

// Reset and ShouldRepeat make it repeatable.
func (forgetful) Reset()             {}
func (forgetful) ShouldRepeat() bool { return false }
