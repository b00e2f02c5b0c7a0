package sim

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

// claim is a job's newest claim, as the judge saw it recorded.
type claim struct {
	by       *actor
	turn     int       // of by
	deadline time.Time // by the clock of by
	until    time.Time // the end of its lease, in true time
	request  int       // the newest create that left under it, of the operation; -1 for none
}

func (c *claim) prolong(by *actor, until, deadline time.Time) {
	c.deadline, c.until = deadline, until
	if by != nil && by.process != nil {
		c.until = until.Add(-by.process.skew)
	}
}

// leavesClaim is how many calls of the log have to fail before a worker may leave a
// claim behind: the append whose acknowledgement is lost, and its repetition.
const leavesClaim = 2

// requested judges a create that reaches the CRM, and notes it.
func (w *world) requested(o *operated, deadline time.Time) {
	a := w.current
	o.requests = append(o.requests, request{deadline: deadline, at: w.now, call: w.calls})
	if a == nil || a.fenced == "" {
		w.breaks(true, OnlyUnderClaim, "a create without a claim")
		return
	}
	a.request = len(o.requests) - 1
	o.requests[a.request].stream = a.fenced
	v := w.byStream[a.fenced]
	current := v.state.Phase == job.Claimed && v.state.Claim.Fence == a.fence
	cut := v.cut != 0 && v.cut == a.fence
	if !current && !cut && !v.overtaken(o.step) {
		w.breaks(true, OnlyUnderClaim, "%s sends a create for %s, which is %s", a.name, a.fenced, v.state.Phase)
	}
	if current {
		v.requests++
		v.claim.request = a.request
		w.breaks(v.doubted, NoBlindRepeat, "%s sends a create for %s, and what was made before it was doubted is not known", a.name, a.fenced)
		w.breaks(deadline.Add(a.process.skew).After(v.claim.deadline), OnlyUnderClaim, "%s sends a create for %s with a deadline that its claim does not have", a.name, a.fenced)
	}
	stable := v.enquiry == nil || v.enquiry.operation == o.of && (o.step == v.state.Step || !current)
	w.breaks(!stable, OperationIDStable, "%s sends operation %s for %s", a.name, o.id, v.stream)
	w.judgeRepeat(o, deadline)
	w.breaks(v.requests > w.plan.Attempts, CRMIsSpared, "%s is sent %d times, with a budget of %d", a.fenced, v.requests, w.plan.Attempts)
	w.breaks(w.now.Before(a.process.leftAlone) && a.began > a.process.asked, CRMIsSpared, "%s sends a create, and the CRM asked to be left alone", a.name)
}

// judgeRepeat judges the newest create: beside an earlier one of unknown effect it may
// leave only where the CRM takes the two for one, by its class and while it remembers.
func (w *world) judgeRepeat(o *operated, deadline time.Time) {
	for _, r := range o.requests[:len(o.requests)-1] {
		if r.proof || r.absent {
			continue
		}
		forgotten := o.class == crm.IdempotencyKey && !deadline.Add(settle-indexLag).Before(r.at.Add(keyValidity))
		if !o.class.Repeatable() || forgotten {
			w.breaks(true, NoBlindRepeat, "%s sends a second create for operation %.8s, and what the first one did is not known", nameOf(w.current), o.id)
		}
		if o.class == crm.IdempotencyKey {
			return // the first of them took the key
		}
	}
}

// doubtful reports whether a request of the operation may have had an effect, for
// all that anyone was told.
func (o *operated) doubtful() bool {
	for _, r := range o.requests {
		if !r.proof && !r.absent {
			return true
		}
	}
	return len(o.made()) > 0
}

// judgeProof: that the CRM did nothing is recorded by whoever saw the proof of it.
func (w *world) judgeProof(v *view, by *actor, event string, proven bool) {
	if by != v.claim.by || !proven {
		w.breaks(true, ProofIsProof, "%s: %s by %s, who has no proof of it", v.stream, event, nameOf(by))
	}
}

// proven reports whether the CRM's answer to the claim's request proved that it did
// nothing.
func (w *world) proven(v *view) bool {
	return v.claim.request >= 0 && v.enquiry != nil && w.at(v).requests[v.claim.request].proof
}

// judgeUnknown: an outcome is called unknown by whoever sent a request and had no
// proof, or when the lease is over.
func (w *world) judgeUnknown(v *view, by *actor, e job.OutcomeUnknown) {
	if by == v.claim.by && w.mine(v, by) && (v.claim.request < 0 || w.proven(v)) {
		w.breaks(true, OnlyIfAmbiguous, "%s: nothing was ambiguous: %s", v.stream, e.Reason)
	}
}

// judgeReconciliation: a person is bothered, and the CRM searched, only where
// something was ambiguous and could not be repeated; or a person, about a lead that is
// made and lacks what belongs to it.
func (w *world) judgeReconciliation(v *view, by *actor, e job.ReconciliationNeeded) {
	w.lapse(v, by)
	if v.state.Phase != job.Claimed || v.enquiry == nil {
		return
	}
	o := w.at(v)
	if !v.lapsed && !o.doubtful() {
		lead, made := v.has(job.LeadStep)
		hidden := made && e.Human && (o.refusals || v.tries >= w.plan.Attempts) // a dead letter would hide the lead
		w.breaks(!hidden, OnlyIfAmbiguous, "%s: nothing was ambiguous: %s", v.stream, e.Reason)
		w.breaks(!strings.Contains(e.Reason, lead.CRMID), OnlyIfAmbiguous, "%s: a person is not told that lead %s is made: %s", v.stream, lead.CRMID, e.Reason)
		w.cover.hit(leadIncomplete)
	}
	forEver := o.class == crm.Upsert || o.class == crm.UniqueCreate
	if forEver && v.tries < w.plan.Attempts && !o.refusals && !v.doubted {
		w.breaks(true, OnlyIfAmbiguous, "%s could be sent again: %s", v.stream, e.Reason)
	}
	if v.state.Ambiguous && w.mine(v, by) {
		w.cover.hit(ambiguousThenGivenUp)
		if o.refusals && w.proven(v) {
			w.cover.hit(refusedAfterAmbiguous)
		}
	}
}

