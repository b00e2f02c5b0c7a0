package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// leadSteps are the effects that a lead takes in a stepped world, in order.
var leadSteps = [...]string{"contact", job.LeadStep, "link"}

// classOf is by which class the CRM makes a step. What links two records is put under
// their pair, whatever else the CRM promises.
func (c *simulatedCRM) classOf(place int) crm.Class {
	if leadSteps[place] == "link" {
		return crm.Upsert
	}
	return c.class
}

// stepOperation is the key of a step by the design's words, not by the engine's code.
func stepOperation(operation, step string) string {
	if step == job.LeadStep {
		return operation
	}
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "%s\n%s", operation, step)).String()
}

// steps are what the CRM knows of an operation: of each step where a lead takes
// several.
func (c *simulatedCRM) steps(operation string) []*operated {
	if list, ok := c.stepped[operation]; ok {
		return list
	}
	list := []*operated{c.op(operation)}
	if c.w.stepped {
		list = list[:0]
		for place, step := range leadSteps {
			o := c.op(stepOperation(operation, step))
			o.of, o.step, o.place, o.class = operation, step, place, c.classOf(place)
			list = append(list, o)
		}
	}
	if c.stepped == nil {
		c.stepped = map[string][]*operated{}
	}
	c.stepped[operation] = list
	return list
}

// at is what the CRM knows of the step that the job's newest claim is for.
func (w *world) at(v *view) *operated {
	if w.stepped {
		for _, o := range w.crm.steps(v.enquiry.operation) {
			if o.step == v.state.Step {
				return o
			}
		}
	}
	return w.crm.op(v.enquiry.operation)
}

// stepped is a connector whose lead takes several steps.
type stepped struct {
	crm.Connector // that of the lead
	steps         []crm.Step
}

func (s *stepped) Steps() []crm.Step { return s.steps }

// inSteps is the connector with the judge beside each of its steps.
func (p *process) inSteps(c crm.Stepped) crm.Connector {
	s := &stepped{Connector: &witnessed{c, p.w}}
	for _, step := range c.Steps() {
		s.steps = append(s.steps, crm.Step{Name: step.Name, Connector: &witnessed{step.Connector, p.w}})
	}
	return s
}

// describeSteps is the description of the simulated CRM in which a lead takes the steps:
// the same create and lookup for each, and for each the class by which the CRM makes it.
func describeSteps(document string, class crm.Class) string {
	top, effect, _ := strings.Cut(document, "\ncreate:")
	var b strings.Builder
	for line := range strings.Lines(top) {
		if name, _, _ := strings.Cut(line, ":"); !slices.Contains([]string{"class", "classes", "key_validity", "settle"}, name) {
			b.WriteString(line)
		}
	}
	b.WriteString("\nsteps:\n")
	for place, name := range leadSteps {
		of := (&simulatedCRM{class: class}).classOf(place)
		fmt.Fprintf(&b, "  - name: %s\n    class: %s\n    classes: [idempotency_key, upsert, unique_create, lookup, none]\n", name, of)
		fmt.Fprintf(&b, "    settle: %s\n    key_validity: %s\n", settle, keyValidity)
		b.WriteString(strings.ReplaceAll("\ncreate:"+effect, "\n", "\n    ") + "\n")
	}
	return b.String()
}

// plan is what the process's rules say of an update. Those of a later life have been
// edited meanwhile: they give the lead one more field.
func (p *process) plan(key job.Key, u job.Update) job.Plan {
	plan := p.w.parts.planner(key, u)
	if plan.Effect && p.edited() {
		plan.Fields = edited(plan.Fields)
	}
	return plan
}

// edited reports whether the process's rules are not those of its first life. Rules
// and connectors from outside are left as they are.
func (p *process) edited() bool { return p.generation > 1 && p.w.parts.own }
