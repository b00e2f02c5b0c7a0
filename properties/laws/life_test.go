package laws

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/job"
)

var epoch = time.Date(2026, 7, 1, 12, 0, 0, 123456789, time.UTC)

var policy = job.Policy{
	MaxAttempts: 3, RetryFirst: time.Second, RetryMax: time.Minute,
	Lease: 40 * time.Second, CallTimeout: 20 * time.Second, ClockSkew: time.Second,
}

// capabilities are one of each kind that decides differently.
var capabilities = []job.Capability{
	{Repeatable: true, Validity: 5 * time.Minute, CanFind: true, Settle: 30 * time.Second},
	{CanFind: true, Settle: 30 * time.Second},
	{Repeatable: true, Settle: 30 * time.Second},
	{Settle: 30 * time.Second},
}

var operator = job.Signature{By: "ada", Reason: "looked"}

// recorded is an event as the log has it.
type recorded struct {
	event job.Event
	at    time.Time
}

// life is the events of one job, decided by the domain.
type life struct {
	key    job.Key
	events []recorded
	state  job.State
	rules  job.Rules
	now    time.Time
}

func fold(events []recorded) job.State {
	s := job.State{}
	for _, r := range events {
		s = s.Evolve(r.event, r.at)
	}
	return s
}

// legal reports whether the table allows the events.
func legal(events []recorded) bool {
	list := make([]job.Event, len(events))
	for i, r := range events {
		list[i] = r.event
	}
	err := job.Allowed(job.New, list...)
	return err == nil
}

func (l *life) record(events ...job.Event) {
	for _, e := range events {
		l.now = l.now.Add(1234567 * time.Nanosecond)
		l.events = append(l.events, recorded{e, l.now})
		l.state = l.state.Evolve(e, l.now)
	}
}

func message(bot, id int64, text string) job.Update {
	raw := fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":1,"chat":{"id":%d},"from":{"id":9},"text":%q}}`, id, -id-5, text)
	u, err := job.ParseUpdate(bot, raw)
	if err != nil {
		panic(err)
	}
	return u
}

// newLife is a job that lived for that many steps.
func newLife(t *rapid.T, id int64, steps int) *life {
	u := message(7, id, "text")
	l := &life{key: u.Key(), now: epoch, rules: job.Rules{Policy: policy, Capability: rapid.SampledFrom(capabilities).Draw(t, "capability")}}
	l.record(job.Receive(u, l.key))
	for range steps {
		l.now = l.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 50 * time.Second, 10 * time.Minute}).Draw(t, "wait"))
		l.step(t)
	}
	return l
}

var outcomes = []job.Outcome{
	{Class: job.Unknown, Reason: "cut"},
	{Class: job.NotApplied, Reason: "429", RetryAfter: 90 * time.Second},
	{Class: job.NotSent, Reason: "dial refused"},
	{Class: job.Refused, Reason: "422"},
	{Class: job.Created, CRMID: "lead-1", How: job.ByCreate},
	{Class: job.Created, CRMID: "lead-2", How: job.ByUpsert},
	{Class: job.Created},
}

// step lets one thing happen that the job's phase allows.
func (l *life) step(t *rapid.T) {
	s, share := l.state, rapid.Float64Range(0, 0.99).Draw(t, "share")
	outcome := outcomes[rapid.IntRange(0, len(outcomes)-1).Draw(t, "outcome")]
	act := rapid.IntRange(0, 7).Draw(t, "act")
	switch {
	case act == 0:
		l.record(s.Repeat()...)
	case act == 1:
		other := message(7, l.key.Update, fmt.Sprint("other ", rapid.IntRange(0, 2).Draw(t, "other")))
		l.record(s.Conflict(other, other.VariantKey())...)
	case act == 2: // an answer to a claim that is lost
		l.record(s.Record(s.EventCount+1, outcome, l.now, share, l.rules)...)
	case s.Phase == job.Pending && act == 3 && s.Attempts == 0:
		l.record(job.NoEffectNeeded{Reason: "shared", ConfirmedBy: "telegram/7/1", CRMID: "lead-shared"})
	case s.Phase == job.Pending && act == 4:
		l.act(s.Discard(operator))
	case s.Phase == job.Pending:
		l.record(s.ClaimBy("worker-1", job.DefaultPlan(l.key, s.AsUpdate()), "", l.now, policy))
	case s.Phase == job.Claimed && act == 3:
		l.record(job.Renew(l.now, policy))
	case s.Phase == job.Claimed && act == 4:
		l.record(s.Expire(l.now, share, l.rules)...)
	case s.Phase == job.Claimed:
		l.record(s.Record(s.Claim.Fence, outcome, l.now, share, l.rules)...)
	case s.Phase == job.NeedsReconciliation:
		l.reconcile(t, act, share)
	case s.Phase == job.DeadLetter && act > 4:
		l.act(s.Requeue(operator))
	}
}

func (l *life) reconcile(t *rapid.T, act int, share float64) {
	switch s := l.state; act {
	case 3:
		l.act(s.Resolve("", "lead-by-hand", operator))
	case 4:
		l.act(s.Discard(operator))
	case 5:
		l.record(s.NotFound("503", l.now, share, policy)...)
	case 6:
		l.act(s.ResolveAbsent("", l.now, operator, l.rules))
	default:
		ids := rapid.SampledFrom([][]string{nil, {"lead-1"}, {"lead-1", "lead-2"}}).Draw(t, "found")
		l.record(s.Found(ids, l.now, l.rules)...)
	}
}

// act records what an operator may do, and nothing when it is refused.
func (l *life) act(events []job.Event, err error) {
	if err == nil {
		l.record(events...)
	}
}

// names are the events' names, for failures.
func names(events []recorded) []string {
	list := make([]string, len(events))
	for i, r := range events {
		list[i] = r.event.Name()
	}
	return list
}