// lookup is what an actor was told of an operation when it last looked it up.
type lookup struct {
	by   *actor
	turn int
	hits int // leads; -1 while there is no proper answer
}

// looked judges a lookup that reaches the CRM.
func (w *world) looked(operation string) {
	o := w.crm.op(operation)
	for _, r := range o.requests {
		// What left since the turn began, whoever looks up cannot know of.
		if r.call < w.current.began && !r.proof && !r.absent && w.now.Before(r.deadline.Add(settle)) {
			w.breaks(true, CRMIsSpared, "%s looks operation %.8s up while a request can still arrive: that proves nothing", nameOf(w.current), operation)
		}
	}
	p := w.current.process
	w.breaks(w.now.Before(p.leftAlone) && w.current.began > p.asked, CRMIsSpared, "%s looks operation %.8s up, and the CRM asked to be left alone", w.current.name, operation)
	w.tells(o, -1)
}

// judgeContent: the lead says what the update says that its job holds.
func (w *world) judgeContent(op crm.Operation) {
	a := w.current
	if a == nil || a.fenced == "" {
		return
	}
	v := w.byStream[a.fenced]
	if v.enquiry == nil {
		return
	}
	w.judgeMade(v, op.ID, op.Made)
	want := v.wanted()
	w.breaks(!maps.Equal(op.Fields, want), ContentIsTheUpdates, "%s asks for a lead with %v, and its first claim on %s says %v", a.name, op.Fields, a.fenced, want)
}

// heard notes what a lookup was answered.
func (w *world) heard(operation string, body []byte, f Fault) {
	if f == None || f == LookupLags {
		w.tells(w.crm.op(operation), bytes.Count(body, []byte(`"external_id"`)))
	}
}

func (w *world) tells(o *operated, hits int) {
	for i := range o.lookups {
		if l := &o.lookups[i]; l.by == w.current && l.turn == w.current.began {
			l.hits = hits
			return
		}
	}
	o.lookups = append(o.lookups, lookup{w.current, w.current.began, hits})
}

// hits is how many leads the actor's lookup of the operation found in that turn.
func (w *world) hits(o *operated, by *actor) int {
	for _, l := range o.lookups {
		if l.by == by && l.turn == w.turnOf(by) {
			return l.hits
		}
	}
	return -1
}

// judgeAbsence: no lead was made, and none can be made any more by what was sent.
func (w *world) judgeAbsence(v *view, by *actor, e job.LeadAbsent) {
	w.cover.absent(e)
	v.lapsed, v.doubted = false, false
	if e.How == job.ByOperator {
		v.requests, v.tries = 0, 0
	}
	if v.enquiry == nil {
		return
	}
	o := w.at(v)
	made := o.made()
	w.breaks(len(made) > 0, AbsenceIsProven, "%s is said to have no %s, and has %v", v.stream, o.makes(), made)
	if e.How == job.ByLookup {
		w.breaks(w.hits(o, by) != 0, AbsenceIsProven, "%s is said to have no lead, and the lookup did not say so", v.stream)
	}
	for i, r := range o.requests {
		if !r.proof && w.now.Before(r.deadline.Add(settle)) {
			w.breaks(true, AbsenceIsProven, "%s is said to have no lead while a request of its can still arrive", v.stream)
		}
		o.requests[i].absent = true
	}
}

// reserved judges who may act for an operation that several jobs share.
func (w *world) reserved(v *view, event job.Event) {
	r, ok := event.(job.OperationReserved)
	if !ok {
		return
	}
	before, held := v.holder, v.held
	v.holder, v.held = r, true
	if held && before.Holder == r.Holder {
		// A worker that had read the job before it was requeued may reserve late. It
		// cannot claim any more, and takes nothing from the job.
		v.holder.Requeues = max(before.Requeues, r.Requeues)
	}
	if !held || before.Holder == r.Holder {
		return
	}
	// Whoever held it had ended in that era, without an effect that anyone knows of
	// or has to fear. One that was requeued since has to reserve anew.
	h := w.view(before.Holder.Stream())
	if h.state.Requeues > before.Requeues {
		return
	}
	w.breaks(h.state.Phase != job.DeadLetter, OneHolder, "%s takes the operation over from %s, which is %s", r.Holder, before.Holder, h.state.Phase)
	doubtful := h.enquiry != nil && slices.ContainsFunc(w.crm.steps(h.enquiry.operation), (*operated).doubtful)
	w.breaks(doubtful, OneHolder, "%s takes the operation over from %s, which may have made a lead", r.Holder, before.Holder)
}

// judgeHolder: a job claims an operation that others share only while it holds it.
func (w *world) judgeHolder(v *view) {
	if v.enquiry == nil || v.enquiry.own {
		return
	}
	o := w.view(job.OperationStreams + v.enquiry.operation)
	if !o.held || o.holder.Holder != v.state.Key || o.holder.Requeues != v.state.Requeues {
		w.breaks(true, OneHolder, "%s claims an operation that it does not hold: %+v", v.stream, o.holder)
	}
}
