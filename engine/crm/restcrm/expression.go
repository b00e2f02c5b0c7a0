package restcrm

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

const (
	maxNodes      = 200     // of one expression
	maxExpression = 4 << 10 // bytes of one expression
	maxMemory     = 1 << 16 // elements that one evaluation may make
)

// The names an expression can use, and their types. The file adds those of vars and
// steps.
var names = types.Map{
	"key":     types.String,
	"class":   types.String,
	"op":      types.TypeOf(map[string]string{}),
	"absent":  types.Any,
	"status":  types.Int,
	"headers": types.TypeOf(map[string]string{}),
	"body":    types.Any,
	"text":    types.String,
	"item":    types.Any,
	"id":      types.String,
	"session": types.Map{"status": types.Int, "headers": types.TypeOf(map[string]string{}), "body": types.Any, "text": types.String},
	"token":   types.String,
}

var (
	inRequest = []string{"key", "class", "op", "absent"}
	inStep    = append([]string{"steps"}, inRequest...)
	inSearch  = []string{"key", "class", "absent"}
	inRemoval = []string{"id", "class", "absent"}
	inSession = []string{"session"}
	inToken   = []string{"token"}
	inAnswer  = []string{"status", "headers", "body", "text"}
	inItem    = append([]string{"item", "key", "class"}, inAnswer...)
)

// expression is one that has been checked and compiled.
type expression struct {
	node    *node
	program *vm.Program
	uses    []string // names
}

// errExpression says that an expression has no value for what it was given. It
// does not say more: the library's message quotes the values.
var errExpression = errors.New("an expression has no value for this")

func (e *expression) eval(env map[string]any) (any, error) {
	machine := vm.VM{MemoryBudget: maxMemory}
	value, err := machine.Run(e.program, env)
	if err != nil {
		return nil, errExpression
	}
	return value, nil
}

// truth evaluates a condition.
func (e *expression) truth(env map[string]any) (bool, error) {
	value, err := e.eval(env)
	if err != nil {
		return false, err
	}
	b, ok := value.(bool)
	if !ok {
		return false, errExpression
	}
	return b, nil
}

// expression compiles one with the names of its place.
func (l *loader) expression(n *node, source string, has []string, condition bool) *expression {
	if len(source) > maxExpression {
		l.fail(n, "the expression has more than %d bytes; make it shorter", maxExpression)
		return nil
	}
	e := &expression{node: n}
	guard := &guard{}
	options := append(functions(),
		expr.Env(l.environment(has)), expr.MaxNodes(maxNodes), expr.Patch(guard), expr.Patch(navigation{}), expr.Patch(forgetful{}))
	if condition {
		options = append(options, expr.AsBool())
	} else {
		options = append(options, expr.AsAny())
	}
	program, err := compile(source, options)
	switch {
	case guard.problem != "":
		l.fail(n, "the expression uses %s", guard.problem)
	case guard.open > 0:
		const problem = "steps stands without the name of a step"
		l.fail(n, "%s; %s", problem, l.hint(problem, has))
	case err != nil:
		where, problem := explain(err)
		l.fail(n, "%s%s; %s", where, problem, l.hint(problem, has))
	}
	e.program, e.uses = program, guard.uses
	return e
}

// compile is the library's, guarded against its panics.
func compile(source string, options []expr.Option) (program *vm.Program, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("this is no expression")
		}
	}()
	return expr.Compile(source, options...)
}

