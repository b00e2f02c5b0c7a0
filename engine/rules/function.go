package rules

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
)

// The limits on what an expression looks at. Telegram's texts have up to 4,096
// characters, and the longest of its lists about a hundred elements.
const (
	maxMatched = 64 << 10 // bytes of a text for matches
	maxList    = 256      // elements
)

// functions are ours: nil is an empty text and an empty list to them. Those whose
// name begins with _ are put in by the guard.
func functions() []expr.Option {
	return []expr.Option{
		expr.Function("lower", onText(strings.ToLower), new(func(string) string)),
		expr.Function("upper", onText(strings.ToUpper), new(func(string) string)),
		expr.Function("trim", onText(strings.TrimSpace), new(func(string) string)),
		expr.Function("string", toText, new(func(any) string)),
		expr.Function("len", length, new(func(any) int)),
		expr.Function("split", split, new(func(string, string) []string)),
		expr.Function("_member", member, new(func(any, any) any)),
		expr.Function("_true", isTrue, new(func(any) bool)),
		expr.Function("_list", shortList, new(func(any) any)),
		expr.Function("_short", shortText, new(func(any) any)),
	}
}

func onText(f func(string) string) func(...any) (any, error) {
	return func(args ...any) (any, error) {
		s, err := text(args[0])
		return f(s), err
	}
}

func text(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s is no text", typeName(v))
	}
	return s, nil
}

// typeName is what stands where another thing is wanted.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int, int64, float64:
		return "a number"
	case []any, []string:
		return "a list"
	default:
		return "a group of members"
	}
}

func toText(args ...any) (any, error) {
	s, ok := textOf(args[0])
	if !ok {
		return nil, fmt.Errorf("%s has no text", typeName(args[0]))
	}
	return s, nil
}

// length is in characters, elements or members.
func length(args ...any) (any, error) {
	switch v := args[0].(type) {
	case nil:
		return 0, nil
	case string:
		return utf8.RuneCountInString(v), nil
	case []string:
		return len(v), nil
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	default:
		return nil, fmt.Errorf("%s has no length", typeName(v))
	}
}

func split(args ...any) (any, error) {
	s, err1 := text(args[0])
	separator, err2 := text(args[1])
	if err1 != nil || err2 != nil || separator == "" {
		return nil, errors.New("split wants two texts, the second not empty")
	}
	if s == "" {
		return []string{}, nil
	}
	return strings.SplitN(s, separator, maxList), nil
}

// member is the element of a list, from its end when the index is negative, or the
// member of an object; nil when there is none.
func member(args ...any) (any, error) {
	switch of := args[0].(type) {
	case map[string]any:
		name, _ := args[1].(string)
		return of[name], nil
	case []any:
		if i, ok := index(args[1], len(of)); ok {
			return of[i], nil
		}
	case []string:
		if i, ok := index(args[1], len(of)); ok {
			return of[i], nil
		}
	}
	return nil, nil
}

func index(v any, length int) (int, bool) {
	var i int64
	switch v := v.(type) {
	case int:
		i = int64(v)
	case int64:
		i = v
	default:
		return 0, false
	}
	if i < 0 {
		i += int64(length)
	}
	return int(i), i >= 0 && i < int64(length)
}

func isTrue(args ...any) (any, error) {
	if args[0] == nil {
		return false, nil
	}
	held, ok := args[0].(bool)
	if !ok {
		return nil, fmt.Errorf("%s is neither true nor false", typeName(args[0]))
	}
	return held, nil
}

func shortList(args ...any) (any, error) {
	n := 0
	switch v := args[0].(type) {
	case nil:
		return []any{}, nil
	case []string:
		n = len(v)
	case []any:
		n = len(v)
	default:
		return nil, fmt.Errorf("%s is no list", typeName(v))
	}
	if n > maxList {
		return nil, fmt.Errorf("a list of %d elements, at most %d are searched", n, maxList)
	}
	return args[0], nil
}

func shortText(args ...any) (any, error) {
	s, err := text(args[0])
	if err == nil && len(s) > maxMatched {
		err = fmt.Errorf("a text of %d bytes, at most %d are matched", len(s), maxMatched)
	}
	return s, err
}
