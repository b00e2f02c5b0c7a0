package rules

import (
	"errors"
	"strings"
)

// template is a text with expressions in it, or one expression.
type template []part

type part struct {
	text string
	expr *expression // nil for text
}

// template compiles a field's value. Without a ${ it is an expression; otherwise
// every ${…} in it is one.
func (c compiler) template(at, source string) (template, error) {
	if source == "" {
		return nil, nil // it removes a field
	}
	if !strings.Contains(source, "${") {
		x, err := c.expression(at, source, anyValue)
		return template{{expr: x}}, err
	}
	return c.text(at, source)
}

// text compiles a text in which every ${…} is an expression.
func (c compiler) text(at, source string) (template, error) {
	if len(source) > MaxSource {
		_, err := c.expression(at, source, anyValue)
		return nil, err
	}
	var t template
	for rest := source; rest != ""; {
		text, behind, found := strings.Cut(rest, "${")
		if text != "" {
			t = append(t, part{text: text})
		}
		if !found {
			break
		}
		end := closing(behind)
		if end < 0 {
			e := c.mistake(at, "${ without its }", "write expressions as in \"from ${user.name}\"")
			e.Line, e.Column = 1, 1
			return nil, within(source, len(source)-len(behind)-len("${"), e)
		}
		x, err := c.expression(at, behind[:end], anyValue)
		if err != nil {
			return nil, within(source, len(source)-len(behind), err)
		}
		t, rest = append(t, part{expr: x}), behind[end+1:]
	}
	return t, nil
}

// within moves an error in the expression that starts at offset to its place in the
// whole.
func within(source string, offset int, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Line > 0 {
		line, column := place(source, len([]rune(source[:offset])))
		if e.Line == 1 {
			e.Column += column - 1
		}
		e.Line += line - 1
	}
	return err
}

// closing is where the brace stands that ends an expression: the first that is
// neither in a literal nor the end of a map.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '"', '\'', '`':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' && c != '`' {
					i++
				}
			}
		}
	}
	return -1
}

func (t template) text(e *env) (string, error) {
	var b strings.Builder
	for _, p := range t {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		s, err := p.expr.text(e, anyValue)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}
