package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// Rule is one rule as its owner writes it.
type Rule struct {
	// Name is 1 to 64 of a-z 0-9 _ -, starts with a letter and stands once. It is
	// part of the rule's business keys: a rule with another name makes new leads of
	// what it was shown before.
	Name string `yaml:"name"`

	// When is the condition, an expression. Empty holds for every update.
	When string `yaml:"when"`

	// Action is CreateLead or Ignore.
	Action string `yaml:"action"`

	// BusinessKey is an expression of what two updates have in common that are one
	// lead: a text, a whole number, or nil and "" for what job.BusinessKey says.
	BusinessKey string `yaml:"business_key"`

	// Series makes messages of one person in one chat one lead that were sent within
	// it of the first of them, instead of a business key: 1 s to 24 h; 0 for none.
	Series time.Duration `yaml:"series"`

	// Fields are laid over those that a lead has by default. Each is an expression,
	// or a text with expressions in it: "from ${user.name}". An empty result removes
	// the field.
	Fields map[string]string `yaml:"fields"`
}

// The actions.
const (
	CreateLead = job.CreateLead
	Ignore     = "ignore"
)

// The limits. A plan is bounded beside the size of its update by them.
const (
	MaxRules  = 100
	MaxSource = 2000 // bytes of one expression
	MaxFields = 50   // of one rule
	MaxKey    = 200  // bytes of what BusinessKey evaluates to
	MaxSeries = 24 * time.Hour
)

// Set is a list of rules that is ready for use, by any number of goroutines.
type Set struct{ rules []rule }

type rule struct {
	name   string
	ignore bool
	when   *expression // nil when it always holds
	key    *expression // nil when it has none
	series time.Duration
	fields []field // sorted by name
}

type field struct {
	name  string
	value template
}

// New compiles the rules. source is where they stand, for the errors: each is an
// *Error that names its place.
func New(source string, list []Rule) (*Set, error) {
	if len(list) > MaxRules {
		return nil, &Error{source, "rules", 0, 0, fmt.Sprintf("%d rules", len(list)), fmt.Sprintf("give at most %d", MaxRules)}
	}
	s := &Set{}
	names := map[string]bool{}
	for i, r := range list {
		c := compiler{source: source, path: fmt.Sprintf("rules[%d]", i)}
		compiled, err := c.rule(r)
		if err != nil {
			return nil, err
		}
		if names[r.Name] {
			return nil, c.mistake("name", r.Name+" stands twice", "give every rule a name of its own: it is part of its leads' identity")
		}
		names[r.Name] = true
		s.rules = append(s.rules, compiled)
	}
	return s, nil
}

var (
	nameForm  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	fieldForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

// compiler reads one rule, or the replies.
type compiler struct {
	source, path string
	reply        bool
}

func (c compiler) mistake(part, problem, mend string) *Error {
	return &Error{Source: c.source, Path: c.path + "." + part, Problem: problem, Mend: mend}
}

func (c compiler) rule(r Rule) (compiled rule, err error) {
	if !nameForm.MatchString(r.Name) {
		return rule{}, c.mistake("name", "not a rule's name", "give 1 to 64 of a-z 0-9 _ -, the first a letter")
	}
	if r.Action != CreateLead && r.Action != Ignore {
		return rule{}, c.mistake("action", "not an action", "give "+CreateLead+" or "+Ignore)
	}
	compiled = rule{name: r.Name, ignore: r.Action == Ignore}
	if compiled.ignore && r.BusinessKey != "" {
		return rule{}, c.mistake("business_key", "a rule that ignores makes no lead", "leave it out, or give action: "+CreateLead)
	}
	if compiled.ignore && len(r.Fields) > 0 {
		return rule{}, c.mistake("fields", "a rule that ignores makes no lead", "leave them out, or give action: "+CreateLead)
	}
	switch {
	case r.Series == 0:
	case r.Series < time.Second || r.Series > MaxSeries:
		return rule{}, c.mistake("series", "not a window", "give 1s to 24h, such as 2m")
	case compiled.ignore:
		return rule{}, c.mistake("series", "a rule that ignores makes no lead", "leave it out, or give action: "+CreateLead)
	case r.BusinessKey != "":
		return rule{}, c.mistake("series", "a series has a business key of its own", "leave out series or business_key")
	}
	compiled.series = r.Series
	if r.When != "" {
		if compiled.when, err = c.expression("when", r.When, condition); err != nil {
			return rule{}, err
		}
	}
	if r.BusinessKey != "" {
		if compiled.key, err = c.expression("business_key", r.BusinessKey, value); err != nil {
			return rule{}, err
		}
	}
	if len(r.Fields) > MaxFields {
		return rule{}, c.mistake("fields", fmt.Sprintf("%d fields", len(r.Fields)), fmt.Sprintf("give at most %d", MaxFields))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		if !fieldForm.MatchString(name) {
			return rule{}, c.mistake("fields", "not a field's name", "give 1 to 64 of A-Z a-z 0-9 _, the first no digit")
		}
		t, err := c.template("fields."+name, r.Fields[name])
		if err != nil {
			return rule{}, err
		}
		compiled.fields = append(compiled.fields, field{name, t})
	}
	return compiled, nil
}
