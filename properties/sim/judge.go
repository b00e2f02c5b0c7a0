package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// view is what the judge knows of one stream.
type view struct {
	stream string
	events []job.Event
	holder job.OperationReserved // of an operation's stream: the newest
	held   bool
	seen   int    // events that somebody was told of
	hash   uint64 // of its events, for the explorer

	state   job.State
	isJob   bool
	enquiry *enquiry
	stopped bool // by an event of a newer release

	claim     claim
	lapsed    bool   // a claim of its was taken for lost, or may have been
	requests  int    // since an operator last gave it a new round
	tries     int    // claims in that time, but for those that were released
	discarded bool   // by an operator, while a request could have had its effect
	careless  bool   // an operator gave a wrong id
	doubted   bool   // requests may have been made that nobody here knows of
	cut       uint64 // the fence of the claim that was cut short by a doubt

	made    []job.Made // by the steps so far
	madeBy  *process   // who recorded the newest
	madeIn  int        // and in which life
	edited  bool       // its fields are by rules that were edited
	partial bool       // it is, or was, a dead letter of which a part is made
	givenUp bool       // an operator went without what belongs to its lead
}

func (w *world) view(stream string) *view {
	v := w.byStream[stream]
	if v == nil {
		v = &view{stream: stream, isJob: strings.HasPrefix(stream, job.JobStreams)}
		w.byStream[stream] = v
	}
	return v
}

// recorded judges an event that is new in the log.
func (w *world) recorded(v *view, by *actor, p eventlog.Proposed) {
	if w.story != nil {
		w.tell("    %s ← %s %s", v.stream, p.Type, brief(p.Data))
	}
	w.recordedEvents++
	if w.digests {
		each := hashOfEvent(p.Type, p.Time, p.Data)
		v.hash, w.logHash = mix(v.hash, each), mix(w.logHash, each)
	}
	event, err := w.cover.decode(p)
	if err != nil {
		v.stopped = true
		v.events = append(v.events, nil)
		return
	}
	v.events = append(v.events, event)
	if e, ok := event.(job.AttemptNotApplied); ok && by != nil && !by.asked.IsZero() {
		w.breaks(e.NotBefore.Before(by.asked.Add(by.process.skew)), CRMIsSpared, "%s is due again before the CRM wants to hear of it", v.stream)
	}
	if by == w.current {
		w.obeys(by)
	}
	if !v.isJob {
		w.reserved(v, event)
		return
	}
	from := v.state.Now()
	after := v.state.Evolve(event, p.Time)
	w.cover.transition(event, from, after.Phase)
	w.judgeEvent(v, by, event)
	if operator := by != nil && by.human; from.Final() && after.Phase != from {
		w.breaks(from != job.DeadLetter || !operator, FinalStays, "%s leaves %s by %s", v.stream, from, event.Name())
	}
	if !allowed(event.Name(), from, after.Phase) {
		w.breaks(true, ByTheTable, "%s: %s leads from %s to %s", v.stream, event.Name(), from, after.Phase)
	}
	v.state = after
}

// judgeEvent judges what an event says; v is as it was before it.
func (w *world) judgeEvent(v *view, by *actor, event job.Event) {
	switch e := event.(type) {
	case job.UpdateReceived:
		w.accepted(v, e)
	case job.JobClaimed:
		w.claimed(v, by, e)
	case job.ClaimRenewed:
		v.claim.prolong(by, e.LeaseUntil, e.Deadline)
	case job.ClaimReleased:
		v.tries--
		w.judgeProof(v, by, e.Name(), v.claim.request < 0)
	case job.AttemptNotApplied:
		w.judgeProof(v, by, e.Name(), w.proven(v))
	case job.ReconciliationNeeded:
		if !e.DoubtedUntil.IsZero() {
			w.doubts(v, by, e.DoubtedUntil)
			return
		}
		w.judgeReconciliation(v, by, e)
	case job.OutcomeUnknown:
		w.lapse(v, by)
		w.judgeUnknown(v, by, e)
	case job.JobDeadLettered:
		w.deadLettered(v, e)
	case job.StepConfirmed:
		w.stepConfirmed(v, by, e)
	case job.LeadConfirmed:
		w.confirmed(v, by, e)
	case job.ReceiptConflicted:
		w.judgeSecondID(v, e)
	case job.LeadAbsent:
		w.judgeAbsence(v, by, e)
	case job.JobRequeued:
		v.requests, v.tries = 0, 0
	case job.NoEffectNeeded:
		w.spared(v, e)
	}
}

