package laws

import (
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// story is a small log: a history that came to one kind of end, or is open.
type story struct {
	name    string
	entries []entry
	now     time.Time
}

// of tells of an update, and receives it.
func (s *story) of(u job.Update, key job.Key) *teller {
	t := &teller{s, u, key}
	t.tell(job.Receive(u, key))
	return t
}

func (s *story) append(stream string, e job.Event) {
	s.now = s.now.Add(time.Second + 7*time.Nanosecond)
	s.entries = append(s.entries, entry{stream, recorded{e, s.now}})
}

// teller writes one stream of a story.
type teller struct {
	*story
	update job.Update
	key    job.Key
}

func (t *teller) tell(events ...job.Event) {
	for _, e := range events {
		t.append(t.key.Stream(), e)
	}
}

func (t *teller) claim(attempt int, worker string) { t.claimStep(attempt, worker, "", "") }

func (t *teller) claimStep(attempt int, worker, step string, fields job.Fields) {
	business, err := job.BusinessKey(t.key, t.update)
	if err != nil {
		panic(err)
	}
	t.tell(job.JobClaimed{
		Worker: worker, Attempt: attempt, Action: job.CreateLead, BusinessKey: business,
		OperationID: job.OperationID(t.key.Bot, job.CreateLead, business),
		LeaseUntil:  t.now.Add(time.Minute), Deadline: t.now.Add(20 * time.Second),
		Step: step, Fields: fields,
	})
}

func (s *story) later(seconds int) time.Time { return s.now.Add(time.Duration(seconds) * time.Second) }

// stories are what testdata/golden has, one a file. Add to them; never change one.
func stories() []*story {
	var all []*story
	tell := func(name string, id int64, tell func(*teller)) {
		s := &story{name: name, now: epoch.Add(time.Duration(id) * time.Hour)}
		u := message(7_000_000_001, id, "Grüße \"<&>\" \u2028😀")
		tell(s.of(u, u.Key()))
		all = append(all, s)
	}
	for _, tale := range slices.Concat(doneStories, deadStories, openStories, stepStories, toldStories) {
		tell(tale.name, int64(len(all)+1), tale.tell)
	}
	return all
}

type tale struct {
	name string
	tell func(*teller)
}

var doneStories = []tale{
	{"done-create", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.LeadConfirmed{CRMID: "L-1", How: job.ByCreate})
	}},
	{"done-upsert", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.OutcomeUnknown{Reason: "timeout", NotBefore: t.later(2)})
		t.claim(2, "b")
		t.tell(job.ClaimRenewed{LeaseUntil: t.later(60), Deadline: t.later(20)}, job.LeadConfirmed{CRMID: "L-2", How: job.ByUpsert})
	}},
	{"done-exists", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.ClaimReleased{Reason: "dial refused", NotBefore: t.later(1)})
		t.claim(2, "a")
		t.tell(job.AttemptNotApplied{Reason: "429", NotBefore: t.later(30)})
		t.claim(3, "b")
		t.tell(job.LeadConfirmed{CRMID: "L-3", How: job.ByExists}, job.DeliveryRepeated{Reason: "same event key and fingerprint"})
	}},
	{"done-lookup", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.ReconciliationNeeded{Reason: "the claim of worker a expired", NotBefore: t.later(50)},
			job.ReconciliationNeeded{Reason: "lookup failed: 503", NotBefore: t.later(60)}, job.LeadConfirmed{CRMID: "L-4", How: job.ByLookup})
	}},
	{"done-operator", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.ReconciliationNeeded{Reason: "2 leads carry this operation: L-5, L-6", Human: true},
			job.LeadConfirmed{CRMID: "L-5", How: job.ByOperator, By: "ann", Reason: "L-6 is a test"})
	}},
	{"done-late", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.OutcomeUnknown{Reason: "the claim of worker a expired", NotBefore: t.later(2)},
			job.LeadConfirmed{CRMID: "L-7", How: job.ByLate}, job.ReceiptConflicted{CRMID: "L-8", Confirmed: "L-7"})
	}},
	{"done-without-effect", func(t *teller) { t.tell(job.NoEffectNeeded{Reason: "an update of kind poll asks for no lead"}) }},
	{"done-by-another", func(t *teller) {
		business := `telegram/7000000001/album/"-5"/"G"`
		stream := job.OperationStream(job.OperationID(t.key.Bot, job.CreateLead, business))
		t.append(stream, job.OperationReserved{Holder: t.key})
		t.claim(1, "a")
		t.tell(job.JobDeadLettered{Reason: "refused: no e-mail"})
		second := message(t.key.Bot, 1_000, "second")
		other := t.of(second, second.Key())
		t.append(stream, job.OperationReserved{Holder: other.key})
		other.claim(1, "b")
		other.tell(job.LeadConfirmed{CRMID: "L-9", How: job.ByCreate})
		t.tell(job.JobRequeued{By: "ann", Reason: "mended"}, job.NoEffectNeeded{Reason: "confirmed by another job", ConfirmedBy: other.key.String(), CRMID: "L-9"})
	}},
	{"done-after-an-absence", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.ReconciliationNeeded{Reason: "timeout", NotBefore: t.later(50)}, job.LeadAbsent{How: job.ByLookup})
		t.claim(2, "a")
		t.tell(job.ReconciliationNeeded{Reason: "timeout", Human: true}, job.LeadAbsent{How: job.ByOperator, By: "ann", Reason: "looked"})
		t.claim(3, "a")
		t.tell(job.LeadConfirmed{CRMID: "L-10", How: job.ByCreate})
	}},
}

