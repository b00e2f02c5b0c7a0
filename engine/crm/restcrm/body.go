package restcrm

import "slices"

// value is a piece of a body: it is built as a value and encoded as a whole, so
// that nothing of a lead can end its string.
type value interface {
	eval(env map[string]any) (any, error)
	uses(name string) bool
}

type constant struct{ value any }

func (c constant) eval(map[string]any) (any, error) { return c.value, nil }
func (constant) uses(string) bool                   { return false }

func (e *expression) mentions(name string) bool { return slices.Contains(e.uses, name) }

// typed is {$: expression}: whatever the expression gives.
type typed struct{ *expression }

func (t typed) uses(name string) bool { return t.mentions(name) }

type list []value

func (l list) eval(env map[string]any) (any, error) {
	out := make([]any, 0, len(l))
	for _, element := range l {
		v, err := element.eval(env)
		if err != nil {
			return nil, err
		}
		if _, ok := v.(absence); !ok {
			out = append(out, v)
		}
	}
	return out, nil
}

func (l list) uses(name string) bool {
	return slices.ContainsFunc(l, func(v value) bool { return v.uses(name) })
}

type object []field

type field struct {
	name  string
	value value
}

func (o object) eval(env map[string]any) (any, error) {
	out := make(map[string]any, len(o))
	for _, f := range o {
		v, err := f.value.eval(env)
		if err != nil {
			return nil, err
		}
		if _, ok := v.(absence); !ok {
			out[f.name] = v
		}
	}
	return out, nil
}

func (o object) uses(name string) bool {
	return slices.ContainsFunc(o, func(f field) bool { return f.value.uses(name) })
}

// value reads a piece of a body.
func (l *loader) value(n *node, has []string) value {
	switch n.kind {
	case listKind:
		out := list{}
		for _, element := range n.list {
			out = append(out, l.value(element, has))
		}
		return out
	case mappingKind:
		if source := n.get("$"); source != nil {
			if len(n.members) != 1 {
				l.fail(n, "{$: expression} stands alone; put the other keys beside it, not in it")
			}
			return typed{l.expression(source, l.text(source), has, false)}
		}
		out := object{}
		for _, m := range n.members {
			out = append(out, field{m.name, l.value(m.value, has)})
		}
		return out
	}
	if _, ok := n.scalar.(string); ok {
		return l.template(n, has)
	}
	return constant{n.scalar}
}
