package engine

import (
	"slices"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// steps are the effects that a lead takes, in order; one without a name where the
// connector makes the lead by itself.
type steps []crm.Step

// names are those of the steps, none for a connector without.
func (s steps) names() (names []string) {
	for _, step := range s {
		if step.Name != "" {
			names = append(names, step.Name)
		}
	}
	return names
}

// named is the step, or none when the configuration was another one when a request
// was made for it. A lead is the lead, whether it was a step then or not.
func (s steps) named(name string) (crm.Connector, bool) {
	i := s.index(name)
	if i < 0 && name == job.LeadStep {
		i = s.index("")
	} else if i < 0 && name == "" {
		i = s.index(job.LeadStep)
	}
	if i < 0 {
		return nil, false
	}
	return s[i].Connector, true
}

func (s steps) index(name string) int {
	return slices.IndexFunc(s, func(step crm.Step) bool { return step.Name == name })
}

// rulesOf is what decisions about the step depend on. Of one that there is no more
// nothing is known: it cannot be repeated, and not be looked up, and its request may take
// as long as that of the slowest step. A lead that has become
// a step can be looked up, and not be repeated: what comes before it is not made.
func (e *Engine) rulesOf(step string) job.Rules {
	r := job.Rules{Policy: e.Policy}
	if c, ok := e.steps.named(step); ok {
		r.Capability = CapabilityOf(c.Describe())
		if step == "" && e.steps.index("") < 0 {
			r.Capability.Repeatable = false
		}
		return r
	}
	for _, s := range e.steps {
		r.Capability.Settle = max(r.Capability.Settle, s.Connector.Describe().Settle)
	}
	return r
}