func (w *world) accepted(v *view, e job.UpdateReceived) {
	i, ok := w.parts.byText[e.Update]
	w.breaks(!ok, NothingDiscarded, "%s holds what nobody sent", v.stream)
	for _, q := range w.chats.enquiries {
		if ok && q.known == i {
			v.enquiry = q
			w.named(v)
		}
	}
	for _, other := range w.jobs {
		w.breaks(other.enquiry == v.enquiry, AcceptedOnce, "%s and %s are one update", other.stream, v.stream)
	}
	w.jobs = append(w.jobs, v)
}

// named gives the enquiry the operation that its place in the log asks for: one
// whose id was taken is named by its variant key.
func (w *world) named(v *view) {
	e := v.enquiry
	e.operation = e.sent.operation
	if key := "telegram" + strings.ReplaceAll(strings.TrimPrefix(v.stream, "update"), "-", "/"); e.own && strings.Count(key, "/") > 2 {
		e.operation = operation(e.bot, key)
	}
	w.crm.steps(e.operation) // from here on their keys are known
	if e.refused && e.own {
		w.crm.refuse(e.operation)
	}
}

func (w *world) claimed(v *view, by *actor, e job.JobClaimed) {
	if v.enquiry != nil {
		w.breaks(e.OperationID != v.enquiry.operation, OperationIDStable, "%s claims operation %s, want %s", v.stream, e.OperationID, v.enquiry.operation)
	}
	if v.state.Phase != job.Pending {
		w.breaks(true, OnlyUnderClaim, "%s is claimed by %s, and it is %s", v.stream, e.Worker, v.state.Phase)
	}
	w.judgeHolder(v)
	w.judgeOrder(v, e.Name(), e.Step)
	w.judgeFields(v, by, e)
	v.tries++
	v.claim = claim{by: by, request: -1}
	v.claim.prolong(by, e.LeaseUntil, e.Deadline)
	if by != nil && by.process != nil {
		v.claim.turn = w.turnOf(by)
		w.breaks(by.process.now().Before(v.state.NotBefore) && !by.human, CRMIsSpared, "%s claims %s before it is due", by.name, v.stream)
		if v.claim.turn == by.began {
			by.fence, by.fenced, by.claimed = uint64(len(v.events)-1), v.stream, w.now.UnixNano()
		}
		w.breaks(!strings.HasPrefix(by.name, e.Worker) && !by.human, OnlyUnderClaim, "%s claims %s as %s", by.name, v.stream, e.Worker)
	}
	if v.state.Attempts > 0 {
		w.cover.hit(retried)
	}
	if p := v.madeBy; p != nil && p.generation > v.madeIn && v.state.Step != e.Step {
		w.cover.hit(resumedAtAStep)
	}
}

// lapse notes that the event of by takes another's claim for lost.
func (w *world) lapse(v *view, by *actor) {
	if v.state.Phase != job.Claimed || w.mine(v, by) {
		return
	}
	v.lapsed = true
	w.cover.hit(takenOver)
	// Whatever the clocks say, the lease is over by then: that is what the skew is for.
	// A worker's own outcome may be recorded late, when it has gone on to another job.
	if by != v.claim.by && w.now.Before(v.claim.until) {
		w.breaks(true, OnlyUnderClaim, "%s takes over the claim of %s on %s before its lease is over", nameOf(by), v.state.Claim.Worker, v.stream)
	}
}

// mine reports whether the job's claim is the actor's own.
func (w *world) mine(v *view, by *actor) bool {
	return by != nil && v.claim.by == by && v.claim.turn == w.turnOf(by)
}

func nameOf(a *actor) string {
	if a == nil {
		return "nobody"
	}
	return a.name
}

func (w *world) deadLettered(v *view, e job.JobDeadLettered) {
	if v.enquiry == nil {
		return
	}
	v.partial = v.partial || len(v.made) > 0
	lead, made := v.has(job.LeadStep)
	w.breaks(made, NoHiddenEffect, "%s is a dead letter (%s), and its lead %s is made", v.stream, e.Reason, lead.CRMID)
	if e.By != "" {
		v.discarded = true
		w.breaks(v.state.Phase == job.Claimed, NoHiddenEffect, "%s is discarded while %s calls the CRM", v.stream, v.state.Claim.Worker)
		return
	}
	if w.crm.refused[w.at(v).id] {
		w.cover.hit(refusedForEver)
	}
	switch {
	case w.discarded(v.enquiry.operation):
		w.cover.hit(blockedByDiscard)
		return // it says that it is blocked: a person gave the operation up
	case w.blocked(v):
		w.cover.hit(blockedByAPart)
		return
	}
	for _, o := range w.crm.steps(v.enquiry.operation) {
		if _, made := v.has(o.step); !made && o.doubtful() {
			w.breaks(true, NoHiddenEffect, "%s is a dead letter (%s), and what its requests did is not known: %v", v.stream, e.Reason, o.made())
		}
	}
}

