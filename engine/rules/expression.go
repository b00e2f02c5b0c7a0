package rules

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

// expression is compiled, and evaluated over the env of an update.
type expression struct {
	source  string
	program *vm.Program
}

// result is what an expression must be.
type result int

const (
	condition result = iota // true or false
	value                   // a text, a whole number or nothing
	anyValue                // a number, true or false too
)

// maxNodes is how many parts an expression may have.
const maxNodes = 500

// builtins are those of the library that keep R1 and R2; the guard refuses the others,
// which multiply sizes (join, replace, repeat, map, reduce, toJSON), have an order of
// their own (keys, groupBy) or look at the clock (now, date).
var builtins = append([]string{"trimPrefix", "trimSuffix", "int", "float", "type", "first", "last"}, searches...)

// searches are the builtins that go through a list.
var searches = []string{"any", "all", "none", "one", "count", "find", "filter"}

// expression compiles source, which stands at part of the rule.
func (c compiler) expression(part, source string, want result) (*expression, error) {
	if len(source) > MaxSource {
		return nil, c.mistake(part, fmt.Sprintf("%d bytes long", len(source)), fmt.Sprintf("give at most %d", MaxSource))
	}
	program, guard, err := compile(source, want, c.reply)
	if guard.problem != "" {
		e := c.mistake(part, guard.problem, guard.mend)
		e.Line, e.Column = place(source, guard.at)
		return nil, e
	}
	if err != nil {
		return nil, c.located(part, err)
	}
	if t := program.Node().Type(); !want.takes(t) {
		e := c.mistake(part, "it is a "+kindName(t)+", want "+want.String(), "make a text of it, as in string(chat.id)")
		e.Line, e.Column = 1, 1
		return nil, e
	}
	return &expression{source, program}, nil
}

// errPanic stands for a panic of the library.
var errPanic = errors.New("the library cannot read it")

func compile(source string, want result, reply bool) (program *vm.Program, g *guard, err error) {
	g = &guard{reply: reply}
	defer func() {
		if recover() != nil {
			program, err = nil, errPanic
		}
	}()
	options := append(functions(), expr.Env(&env{}), expr.MaxNodes(maxNodes), expr.Patch(g), expr.Patch(forgetful{}))
	if want == condition {
		options = append(options, expr.AsBool())
	}
	program, err = expr.Compile(source, options...)
	return program, g, err
}

// place is the line and column, from 1, of an offset in characters.
func place(source string, offset int) (line, column int) {
	line, column = 1, 1
	for i, r := range []rune(source) {
		if i == offset {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

func (r result) String() string {
	if r == value {
		return "a text or a whole number"
	}
	return "a text, a number, true or false"
}

// takes judges what is known of a result's type before there is one.
func (r result) takes(t reflect.Type) bool {
	if t == nil || r == condition {
		return true // the library checked it
	}
	switch t.Kind() {
	case reflect.Interface, reflect.String, reflect.Int, reflect.Int64:
		return true
	case reflect.Bool, reflect.Float64:
		return r == anyValue
	default:
		return false
	}
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Struct, reflect.Map:
		return "group of members"
	case reflect.Float64:
		return "fraction"
	default:
		return t.Kind().String()
	}
}

// holds evaluates a condition. A nil expression always holds, and a nil result
// never does.
func (x *expression) holds(e *env) (bool, error) {
	if x == nil {
		return true, nil
	}
	out, err := vm.Run(x.program, e)
	if err != nil {
		return false, err
	}
	held, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("the condition is %s", typeName(out))
	}
	return held, nil
}

// text evaluates to a text; nil is the empty one.
func (x *expression) text(e *env, want result) (string, error) {
	out, err := vm.Run(x.program, e)
	if err != nil {
		return "", err
	}
	s, ok := textOf(out)
	if t := reflect.TypeOf(out); !ok || t != nil && !want.takes(t) {
		return "", fmt.Errorf("the result is %s", typeName(out))
	}
	return s, nil
}

// textOf spells a scalar. Lists and groups of members have no text.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return "", false
		}
		return strconv.FormatFloat(v, 'g', -1, 64), true
	default:
		return "", false
	}
}
