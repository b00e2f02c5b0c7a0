package restcrm

import (
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// stage is one effect in the CRM: what may be said of its repetition, how it is
// made, how it is looked up, and how it is removed.
type stage struct {
	node        *node
	name        string // of the step
	earlier     []string
	classes     []crm.Class // the first is the declared one
	keyValidity time.Duration
	settle      time.Duration
	create      *creation
	lookup      *search
	remove      *removal // nil: none is described
}

// stageReaders are the keys of a step, or of the top of a file that has none.
func (l *loader) stageReaders(s *stage) map[string]func(*node) {
	return map[string]func(*node){
		"class":        func(n *node) { s.classes = append([]crm.Class{l.class(n)}, s.classes...) },
		"classes":      func(n *node) { s.classes = append(s.classes, l.classes(n)...) },
		"key_validity": func(n *node) { s.keyValidity = l.duration(n) },
		"settle":       func(n *node) { s.settle = l.duration(n) },
		"create":       func(n *node) { s.create = l.creation(n) },
		"lookup":       func(n *node) { s.lookup = l.search(n) },
		"remove":       func(n *node) { s.remove = l.removal(n) },
	}
}

var stepForm = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)

// steps reads the effects that one lead takes, in their order.
func (l *loader) steps(root, n *node) {
	own := l.stageReaders(&stage{})
	for _, m := range root.members {
		if own[m.name] != nil && m.value.isSet() {
			l.fail(m.value, "with steps it belongs to each of them; move it to the step %s", crm.LeadStep)
		}
	}
	if n.kind != listKind || len(n.list) == 0 {
		l.fail(n, "give a list of steps, each with name, class and create")
	}
	if !slices.ContainsFunc(n.list, isLead) {
		l.fail(n, "no step is called %s; give that name to the one that makes the lead", crm.LeadStep)
	}
	l.earlier = []string{}
	for _, element := range n.list {
		s := &stage{node: element, earlier: slices.Clone(l.earlier)}
		readers := l.stageReaders(s)
		readers["name"] = func(n *node) {
			s.name = l.word(n, stepForm, "give the step a name of 1 to 40 of a-z, 0-9, _ and -")
			if slices.Contains(l.earlier, s.name) {
				l.fail(n, "the name stands twice; give each step its own")
			}
		}
		l.keys(element, readers)
		if s.name == "" {
			l.fail(element.at("name"), "it is missing; name the step, and the one that makes the lead: %s", crm.LeadStep)
		}
		l.checkStage(s)
		l.definition.stages = append(l.definition.stages, s)
		l.earlier = append(l.earlier, s.name)
	}
}

func isLead(step *node) bool {
	name := step.get("name")
	return name != nil && name.scalar == crm.LeadStep
}

// checkStage is for what more than one key says.
func (l *loader) checkStage(s *stage) {
	s.sortClasses()
	keyed := slices.Contains(s.classes, crm.IdempotencyKey)
	switch n := s.node; {
	case l.err != nil:
	case !n.get("class").isSet():
		l.fail(n.at("class"), "it is missing; give one of %s", join(crm.Classes))
	case keyed && s.keyValidity == 0:
		l.fail(n.at("key_validity"), "it is missing; give how long the CRM remembers an idempotency key, less a margin")
	case !keyed && s.keyValidity > 0:
		l.fail(n.at("key_validity"), "it belongs to class idempotency_key alone; leave it out")
	case s.create == nil:
		l.fail(n.at("create"), "it is missing; say which request makes a lead")
	case slices.Contains(s.classes, crm.Lookup) && s.lookup == nil:
		l.fail(n.at("lookup"), "it is missing; describe it, for class lookup cannot do without")
	case s.lookup != nil && s.settle == 0:
		l.fail(n.at("settle"), "it is missing; give the time after a request's deadline in which its effect can still become visible")
	default:
		l.checkCreation(s, keyed)
	}
}

// sortClasses puts the declared class first, and each of the others once.
func (s *stage) sortClasses() {
	if len(s.classes) == 0 {
		return
	}
	declared, others := s.classes[0], s.classes[1:]
	slices.SortFunc(others, func(a, b crm.Class) int {
		return slices.Index(crm.Classes, a) - slices.Index(crm.Classes, b)
	})
	others = slices.DeleteFunc(slices.Compact(others), func(c crm.Class) bool { return c == declared })
	s.classes = append([]crm.Class{declared}, others...)
}

func (l *loader) checkCreation(s *stage, keyed bool) {
	c := s.create
	if !c.request.uses("key") {
		l.fail(c.node, "the request does not say ${key}; the CRM must store it with the lead, or nothing can be found again")
	}
	if c.request.keyHeader != nil && !keyed {
		l.fail(c.node.get("key_header"), "a key header belongs to class idempotency_key alone; leave it out")
	}
	for _, class := range s.classes {
		l.checkBare(c.outcome, string(class), unprovenCreate, gateway)
		if s.lookup != nil {
			l.checkBare(s.lookup.outcome, string(class), unprovenLookup, slices.Concat(gateway, []int{http.StatusNotFound}))
		}
	}
	unique := slices.ContainsFunc(s.classes, crm.Class.Repeatable)
	for _, r := range c.outcome {
		switch {
		case r.is == exists && !unique:
			l.fail(r.node, "class %s has no unique key behind it that \"exists\" could be about; use unknown", s.classes[0])
		case r.is == exists && r.id == nil && s.lookup == nil:
			l.fail(r.node, "say where the id is, or describe a lookup")
		}
	}
}
