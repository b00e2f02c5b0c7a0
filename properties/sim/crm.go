package sim

import (
	"strconv"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// simulatedCRM keeps exactly the promise of each operation's class. It answers as the CRM of
// package crmsim at the root does, which a test holds it to.
type simulatedCRM struct {
	w       *world
	class   crm.Class
	numbers [len(leadSteps)]int    // of leads, or of what each step makes
	ops     map[string]*operated   // by operation_id, or by the key of a step
	stepped map[string][]*operated // the steps of an operation, where a lead takes several
	late    []lateEffect
	refused map[string]bool // operations that it refuses for ever
}

// operated is what the CRM knows, and the judge notes, of one operation.
type operated struct {
	id    string
	of    string // the operation_id of the lead that it belongs to
	step  string // "" where a lead takes one
	place int    // of the step
	class crm.Class
	leads []lead // or contacts, or links

	keyAt    time.Time // when the idempotency key was taken; zero when it is not
	keyLead  string    // "" while its request still runs
	requests []request
	lookups  []lookup
	refusals bool // one was refused
}

type lead struct {
	id   string
	at   time.Time
	copy bool // made by a person
}

// request is a create that reached the CRM.
type request struct {
	deadline time.Time // in true time, behind which it cannot arrive
	proof    bool      // it was answered with a proof that it had no effect
	answered bool      // with a receipt
	absent   bool      // later proven to be without effect
	at       time.Time // when it arrived
	call     int       // and behind how many calls of ports
	stream   string    // of the job that sent it
}

// lateEffect is a create that has arrived and whose effect comes later, by then
// at the latest.
type lateEffect struct {
	operation string
	by        time.Time
}

func newSimulatedCRM(w *world, p Plan) *simulatedCRM {
	return &simulatedCRM{w: w, class: p.Class, ops: make(map[string]*operated, len(p.Updates))}
}

// refuse makes the CRM refuse the operation for ever, or the plan's step of it.
func (c *simulatedCRM) refuse(operation string) {
	if c.refused == nil {
		c.refused = map[string]bool{}
	}
	list := c.steps(operation)
	c.refused[list[min(c.w.plan.Culprit, len(list)-1)].id] = true
}

func (c *simulatedCRM) op(id string) *operated {
	o := c.ops[id]
	if o == nil {
		o = &operated{id: id, of: id, class: c.class}
		c.ops[id] = o
	}
	return o
}

// reply is what the CRM says of a create by its class: a receipt, or a refusal.
type reply struct {
	status int
	id     string
	code   string
}

// reserve takes the idempotency key as the request arrives. It returns the reply
// when the key settles it.
func (c *simulatedCRM) reserve(o *operated, key string) (reply, bool) {
	if o.class != crm.IdempotencyKey || key != o.id { // each operation has one key, its own
		return reply{}, false
	}
	switch valid := !o.keyAt.IsZero() && c.w.now.Before(o.keyAt.Add(keyValidity)); {
	case valid && o.keyLead == "":
		return reply{409, "", "idempotency_key_in_use"}, true
	case valid:
		return reply{201, o.keyLead, "replayed"}, true
	}
	o.keyAt, o.keyLead = c.w.now, ""
	return reply{}, false
}

// apply is the effect: a lead, or none where the class knows the operation.
func (c *simulatedCRM) apply(o *operated) reply {
	if len(o.leads) > 0 {
		switch o.class {
		case crm.UniqueCreate:
			return reply{409, o.leads[0].id, "already_exists"}
		case crm.Upsert:
			return reply{200, o.leads[0].id, ""}
		}
	}
	made := lead{id: c.number(o), at: c.w.now}
	o.leads = append(o.leads, made)
	o.keyLead = made.id
	c.w.tell("    the CRM makes %s %s for operation %.8s", o.makes(), made.id, o.of)
	c.w.effected(o)
	return reply{201, made.id, ""}
}

// number is the next id of what the operation makes. Each step counts from another
// number on, so that the ids of two steps differ, and the second one of a step can be
// another step's: a CRM numbers each kind of record by itself.
func (c *simulatedCRM) number(o *operated) string {
	c.numbers[o.place]++
	return "L-" + strconv.Itoa(c.numbers[o.place]+o.place)
}

// makes is what the operation makes, in words.
func (o *operated) makes() string {
	if o.step == "" {
		return job.LeadStep
	}
	return o.step
}

// land brings in the late effects that have to have come, or all.
func (c *simulatedCRM) land(all bool) {
	if len(c.late) == 0 {
		return
	}
	arriving := c.late
	c.late = nil
	for _, l := range arriving {
		if !all && c.w.now.Before(l.by) {
			c.late = append(c.late, l)
			continue
		}
		c.w.tell("    a late request takes effect:")
		if c.w.parts.crm != nil {
			c.w.landOutside(c.op(l.operation))
			continue
		}
		o := c.op(l.operation)
		n := len(o.leads)
		if c.apply(o); len(o.leads) > n && l.by.Before(c.w.now) {
			o.leads[n].at = l.by // it is as old as that for the index
		}
	}
}

// copyLead is a person who copies a lead, our reference with it.
func (c *simulatedCRM) copyLead(o *operated) {
	if len(o.leads) == 0 {
		return
	}
	copied := lead{id: c.number(o), at: c.w.now, copy: true}
	o.leads = append(o.leads, copied)
	c.w.happen(Copied)
	c.w.tell("a person copies %s %s as %s", o.makes(), o.leads[0].id, copied.id)
}

// made are the leads of the operation that were made for us.
func (o *operated) made() (ids []string) {
	for _, l := range o.leads {
		if !l.copy {
			ids = append(ids, l.id)
		}
	}
	return ids
}
