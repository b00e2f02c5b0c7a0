package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// has is what the step made, as it was confirmed.
func (v *view) has(step string) (job.Made, bool) {
	i := slices.IndexFunc(v.made, func(m job.Made) bool { return m.Step == step })
	if i < 0 {
		return job.Made{}, false
	}
	return v.made[i], true
}

// overtaken reports whether a late receipt for the step is recorded: a worker that had
// claimed the job after it was sent may still make its own request.
func (v *view) overtaken(step string) bool {
	if step == "" {
		return v.state.Phase == job.Done && v.state.How == job.ByLate
	}
	m, _ := v.has(step)
	return m.How == job.ByLate
}

// judgeOrder: what belongs to a lead is made in order, and nothing twice.
func (w *world) judgeOrder(v *view, what, step string) {
	if !w.stepped {
		w.breaks(step != "", StepsInOrder, "%s: %s of the step %s, and the lead takes one", v.stream, what, step)
		return
	}
	place := slices.Index(leadSteps[:], step)
	if _, made := v.has(step); made || place < 0 {
		w.breaks(true, StepsInOrder, "%s: %s of the step %q, which is made or none", v.stream, what, step)
		return
	}
	for _, before := range leadSteps[:place] {
		_, made := v.has(before)
		w.breaks(!made, StepsInOrder, "%s: %s of the step %s, and the step %s is not made", v.stream, what, step, before)
	}
}

// stepConfirmed judges that what a step makes is said to exist.
func (w *world) stepConfirmed(v *view, by *actor, e job.StepConfirmed) {
	w.judgeOrder(v, e.Name(), e.Step)
	w.judgeID(v, by, e.Step, e.CRMID, e.How)
	v.made = append(v.made, job.Made{Step: e.Step, CRMID: e.CRMID, How: e.How})
	v.requests, v.tries, v.lapsed = 0, 0, false // each step has its own
	if by != nil && by.process != nil {
		v.madeBy, v.madeIn = by.process, by.life
	}
}

// judgeID: an id that is recorded is of what the operation truly made.
func (w *world) judgeID(v *view, by *actor, step, crmID string, how job.Confirmation) {
	if how == job.ByOperator || v.enquiry == nil {
		return
	}
	for _, o := range w.crm.steps(v.enquiry.operation) {
		if o.step != step {
			continue
		}
		if how == job.ByLookup {
			n := w.hits(o, by)
			w.breaks(n != 1, VerdictIsRight, "%s is confirmed with %s %s, and the lookup found %d", v.stream, o.makes(), crmID, n)
		}
		known := slices.ContainsFunc(o.leads, func(l lead) bool { return l.id == crmID })
		w.breaks(!known, VerdictIsRight, "%s is confirmed with %s, which is not its %s", v.stream, crmID, o.makes())
	}
}

// stepsConfirmed judges the end of a lead that took several steps.
func (w *world) stepsConfirmed(v *view, e job.LeadConfirmed) {
	made, ok := v.has(job.LeadStep)
	w.breaks(!ok || made.CRMID != e.CRMID, VerdictIsRight, "%s names the lead %q, and its step made %q", v.stream, e.CRMID, made.CRMID)
	if len(v.made) == len(leadSteps) {
		return
	}
	w.breaks(e.By == "", DoneIfAnswered, "%s is done, and of its steps only %v are made", v.stream, v.made)
	w.breaks(v.state.Phase == job.Claimed, NoHiddenEffect, "%s is given up while %s calls the CRM", v.stream, v.state.Claim.Worker)
	v.givenUp = true
	w.cover.hit(restGivenUp)
}

// judgeSecondID: an incident is about an id that is another one than what is recorded.
func (w *world) judgeSecondID(v *view, e job.ReceiptConflicted) {
	w.cover.hit(secondID)
	recorded, ok := v.state.CRMID, v.state.Phase == job.Done
	if w.stepped {
		var m job.Made
		if m, ok = v.has(e.Step); ok {
			recorded = m.CRMID
		}
		known := slices.Contains(v.state.OtherCRMIDs, e.Step+" "+e.CRMID)
		w.breaks(known || e.Step == "", SecondIDIsIncident, "%s: %s of the step %q is known to be a second id", v.stream, e.CRMID, e.Step)
		w.breaks(ok && e.Confirmed != recorded, SecondIDIsIncident, "%s: the step %s made %s, and the incident says %q", v.stream, e.Step, recorded, e.Confirmed)
	}
	w.breaks(ok && e.CRMID == recorded, SecondIDIsIncident, "%s: %s is no second id", v.stream, e.CRMID)
}

// keeps reports whether the log has the id that somebody was told of the operation.
func (w *world) keeps(v *view, r receipt) bool {
	o := w.crm.op(r.operation)
	if o.step == "" {
		return v.state.CRMID == r.crmID || slices.Contains(v.state.OtherCRMIDs, r.crmID)
	}
	m, _ := v.has(o.step)
	return m.CRMID == r.crmID || slices.Contains(v.state.OtherCRMIDs, o.step+" "+r.crmID)
}

// judgeFields: the first claim records what the rules of its process say, and no later
// one says it again.
func (w *world) judgeFields(v *view, by *actor, e job.JobClaimed) {
	if v.enquiry == nil || by == nil || by.process == nil {
		return
	}
	if v.state.Attempts > 0 {
		w.breaks(e.Fields != "", ContentIsTheUpdates, "%s is claimed again, with the fields %s", v.stream, e.Fields)
		return
	}
	v.edited = by.life > 1 && w.parts.own
	want := v.enquiry.recorded[truth(v.edited)]
	w.breaks(e.Fields != want, ContentIsTheUpdates, "%s is claimed with the fields %s, and its update says %s", v.stream, e.Fields, want)
}

// wanted are the fields of every request of the job, whoever makes it.
func (v *view) wanted() map[string]string {
	if v.edited {
		return v.enquiry.edited
	}
	return v.enquiry.fields
}

// judgeMade: a request brings what the steps before it made, and no more.
func (w *world) judgeMade(v *view, key string, made map[string]string) {
	o := w.crm.op(key)
	want := map[string]string{}
	for _, m := range v.made {
		if slices.Index(leadSteps[:], m.Step) < o.place {
			want[m.Step] = m.CRMID
		}
	}
	w.breaks(!maps.Equal(made, want), StepsInOrder, "%s sends its %s with %v, and before it were made %v", v.stream, o.makes(), made, want)
}

// doubts notes that an operator, or the engine for a later step, takes requests into
// account that the log does not have.
func (w *world) doubts(v *view, by *actor, until time.Time) {
	human := by != nil && by.human
	w.breaks(!human && (!v.doubted || len(v.made) == 0), OnlyIfAmbiguous, "%s is doubted until %s, and by no operator", v.stream, until)
	if v.doubted && !human {
		w.cover.hit(nextStepDoubted)
	}
	if v.state.Phase == job.Claimed {
		v.tries-- // it is no attempt
		if v.claim.by != by {
			v.cut = v.state.Claim.Fence
			v.requests -= min(1, v.claim.request+1)
		}
	}
	v.doubted, v.lapsed = true, true
}

// blocked reports whether another job of the operation was given up after a part of it
// was made.
func (w *world) blocked(v *view) bool {
	return w.any(v.enquiry.operation, func(other *view) bool { return other != v && other.partial })
}