// explain is what the library says of the source, without its drawing of it and
// without what it quotes: that can be a secret in the wrong place.
func explain(err error) (where, problem string) {
	message := err.Error()
	var located *file.Error
	if errors.As(err, &located) {
		where, message = fmt.Sprintf("column %d: ", located.Column+1), located.Message
		if located.Line > 1 {
			where = fmt.Sprintf("line %d %s", located.Line, where)
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	if strings.HasPrefix(message, "error parsing regexp: ") { // what follows quotes the pattern
		message, _, _ = strings.Cut(message, ": `")
	}
	if strings.HasPrefix(message, "unexpected token String(") {
		message = "unexpected text"
	}
	return where, literal.ReplaceAllStringFunc(message, func(l string) string {
		if len(l) <= len(`"xx"`) { // an operator
			return l
		}
		return `"…"`
	})
}

var literal = regexp.MustCompile("\"(\\\\.|[^\"\\\\])*\"|'(\\\\.|[^'\\\\])*'|`[^`]*`")

// hint says what to do about the library's problem.
func (l *loader) hint(problem string, has []string) string {
	for _, m := range []struct{ problem, mend string }{
		{"unknown name", "the names here are " + l.names(has)},
		{"has no field", "the names here are " + l.names(has)},
		{"unknown field", "the names here are " + l.names(has)},
		{"without the name of a step", "the names here are " + l.names(has)},
		{"expected bool", "make it true or false: compare with ==, in or contains"},
		{"mismatched type", "make both of one type, as with int(…) or string(…)"},
		{"exceeds maximum", "make it shorter"},
		{"argument", "SHAPE.md lists the functions; give what they take, as with int(…) or string(…)"},
	} {
		if strings.Contains(problem, m.problem) {
			return m.mend
		}
	}
	return "mend the expression there"
}

// names lists those of a place, and those of the file in it.
func (l *loader) names(has []string) string {
	names := []string{"vars"}
	if vars := slices.Sorted(maps.Keys(l.definition.vars)); len(vars) > 0 {
		names = dotted("vars", vars)
	}
	for _, name := range has {
		if name == "steps" {
			names = append(names, dotted(name, l.earlier)...)
		} else {
			names = append(names, name)
		}
	}
	return shown(strings.Join(names, ", "))
}

func dotted(of string, names []string) (list []string) {
	for _, name := range names {
		if strings.Contains(name, "-") || name[0] <= '9' {
			list = append(list, fmt.Sprintf("%s[%q]", of, name))
		} else {
			list = append(list, of+"."+name)
		}
	}
	return list
}

func (l *loader) environment(has []string) types.Map {
	env, vars := types.Map{}, types.Map{}
	for _, name := range has {
		env[name] = names[name]
	}
	for name := range l.definition.vars {
		vars[name] = types.String
	}
	env["vars"] = vars
	if slices.Contains(has, "steps") {
		steps := types.Map{}
		for _, name := range l.earlier {
			steps[name] = types.String
		}
		env["steps"] = steps
	}
	return env
}

// guard refuses what could cost more than the size of the answer times the size
// of the expression: loops in loops, ranges, variables that double a text.
type guard struct {
	problem string
	uses    []string
	open    int // mentions of steps that do not say which one
}

// loops are the built-in functions that take a condition; none of them makes
// anything that the answer did not have.
var loops = []string{"all", "any", "none", "one", "find", "filter", "count"}

// allowed are the library's functions that stay: their cost is that of reading
// their arguments.
var allowed = append([]string{"len", "type", "abs", "trim", "first", "last", "keys", "split"}, loops...)

func (g *guard) refuse(what string) {
	if g.problem == "" {
		g.problem = what
	}
}

// Visit sees every node, the inner ones first.
func (g *guard) Visit(n *ast.Node) {
	switch n := (*n).(type) {
	case *ast.IdentifierNode:
		if !slices.Contains(g.uses, n.Value) {
			g.uses = append(g.uses, n.Value)
		}
		switch n.Value {
		case "$env":
			g.refuse("$env; write the name alone")
		case "steps":
			g.open++
		}
	case *ast.MemberNode:
		of, named := n.Node.(*ast.IdentifierNode)
		if _, constant := n.Property.(*ast.StringNode); named && constant && of.Value == "steps" {
			g.open--
		}
	case *ast.BinaryNode:
		_, constant := n.Right.(*ast.StringNode)
		switch {
		case n.Operator == "..", n.Operator == "**", n.Operator == "^":
			g.refuse("the operator " + n.Operator + "; leave it out")
		case n.Operator == "matches" && !constant:
			g.refuse("a pattern that is not written out; put it in quotes")
		}
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		g.refuse("a variable; write the value where it is needed")
	case *ast.BuiltinNode:
		if !slices.Contains(allowed, n.Name) {
			g.refuse("the function " + n.Name + ", which is not there; leave it out")
		}
	case *ast.PredicateNode:
		ast.Walk(&n.Node, insideLoop{g})
	}
}

// insideLoop sees what is evaluated for every element.
type insideLoop struct{ guard *guard }

func (i insideLoop) Visit(n *ast.Node) {
	switch n := (*n).(type) {
	case *ast.BuiltinNode:
		i.guard.refuse("a function inside of " + strings.Join(loops, ", ") + "; compare fields there, and nothing else")
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); !ok || callee.Value != memberFunction {
			i.guard.refuse("a function inside of " + strings.Join(loops, ", ") + "; compare fields there, and nothing else")
		}
	case *ast.BinaryNode:
		_, constant := n.Right.(*ast.StringNode)
		switch n.Operator {
		case "==", "!=", "and", "&&", "or", "||", "in", "<", ">", "<=", ">=", "??":
		case "contains", "startsWith", "endsWith", "matches":
			if !constant {
				i.guard.refuse("a text to look for that is not written out, inside of a loop; put it in quotes")
			}
		default:
			i.guard.refuse("the operator " + n.Operator + " inside of a loop; compare fields there, and nothing else")
		}
	}
}

// navigation makes a step into an answer total: what is not there is nil, so
// that body.error.code can be asked of every answer.
type navigation struct{}

func (navigation) Visit(n *ast.Node) {
	if loop, ok := (*n).(*ast.BuiltinNode); ok && slices.Contains([]string{"any", "one", "find", "filter", "count"}, loop.Name) {
		// What is no list has no element; of all and none that would be a proof.
		over := &ast.CallNode{Callee: &ast.IdentifierNode{Value: elementsFunction}, Arguments: []ast.Node{loop.Arguments[0]}}
		loop.Arguments[0] = over
		return
	}
	step, ok := (*n).(*ast.MemberNode)
	if !ok || step.Method {
		return
	}
	if root, ok := step.Node.(*ast.IdentifierNode); ok && slices.Contains([]string{"vars", "steps", "op", "headers", "session"}, root.Value) {
		return
	}
	if inner, ok := step.Node.(*ast.MemberNode); ok && isSessionHeaders(inner) {
		return
	}
	ast.Patch(n, &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: memberFunction},
		Arguments: []ast.Node{step.Node, step.Property},
	})
}

func isSessionHeaders(n *ast.MemberNode) bool {
	root, ok := n.Node.(*ast.IdentifierNode)
	property, named := n.Property.(*ast.StringNode)
	return ok && named && root.Value == "session" && property.Value == "headers"
}

// forgetful makes the library check the arguments of every call. It checks an
// expression several times, and passes over a call that has a type from an earlier
// time: a mistake in a call that is an argument of it would be forgotten. Being
// repeatable, this is the last visitor before the check that counts.
type forgetful struct{}

func (forgetful) Visit(n *ast.Node) {
	if call, ok := (*n).(*ast.CallNode); ok {
		untyped := ast.NilNode{}
		call.SetNature(*untyped.Nature())
	}
}

// Reset and ShouldRepeat make it repeatable.
func (forgetful) Reset()             {}
func (forgetful) ShouldRepeat() bool { return false }
