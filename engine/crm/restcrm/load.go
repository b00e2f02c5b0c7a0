package restcrm

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// Definition describes one CRM, checked and compiled. It is immutable.
type Definition struct {
	file     string
	name     string
	baseURL  *template // nil: Config must have it
	baseNode *node
	timeout  time.Duration
	vars     map[string]*template // nil: Config must have it
	varNodes map[string]*node
	auth     authorization
	limits   limits
	stages   []*stage // in the order in which they are made
	stepped  bool     // they stand under steps
	root     *node    // what was read, for Digest
}

// Name is what the file calls its CRM.
func (d *Definition) Name() string { return d.name }

// HasURL reports whether the file says where its CRM is; if not, Config.BaseURL must.
func (d *Definition) HasURL() bool { return d.baseURL != nil }

// Classes are those that the file can be used as; the first is the one it
// declares. Of a file with steps they are those of the lead's.
func (d *Definition) Classes() []crm.Class { return slices.Clone(d.lead().classes) }

// Steps are the names of the file's steps, in order; none when it has none.
func (d *Definition) Steps() (names []string) {
	if d.stepped {
		for _, s := range d.stages {
			names = append(names, s.name)
		}
	}
	return names
}

// Vars are the names of the file's variables, in order.
func (d *Definition) Vars() []string { return slices.Sorted(maps.Keys(d.vars)) }

// lead is the stage that makes the lead itself.
func (d *Definition) lead() *stage {
	return d.stages[slices.IndexFunc(d.stages, func(s *stage) bool { return s.name == crm.LeadStep })]
}

// loader reads a document and keeps the first mistake.
type loader struct {
	converter
	definition *Definition
	earlier    []string // the steps before the one that is read; nil without steps
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
	l := &loader{converter: converter{file: name}, definition: &Definition{
		file: name, timeout: 20 * time.Second, vars: map[string]*template{}, varNodes: map[string]*node{},
		limits: limits{breakAfter: 5, breakFor: 30 * time.Second},
	}}
	l.read(root)
	if l.err != nil {
		return nil, l.err
	}
	return l.definition, nil
}

// read reads the top. What expressions depend on comes first, wherever it stands.
func (l *loader) read(root *node) {
	d := l.definition
	d.root = root
	later := func(*node) {}
	readers := map[string]func(*node){
		"name":     func(n *node) { d.name = l.word(n, nameForm, "give a name of a-z, 0-9 and -") },
		"base_url": func(n *node) { d.baseURL = l.setting(n); l.checkBase(n) },
		"timeout":  func(n *node) { d.timeout = l.duration(n) },
		"vars":     l.vars,
		"limits":   l.limits,
		"auth":     later, "steps": later,
	}
	for name := range l.stageReaders(&stage{}) {
		readers[name] = later
	}
	l.keys(root, readers)
	d.baseNode = root.at("base_url")
	if l.err == nil && d.name == "" {
		l.fail(root.at("name"), "it is missing; give the CRM a name")
	}
	if n := root.get("auth"); l.err == nil && n.isSet() {
		d.auth = l.authorization(n)
	}
	switch n := root.get("steps"); {
	case l.err != nil:
	case n.isSet():
		d.stepped = true
		l.steps(root, n)
	default:
		s := &stage{node: root, name: crm.LeadStep}
		l.some(root, l.stageReaders(s))
		l.checkStage(s)
		d.stages = []*stage{s}
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

func (l *loader) classes(n *node) (classes []crm.Class) {
	for _, element := range n.list {
		classes = append(classes, l.class(element))
	}
	if len(n.list) == 0 {
		l.fail(n, "give a list of classes, or leave it out")
	}
	return classes
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
