package restcrm

import (
	"regexp"
	"strings"
)

// template is a text with holes: "${expression}". "$${" stands for "${".
type template struct {
	node  *node
	parts []part
}

// part is a text, or a hole when it has an expression or a name of the
// environment.
type part struct {
	text        string
	hole        *expression
	environment string
}

var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// template reads a text whose holes are expressions.
func (l *loader) template(n *node, has []string) *template {
	return l.parts(n, l.text(n), func(source string) part {
		if strings.HasPrefix(source, "env:") {
			l.fail(n, "${env:…} stands only under vars, base_url and auth; put it under vars and write ${vars.name}")
		}
		return part{hole: l.expression(n, source, has, false)}
	})
}

// setting reads a text whose holes are names of the environment.
func (l *loader) setting(n *node) *template {
	return l.parts(n, l.text(n), func(source string) part {
		name, ok := strings.CutPrefix(source, "env:")
		if !ok || !environmentName.MatchString(name) {
			l.fail(n, "only ${env:NAME} can stand here; an expression cannot")
		}
		return part{environment: name}
	})
}

func (l *loader) parts(n *node, text string, hole func(source string) part) *template {
	t := &template{node: n}
	literal := ""
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			t.parts = append(t.parts, part{text: literal + text})
			return t
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			literal, text = literal+escaped+"${", after
			continue
		}
		end := holeEnd(after)
		if end < 0 {
			l.fail(n, "a hole ${ has no end; close it with }, or write $${ for the characters themselves")
			return t
		}
		t.parts = append(t.parts, part{text: literal + before}, hole(strings.TrimSpace(after[:end])))
		literal, text = "", after[end+1:]
	}
}

// holeEnd is where the hole's brace is closed, past braces and texts within the
// expression; -1 when it is not.
func holeEnd(s string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case quote != 0 && b == '\\':
			i++
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'' || b == '`':
			quote = b
		case b == '{':
			depth++
		case b == '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// fill evaluates the holes. A text with a hole whose value is absent is absent.
func (t *template) fill(env map[string]any) (s string, present bool, err error) {
	var out strings.Builder
	for _, p := range t.parts {
		if p.hole == nil {
			out.WriteString(p.text)
			continue
		}
		value, err := p.hole.eval(env)
		if err != nil {
			return "", false, err
		}
		if _, ok := value.(absence); ok {
			return "", false, nil
		}
		text, err := toText(value)
		if err != nil {
			return "", false, err
		}
		out.WriteString(text)
	}
	return out.String(), true, nil
}

// eval makes a template a value of a body.
func (t *template) eval(env map[string]any) (any, error) {
	s, present, err := t.fill(env)
	if err != nil {
		return nil, err
	}
	if !present {
		return absence{}, nil
	}
	return s, nil
}

// resolve fills the names of the environment. The error names the one that is
// missing, and no value.
func (t *template) resolve(file string, secrets func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for _, p := range t.parts {
		if p.environment == "" {
			out.WriteString(p.text)
			continue
		}
		value, ok := secrets(p.environment)
		if !ok || value == "" {
			return "", mistake(file, t.node, "%s is not set in the environment; set it", p.environment)
		}
		out.WriteString(value)
	}
	return out.String(), nil
}

// hidden reports whether a part comes from the environment.
func (t *template) hidden() bool {
	for _, p := range t.parts {
		if p.environment != "" {
			return true
		}
	}
	return false
}

// constant is the text of a template without holes.
func (t *template) constant() (string, bool) {
	var out strings.Builder
	for _, p := range t.parts {
		if p.hole != nil || p.environment != "" {
			return "", false
		}
		out.WriteString(p.text)
	}
	return out.String(), true
}

// uses reports whether an expression of the template uses the name.
func (t *template) uses(name string) bool {
	for _, p := range t.parts {
		if p.hole != nil && p.hole.mentions(name) {
			return true
		}
	}
	return false
}