func (w *world) confirmed(v *view, by *actor, e job.LeadConfirmed) {
	w.cover.confirmed(v.state, e)
	if w.stepped {
		w.stepsConfirmed(v, e)
		return
	}
	w.judgeID(v, by, "", e.CRMID, e.How)
}

// spared judges a job that ends without an effect.
func (w *world) spared(v *view, e job.NoEffectNeeded) {
	if v.enquiry == nil {
		return
	}
	wanted := v.enquiry.wish == aLead
	if e.ConfirmedBy != "" {
		w.cover.hit(madeByAnother)
		for _, other := range w.jobs {
			if other.state.Key.String() == e.ConfirmedBy && other.state.Phase == job.Done && other.state.CRMID != "" {
				w.breaks(e.CRMID != other.state.CRMID, VerdictIsRight, "%s is said to share lead %q, and %s has %s", v.stream, e.CRMID, other.stream, other.state.CRMID)
				return
			}
		}
	}
	w.breaks(wanted, VerdictIsRight, "%s asks for a lead and ends without one: %s", v.stream, e.Reason)
}

// effected judges a lead that was made.
func (w *world) effected(o *operated) {
	w.breaks(len(o.made()) > 1, AtMostOneEffect, "operation %.8s has the %ss %s", o.of, o.makes(), strings.Join(o.made(), ", "))
}

// told notes that the current actor has a CRM id in hand.
func (w *world) told(operation, crmID string) {
	a := w.current
	if a == nil {
		return
	}
	a.receipts = append(a.receipts, receipt{operation, crmID})
	if o := w.crm.op(operation); a.request < len(o.requests) {
		o.requests[a.request].answered = true
	}
}

// obeys notes that the actor's process knows by now how long the CRM asked it to be
// left alone: it has gone on from the answer.
func (w *world) obeys(a *actor) {
	if a == nil || a.asked.IsZero() {
		return
	}
	if p := a.process; a.asked.After(p.leftAlone) {
		p.leftAlone, p.asked = a.asked, w.calls
	}
	a.asked = time.Time{}
}

// unanswered notes that the answer, and with it any proof, is lost.
func (w *world) unanswered(o *operated, number int) { o.requests[number].proof = false }

// turned judges what a worker leaves behind when its turn is over.
func (w *world) turned(a *actor, t engine.Turn) {
	w.obeys(a)
	v := w.view(t.Stream)
	if t.Stopped || v.stopped {
		return
	}
	for _, r := range a.receipts {
		given := a.process.ctx.Err() != nil && a.troubled // told to end, and the log is down
		w.breaks(!w.keeps(v, r) && !given, ReceiptsKept, "%s was told of %s, and %s does not have it", a.name, r.crmID, v.stream)
	}
	held := v.state.Phase == job.Claimed && a.fenced == v.stream && v.state.Claim.Fence == a.fence &&
		a.process.now().Before(v.state.Claim.LeaseUntil) // then it has expired, and others act
	w.breaks(held && a.failures < leavesClaim && a.process.ctx.Err() == nil, Ends, "%s leaves its claim on %s behind", a.name, v.stream)
}

// stored reports whether the enquiry is in the log.
func (w *world) stored(e *enquiry) bool {
	return slices.ContainsFunc(w.jobs, func(v *view) bool { return v.enquiry == e })
}

// answered judges our answer to a delivery. before says that the update was in
// the log when it was sent.
func (w *world) answered(a *actor, e *enquiry, status int, before, lost bool) {
	w.tell("    %d to a delivery of %s", status, e.label())
	ok := status == 200
	w.breaks(ok && !w.stored(e), StoredBefore2xx, "%s is answered 200 and is not in the log", e.label())
	w.breaks(!ok && !a.troubled, StoredIsAnswered, "%s is answered %d without any trouble", e.label(), status)
	if ok && !lost {
		e.acknowledged = true
	}
	if before {
		w.cover.hit(repeated)
	}
}

// brief is what a story shows of an event.
func brief(data []byte) string {
	const most = 160
	if len(data) > most {
		return string(data[:most]) + "…"
	}
	return string(data)
}
