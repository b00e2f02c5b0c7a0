package restcrm

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Definition describes one CRM, checked and compiled. It is immutable.
type Definition struct {
	file        string
	name        string
	baseURL     *template // nil: Config must have it
	classes     []crm.Class
	keyValidity time.Duration
	settle      time.Duration
	timeout     time.Duration
	vars        map[string]*template // nil: Config must have it
	varNodes    map[string]*node
	auth        authorization
	limits      limits
	steps       []stage // one, today
}

// stage is one effect in the CRM: how it is made, and how it is looked up.
type stage struct {
	create *creation
	lookup *search
}

// Name is what the file calls its CRM.
func (d *Definition) Name() string { return d.name }

// Classes are those that the file can be used as; the first is the one it
// declares.
func (d *Definition) Classes() []crm.Class { return slices.Clone(d.classes) }

func (d *Definition) create() *creation { return d.steps[0].create }
func (d *Definition) lookup() *search   { return d.steps[0].lookup }

// loader reads a document and keeps the first mistake.
type loader struct {
	converter
	definition *Definition
}

// Load reads a description of a CRM; SHAPE.md says what it looks like. name is
// that of the file, for errors. Every expression is compiled here. The error is
// one line: the file, the line, the key, what is wrong and how to mend it; it
// repeats no value.
func Load(name string, document []byte) (*Definition, error) {
	root, err := parseDocument(name, document)
	if err != nil {
		return nil, err
	}
	l := &loader{converter{file: name}, &Definition{
		file: name, timeout: 20 * time.Second, vars: map[string]*template{}, varNodes: map[string]*node{},
		limits: limits{breakAfter: 5, breakFor: 30 * time.Second},
	}}
	l.read(root)
	if l.err == nil {
		l.check(root)
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.definition, nil
}

// read reads the top. What expressions depend on comes first, wherever it stands.
func (l *loader) read(root *node) {
	d := l.definition
	d.steps = make([]stage, 1)
	later := func(*node) {}
	first := map[string]func(*node){
		"name":         func(n *node) { d.name = l.word(n, nameForm, "give a name of a-z, 0-9 and -") },
		"base_url":     func(n *node) { d.baseURL = l.setting(n); l.checkBase(n) },
		"class":        func(n *node) { d.classes = append([]crm.Class{l.class(n)}, d.classes...) },
		"classes":      l.classes,
		"key_validity": func(n *node) { d.keyValidity = l.duration(n) },
		"settle":       func(n *node) { d.settle = l.duration(n) },
		"timeout":      func(n *node) { d.timeout = l.duration(n) },
		"vars":         func(n *node) { l.vars(n) },
		"auth":         later, "limits": l.limits, "create": later, "lookup": later,
	}
	l.keys(root, first)
	if l.err != nil {
		return
	}
	for name, read := range map[string]func(*node){
		"auth":   func(n *node) { d.auth = l.authorization(n) },
		"create": func(n *node) { d.steps[0].create = l.creation(n) },
		"lookup": func(n *node) { d.steps[0].lookup = l.search(n) },
	} {
		if n := root.get(name); n != nil && l.err == nil && (n.kind != scalarKind || n.scalar != nil) {
			read(n)
		}
	}
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

func (l *loader) word(n *node, form *regexp.Regexp, mend string) string {
	s := l.text(n)
	if l.err == nil && !form.MatchString(s) {
		l.fail(n, "%s", mend)
	}
	return s
}

func (l *loader) class(n *node) crm.Class {
	c, err := crm.ParseClass(l.text(n))
	if err != nil {
		l.fail(n, "give one of %s", join(crm.Classes))
	}
	return c
}

func join[S ~string](list []S) string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return strings.Join(out, ", ")
}

func (l *loader) classes(n *node) {
	for _, element := range n.list {
		l.definition.classes = append(l.definition.classes, l.class(element))
	}
	if len(n.list) == 0 {
		l.fail(n, "give a list of classes, or leave it out")
	}
}

var (
	varForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	secrecy = regexp.MustCompile(`(password|secret|token|api_?key|private_?key)$`)
)

func (l *loader) vars(n *node) {
	if n.kind != mappingKind {
		l.fail(n, "give a mapping of names and texts")
	}
	for _, m := range n.members {
		if !varForm.MatchString(m.name) {
			l.fail(m.value, "give the variable a name of a-z, 0-9 and _")
		}
		l.definition.varNodes[m.name] = m.value
		if m.value.kind == scalarKind && m.value.scalar == nil {
			l.definition.vars[m.name] = nil
			continue
		}
		setting := l.setting(m.value)
		l.definition.vars[m.name] = setting
		if secrecy.MatchString(m.name) {
			l.secret(setting)
		}
	}
}

// secret refuses a secret that stands in the file.
func (l *loader) secret(t *template) {
	if !t.hidden() {
		l.fail(t.node, "a secret does not belong in the file; write ${env:NAME} and set NAME in the environment")
	}
}

func (l *loader) checkBase(n *node) {
	if t := l.definition.baseURL; t != nil && !t.hidden() && l.err == nil {
		s, _ := t.constant()
		base, err := parseBase(s)
		switch {
		case err != nil:
			l.fail(n, "%s", err)
		case base.User != nil:
			l.fail(n, "a password does not belong in the file; use auth, or ${env:NAME}")
		}
	}
}

// check is for what more than one key says.
func (l *loader) check(root *node) {
	d := l.definition
	slices.SortStableFunc(d.classes[min(1, len(d.classes)):], func(a, b crm.Class) int {
		return slices.Index(crm.Classes, a) - slices.Index(crm.Classes, b)
	})
	d.classes = slices.Compact(d.classes)
	if len(d.classes) > 1 && slices.Contains(d.classes[1:], d.classes[0]) {
		first := d.classes[0]
		d.classes = append([]crm.Class{first}, slices.DeleteFunc(d.classes[1:], func(c crm.Class) bool { return c == first })...)
	}
	at := func(key string) *node {
		if n := root.get(key); n != nil {
			return n
		}
		return &node{line: root.line, key: key}
	}
	keyed := slices.Contains(d.classes, crm.IdempotencyKey)
	switch lookup := d.lookup(); {
	case d.name == "":
		l.fail(at("name"), "it is missing; give the CRM a name")
	case root.get("class") == nil:
		l.fail(at("class"), "it is missing; give one of %s", join(crm.Classes))
	case keyed != (d.keyValidity > 0):
		l.fail(at("key_validity"), "it belongs to class idempotency_key, and is needed there")
	case d.create() == nil:
		l.fail(at("create"), "it is missing; say which request makes a lead")
	case slices.Contains(d.classes, crm.Lookup) && lookup == nil:
		l.fail(at("lookup"), "it is missing; class lookup cannot do without")
	case lookup != nil && d.settle == 0:
		l.fail(at("settle"), "it is missing; give the time after a request's deadline in which its effect can still become visible")
	}
	l.checkCreation(at("create"), keyed)
}

func (l *loader) checkCreation(n *node, keyed bool) {
	d := l.definition
	if l.err != nil {
		return
	}
	c := d.create()
	if !c.request.uses("key") {
		l.fail(n, "the request does not say ${key}; the CRM must store it with the lead, or nothing can be found again")
	}
	if c.request.keyHeader != nil && !keyed {
		l.fail(n.get("key_header"), "a key header belongs to class idempotency_key alone; leave it out")
	}
	unique := slices.ContainsFunc(d.classes, crm.Class.Repeatable)
	for _, r := range c.outcome {
		switch {
		case r.is == exists && !unique:
			l.fail(r.node, "class %s has no unique key behind it that \"exists\" could be about; use unknown", d.classes[0])
		case r.is == exists && r.id == nil && d.lookup() == nil:
			l.fail(r.node, "say where the id is, or describe a lookup")
		}
	}
}
