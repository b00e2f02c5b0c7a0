package projections_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

// capabilities are one of each kind that decides differently.
var capabilities = []job.Capability{
	{Repeatable: true},
	{Repeatable: true, Validity: time.Hour, CanFind: true, Settle: 30 * time.Second},
	{CanFind: true, Settle: 30 * time.Second},
	{},
}

// randomHistory is a log of several jobs, each of which lived by the domain's
// decisions, between events of other streams and events that nobody can decode.
func randomHistory(t *rapid.T) *scribe {
	w := &scribe{log: memory.New(), now: epoch, strict: true}
	rules := job.Rules{Policy: policy, Capability: rapid.SampledFrom(capabilities).Draw(t, "capability")}
	steps := rapid.IntRange(1, 60).Draw(t, "steps")
	for range steps {
		switch act := rapid.IntRange(0, 19).Draw(t, "act"); {
		case len(w.jobs) == 0 || act < 3:
			w.receive(t, randomUpdate(t, len(w.jobs)))
		case act == 3:
			w.poison(t)
		case act == 4:
			w.foreign(t)
		default:
			s := w.jobs[rapid.IntRange(0, len(w.jobs)-1).Draw(t, "job")]
			w.step(t, s, rules)
		}
	}
	return w
}

func randomUpdate(t *rapid.T, id int) job.Update {
	bot := rapid.SampledFrom([]int64{7, 8_000_000_000_000}).Draw(t, "bot")
	u := message(bot, int64(id), "text")
	u.Kind = rapid.SampledFrom([]string{"message", "edited_message"}).Draw(t, "kind")
	return u
}

// poison is an event that this release cannot decode, on a stream of its own or
// on a job's. What follows on that stream is legal for who could decode it.
func (w *scribe) poison(t *rapid.T) {
	stream := w.jobs[rapid.IntRange(0, len(w.jobs)-1).Draw(t, "poisoned")].key.Stream()
	if rapid.Bool().Draw(t, "of its own") {
		stream = fmt.Sprintf("update-9-%d", w.events)
	}
	bad := rapid.SampledFrom([][2]string{
		{"UpdateReceived.v9", `{}`},
		{"JobClaimed.v1", `{"attempt":"one"}`},
		{"JobClaimed.v1", `{"lease_until":"soon"}`},
		{"DeliveryRepeated.v1", `{"reason":`},
		{"UpdateReceived.v1", `{"bot":1,"update_id":2}`},
	}).Draw(t, "poison")
	w.append(t, stream, bad[0], []byte(bad[1]))
}

func (w *scribe) foreign(t *rapid.T) {
	stream := rapid.SampledFrom([]string{"operation-1", "$settings", "orders-7", "updates-1"}).Draw(t, "foreign")
	w.append(t, stream, "OperationReserved.v1", []byte(`{"holder":{"bot":1,"update_id":2},"requeues":0}`))
}

// step lets one thing happen to the job that its phase allows.
func (w *scribe) step(t *rapid.T, s *subject, rules job.Rules) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "wait")) * time.Second)
	share := rapid.Float64Range(0, 0.99).Draw(t, "share")
	switch rapid.IntRange(0, 5).Draw(t, "step") {
	case 0:
		w.tell(t, s, s.state.Repeat()...)
		return
	case 1:
		other := messageIn(s.key.Bot, s.key.Update, 1, 2, "another")
		w.tell(t, s, s.state.Conflict(other, other.VariantKey())...)
		return
	case 2:
		if len(s.fences) > 0 {
			fence := rapid.SampledFrom(s.fences).Draw(t, "fence")
			w.tell(t, s, s.state.Record(fence, randomOutcome(t), w.now, share, rules)...)
			return
		}
	}
	w.stepByPhase(t, s, share, rules)
}

func (w *scribe) stepByPhase(t *rapid.T, s *subject, share float64, rules job.Rules) {
	by := job.Signature{By: "ada", Reason: "asked"}
	var events []job.Event
	var err error
	pick := rapid.IntRange(0, 4).Draw(t, "pick")
	switch s.state.Now() {
	case job.Pending:
		events = randomStart(pick, s, w.now)
	case job.Claimed:
		switch pick {
		case 0:
			events = []job.Event{job.Renew(w.now, policy)}
		case 1:
			events = s.state.Expire(w.now, share, rules)
		default:
			events = s.state.Record(s.state.Claim.Fence, randomOutcome(t), w.now, share, rules)
		}
	case job.NeedsReconciliation:
		switch pick {
		case 0:
			events, err = s.state.Resolve("", "lead-by-hand", by)
		case 1:
			events, _ = s.state.ResolveAbsent("", w.now, by, rules) // refused while it is too early
		case 2:
			events, err = s.state.Discard(by)
		default:
			ids := rapid.SampledFrom([][]string{nil, {"lead-found"}, {"lead-1", "lead-2"}}).Draw(t, "found")
			events = s.state.Found(ids, w.now, rules)
		}
	case job.DeadLetter:
		events, err = s.state.Requeue(by)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	w.tell(t, s, events...)
}

func randomStart(pick int, s *subject, now time.Time) []job.Event {
	plan := job.DefaultPlan(s.key, s.update)
	switch {
	case pick == 0 && s.key.Update%2 == 0:
		return []job.Event{job.NoEffectNeeded{Reason: "shared", ConfirmedBy: "telegram/7/1", CRMID: "lead-shared"}}
	case pick == 1 && s.key.Update%3 == 0:
		return job.Start(job.Plan{Undecodable: "message is a string"})
	case !plan.Effect:
		return job.Start(plan)
	default:
		return []job.Event{s.state.ClaimBy("worker-1", plan, "", now, policy)}
	}
}

func randomOutcome(t *rapid.T) job.Outcome {
	return rapid.SampledFrom([]job.Outcome{
		{Class: job.Created, CRMID: "lead-1", How: job.ByCreate},
		{Class: job.Created, CRMID: "lead-2", How: job.ByUpsert},
		{Class: job.NotSent, Reason: "dial refused"},
		{Class: job.NotApplied, Reason: "429", RetryAfter: time.Second},
		{Class: job.Refused, Reason: "422"},
		{Class: job.Unknown, Reason: "cut"},
	}).Draw(t, "outcome")
}