var deadStories = []tale{
	{"dead-refused", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.JobDeadLettered{Reason: "refused: no e-mail"}, job.ReceiptConflicted{CRMID: "L-11"})
	}},
	{"dead-undecodable", func(t *teller) { t.tell(job.JobDeadLettered{Reason: "undecodable: message is a string"}) }},
	{"dead-spent", func(t *teller) {
		for i := range 2 {
			t.claim(i+1, "a")
			t.tell(job.AttemptNotApplied{Reason: "503", NotBefore: t.later(5)})
		}
		t.claim(3, "a")
		t.tell(job.JobDeadLettered{Reason: "3 attempts, the last: 503"})
	}},
	{"dead-absent", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.ReconciliationNeeded{Reason: "timeout", NotBefore: t.later(50)}, job.LeadAbsent{How: job.ByLookup},
			job.JobDeadLettered{Reason: "1 attempts, none had an effect; the last: timeout"})
	}},
	{"dead-discarded", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.ReconciliationNeeded{Reason: "timeout", Human: true}, job.JobDeadLettered{Reason: "discarded: spam", By: "ann"})
	}},
}

var openStories = []tale{
	{"open-requeued", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.JobDeadLettered{Reason: "refused: no e-mail"}, job.JobRequeued{By: "ann", Reason: "mended"})
	}},
	{"open-claimed", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.OutcomeUnknown{Reason: "timeout", NotBefore: t.later(2)})
		t.claim(2, "b")
	}},
	{"open-doubted", func(t *teller) {
		t.claim(1, "operator ann")
		t.tell(job.ReconciliationNeeded{Reason: "doubted by ann: restored", NotBefore: t.later(90), DoubtedUntil: t.later(1)})
	}},
	{"open-in-conflict", func(t *teller) {
		another := message(t.key.Bot, t.key.Update, "another")
		t.tell(job.KeyConflicted{Fingerprint: another.Fingerprint, StoredAs: another.VariantKey().String()}, job.DeliveryRepeated{Reason: "same event key and fingerprint"})
		t.of(another, another.VariantKey())
	}},
}

// stepStories are of leads that take several effects.
var stepStories = []tale{
	{"steps-done", func(t *teller) {
		t.claimStep(1, "a", "contact", job.NewFields(map[string]string{"text": "hello", "source": "telegram"}))
		t.tell(job.OutcomeUnknown{Reason: "timeout", NotBefore: t.later(2)})
		t.claimStep(2, "b", "contact", "")
		t.tell(job.StepConfirmed{Step: "contact", CRMID: "C-1", How: job.ByExists})
		t.claimStep(3, "b", job.LeadStep, "")
		t.tell(job.ReceiptConflicted{CRMID: "C-2", Confirmed: "C-1", Step: "contact"}, job.StepConfirmed{Step: job.LeadStep, CRMID: "L-12", How: job.ByCreate})
		t.tell(job.LeadConfirmed{CRMID: "L-12", How: job.ByCreate})
	}},
	{"steps-open", func(t *teller) {
		t.claimStep(1, "a", "contact", "")
		t.tell(job.ReconciliationNeeded{Reason: "timeout", Human: true},
			job.StepConfirmed{Step: "contact", CRMID: "C-3", How: job.ByOperator, By: "ann", Reason: "seen in the CRM"})
	}},
}

// reply claims the reply about the job, and ends it.
func (t *teller) reply(about job.ReplyOutcome, ending job.Event) {
	t.append(t.key.ReplyStream(), job.ReplyClaimed{Key: t.key, Worker: "a", Outcome: about, Until: t.later(600)})
	if ending != nil {
		t.append(t.key.ReplyStream(), ending)
	}
}

// toldStories are of replies to people, and of what is recorded about a bot.
var toldStories = []tale{
	{"told-done", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.LeadConfirmed{CRMID: "L-13", How: job.ByCreate})
		t.reply(job.LeadMade, job.ReplySent{MessageID: 4711})
	}},
	{"told-dead", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.JobDeadLettered{Reason: "refused: no e-mail"})
		t.reply(job.GivenUp, job.ReplyRefused{Reason: "403 Forbidden: bot was blocked by the user"})
	}},
	{"told-perhaps", func(t *teller) {
		t.claim(1, "a")
		t.tell(job.ReconciliationNeeded{Reason: "timeout", Human: true})
		t.reply(job.LeftToHuman, job.ReplyUnknown{Reason: "time-out"})
	}},
	{"told-by-one-who-died", func(t *teller) {
		t.tell(job.NoEffectNeeded{Reason: "an update of kind poll asks for no lead"})
		t.reply(job.NothingAsked, nil)
	}},
	{"dropped", func(t *teller) {
		t.append(job.BotStream(t.key.Bot), job.PendingUpdatesDropped{Bot: t.key.Bot, Count: 5, By: "ann", Reason: "a flood of spam"})
	}},
}
