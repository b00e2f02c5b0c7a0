package restcrm

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/google/uuid"
)

// The functions that steps into an answer, and loops over it, are compiled to.
const (
	memberFunction   = "member"
	elementsFunction = "elements"
)

// maxText is the length in bytes of what a function may return.
const maxText = 1 << 20

var errTooLong = errors.New("the result is longer than 1 MiB")

// absence is the value of the name absent: the member, header or parameter that
// has it is left out.
type absence struct{}

// MarshalJSON refuses an absence that an expression put where none can be.
func (absence) MarshalJSON() ([]byte, error) { return nil, errNoText }

// functions is everything that can be called.
func functions() []expr.Option {
	options := []expr.Option{expr.DisableAllBuiltins()}
	for _, name := range allowed {
		options = append(options, expr.EnableBuiltin(name))
	}
	texts := func(name string, f func(string) (string, error)) {
		options = append(options, expr.Function(name, func(args ...any) (any, error) {
			s, err := f(args[0].(string))
			if err == nil && len(s) > maxText {
				err = errTooLong
			}
			return s, err
		}, new(func(string) string)))
	}
	texts("b64", func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil })
	texts("lower", func(s string) (string, error) { return strings.ToLower(s), nil })
	texts("upper", func(s string) (string, error) { return strings.ToUpper(s), nil })
	texts("line", func(s string) (string, error) { return strings.Join(strings.Fields(s), " "), nil })
	texts("uuid5", func(s string) (string, error) { return uuid.NewSHA1(space, []byte(s)).String(), nil })
	texts("uuid4", func(s string) (string, error) { return uuid4(s), nil })
	return append(options,
		expr.Function(memberFunction, func(args ...any) (any, error) { return step(args[0], args[1]), nil }, new(func(any, any) any)),
		expr.Function(elementsFunction, func(args ...any) (any, error) {
			if list, ok := args[0].([]any); ok {
				return list, nil
			}
			return []any{}, nil
		}, new(func(any) []any)),
		expr.Function("int", func(args ...any) (any, error) { return toInt(args[0]) }, new(func(any) int)),
		expr.Function("string", func(args ...any) (any, error) { return toText(args[0]) }, new(func(any) string)),
		expr.Function("toJSON", func(args ...any) (any, error) { return toJSON(args[0]) }, new(func(any) string)),
		expr.Function("either", func(args ...any) (any, error) {
			if args[0].(string) != "" {
				return args[0], nil
			}
			return args[1], nil
		}, new(func(string, string) string)),
		expr.Function("optional", func(args ...any) (any, error) {
			if args[0] == nil || args[0] == "" {
				return absence{}, nil
			}
			return args[0], nil
		}, new(func(any) any)),
		expr.Function("cut", func(args ...any) (any, error) { return cut(args[0].(string), args[1].(int)) }, new(func(string, int) string)),
	)
}

// space is the name space of the ids that uuid5 makes.
var space = uuid.MustParse("5f0c7b1e-3c55-5f0e-9d37-0b8ad3a0a7e1")

// uuid4 has the form of a random UUID and is derived from the text, so that a
// second try says the same one.
func uuid4(s string) string {
	sum := sha256.Sum256([]byte("leadonce uuid4\x00" + s))
	var id uuid.UUID
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// step is the member of an object or the element of a list; nil when it is not
// there, or the value is neither.
func step(of, at any) any {
	switch of := of.(type) {
	case map[string]any:
		if name, ok := at.(string); ok {
			return of[name]
		}
	case []any:
		if i, ok := at.(int); ok && i >= 0 && i < len(of) {
			return of[i]
		}
	}
	return nil
}

var errNoInt = errors.New("this is no whole number")

func toInt(v any) (int, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v), nil
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return int(n), nil
		}
	}
	return 0, errNoInt
}

var errNoText = errors.New("this has no form as a text")

// toText is the text of a scalar; lists, objects and nil have none.
func toText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	return "", errNoText
}

// toJSON is the text of a value as JSON, as some vendors want it inside of JSON.
func toJSON(v any) (string, error) {
	text, err := encode(v)
	if err == nil && len(text) > maxText {
		err = errTooLong
	}
	return string(text), err
}

// encode writes JSON in which <, > and & stay as they are.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// cut is the first characters of a text: vendors refuse a title that is longer
// than its column.
func cut(s string, characters int) (string, error) {
	n := 0
	for i := range s {
		if n == characters {
			return s[:i], nil
		}
		n++
	}
	return s, nil
}
