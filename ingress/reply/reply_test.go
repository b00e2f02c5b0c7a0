package reply_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
	"github.com/leadonce/leadonce/ingress/reply"
)

func TestAPersonIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.done(1)
	w.run(w.config())
	w.want(1, reply.Sent)
	if got, want := w.api.Messages()[0], (botapitest.Sent{ID: 1, Chat: 5, Text: thanks, ReplyTo: 70}); got != want {
		t.Errorf("sent is %+v, want %+v", got, want)
	}
	if r := w.reply(1); r.Phase != job.ReplyIsSent || r.MessageID != 1 || r.Claim.Key != key(1) || r.Claim.Outcome != job.LeadMade || !r.Claim.Until.Equal(began.Add(within)) {
		t.Errorf("recorded is %+v", r)
	}
	w.tell(key(1).Stream(), job.DeliveryRepeated{Reason: "again"})
	w.run(w.config())
	w.kept = nil // the checkpoint is lost
	w.run(w.config())
	w.kept = []byte("damaged")
	w.run(w.config())
	w.kept = []byte(`{"position":"1/1","stream":"update-424242-1","revision":0,"event_id":[1]}`) // of another log
	w.run(w.config())
	w.want(1, reply.Sent)
	if !strings.Contains(w.lines.String(), `"msg":"reply","result":"sent","bot":424242,"update_id":1,"chat":5,"outcome":"done"`) {
		t.Errorf("the log says\n%s", w.lines.String())
	}
}

// Every outcome has a text: the first that stands is told, and never a second.
func TestWhatIsTold(t *testing.T) {
	tapped := `{"update_id":%d,"callback_query":{"id":"1","from":{"id":6,"first_name":"Ada"},"data":"buy","message":{"message_id":9,"chat":{"id":5,"type":"private"}}}}`
	human := job.ReconciliationNeeded{Reason: "time-out", Human: true}
	for name, c := range map[string]struct {
		update string
		events []job.Event
		want   string // text
	}{
		"done":                     {said, []job.Event{job.LeadConfirmed{CRMID: "L"}}, thanks},
		"refused":                  {said, []job.Event{job.JobDeadLettered{Reason: "refused"}}, "dead_letter"},
		"refused, requeued, done":  {said, []job.Event{job.JobDeadLettered{Reason: "refused"}, job.JobRequeued{By: "ann"}, job.LeadConfirmed{CRMID: "L"}}, thanks},
		"given up by a person":     {said, []job.Event{job.JobDeadLettered{By: "ann"}}, ""},
		"waits for a person":       {said, []job.Event{human}, "needs_reconciliation"},
		"looked up":                {said, []job.Event{job.ReconciliationNeeded{NotBefore: began}}, ""},
		"nothing asked":            {said, []job.Event{job.NoEffectNeeded{Reason: "no rule"}}, "no_effect"},
		"another's lead":           {tapped, []job.Event{job.NoEffectNeeded{ConfirmedBy: "telegram/1/2", CRMID: "L-7"}}, "shared L-7"},
		"restored in between":      {said, []job.Event{job.ReconciliationNeeded{DoubtedUntil: began}, job.LeadConfirmed{CRMID: "L"}}, ""},
		"a button":                 {tapped, []job.Event{job.LeadConfirmed{CRMID: "L"}}, "Thank you, Ada. We will call you."},
		"no chat":                  {`{"update_id":%d,"message":{"from":{"id":6},"text":"x"}}`, []job.Event{job.LeadConfirmed{CRMID: "L"}}, ""},
		"an edit":                  {`{"update_id":%d,"edited_message":{"message_id":9,"chat":{"id":5},"text":"x"}}`, []job.Event{job.NoEffectNeeded{}}, ""},
		"a bot":                    {`{"update_id":%d,"message":{"message_id":9,"chat":{"id":5},"from":{"id":6,"is_bot":true},"text":"x"}}`, []job.Event{job.LeadConfirmed{CRMID: "L"}}, ""},
		"a person in a group":      {`{"update_id":%d,"message":{"message_id":9,"chat":{"id":-5},"from":{"id":6,"first_name":"Bo"},"text":"x"}}`, []job.Event{job.LeadConfirmed{CRMID: "L"}}, "Thank you, Bo. We will call you."},
		"a stopped job":            {said, []job.Event{job.LeadConfirmed{CRMID: "L"}, unheard{}}, ""},
		"waits, told, then done":   {said, []job.Event{human, nil, job.LeadConfirmed{CRMID: "L", By: "ann"}}, "needs_reconciliation"},
		"refused, told, then done": {said, []job.Event{job.JobDeadLettered{Reason: "refused"}, nil, job.JobRequeued{By: "ann"}, job.LeadConfirmed{CRMID: "L"}}, "dead_letter"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.texts = texts(t, job.ReplyOutcomes()...)
			w.job(1, c.update)
			for _, e := range c.events {
				switch e.(type) {
				case nil:
					w.run(w.config())
				case unheard:
					w.append(key(1).Stream(), "Unheard.v1", "{}")
				default:
					w.tell(key(1).Stream(), e)
				}
			}
			w.run(w.config())
			var got []string
			for _, m := range w.api.Messages() {
				got = append(got, m.Text)
			}
			if strings.Join(got, "|") != c.want {
				t.Errorf("told is %q, want %q", got, c.want)
			}
		})
	}
}

// unheard is an event of a newer release.
type unheard struct{}

func (unheard) Name() string { return "Unheard" }

func (w *world) append(stream, name, data string) {
	w.Helper()
	_, err := w.log.Append(context.Background(), stream, eventlog.Any, eventlog.Proposed{ID: everyID.New(), Type: name, Time: w.clock.Now(), Data: []byte(data)})
	if err != nil {
		w.Fatal(err)
	}
}

// An outcome without a text, of another bot, or whose text is empty is not told, and
// leaves nothing behind.
func TestWhatHasNoTextIsNotTold(t *testing.T) {
	w := newWorld(t)
	w.job(1, said, job.JobDeadLettered{Reason: "refused"})
	other := received(t, 2, said)
	other.Key.Bot = bot*10 + 1
	w.tell(other.Stream(), other, job.JobClaimed{Worker: "w"}, job.LeadConfirmed{CRMID: "L"})
	w.run(w.config())
	empty, err := rules.NewReply("", "reply", "done", `${is_private ? "" : "hello"}`)
	if err != nil {
		t.Fatal(err)
	}
	w.texts[job.LeadMade] = empty
	w.done(3)
	w.run(w.config())
	w.want(0)
	for _, id := range []int64{1, 2, 3} {
		w.wantPhase(id, job.NoReply)
	}
}

// What cannot be evaluated is told to nobody but the log, without what it is about.
func TestATextThatCannotBeEvaluated(t *testing.T) {
	w := newWorld(t)
	odd, err := rules.NewReply("", "reply", "done", `${update.message.from}`)
	if err != nil {
		t.Fatal(err)
	}
	w.texts[job.LeadMade] = odd
	w.done(1)
	w.run(w.config())
	w.want(0, reply.Unwritten)
	w.wantPhase(1, job.NoReply)
	w.kept, w.clock.now = nil, began.Add(within)
	w.run(w.config()) // what is too old is not even looked at
	w.want(0, reply.Unwritten)
}

// A process that stands still between its claim and its request does not send late.
func TestPausedBehindTheClaim(t *testing.T) {
	w := newWorld(t)
	w.done(1)
	c := w.config()
	c.Log = &slow{w.log, func() { w.clock.now = began.Add(within) }}
	w.run(c)
	w.want(0, reply.Refused)
	if r := w.reply(1); !strings.HasPrefix(r.Reason, "not sent in time") {
		t.Errorf("recorded is %+v", r)
	}
}

func TestAStaleOutcomeIsNotTold(t *testing.T) {
	w := newWorld(t)
	w.done(1)
	w.clock.now = began.Add(within)
	w.run(w.config())
	w.want(0)
	w.done(2)
	w.clock.now = w.clock.now.Add(within - 1)
	w.run(w.config())
	w.want(1, reply.Sent)
	w.wantPhase(1, job.NoReply)
	// A replier that begins anew finds none of it young enough.
	w.kept, w.clock.now = nil, w.clock.now.Add(within)
	w.run(w.config())
	w.want(1, reply.Sent)
}

// What Telegram answers, and what becomes of the reply: each is one request but for
// what is proven without effect.
func TestFaultsOfTheRequest(t *testing.T) {
	for name, c := range map[string]struct {
		faults   []botapitest.Fault
		messages int
		calls    int
		waited   time.Duration
		result   reply.Result
		phase    job.ReplyPhase
	}{
		"cut after the effect":    {[]botapitest.Fault{{Cut: true}}, 1, 1, 0, reply.Unknown, job.ReplyIsUnknown},
		"dropped before it":       {[]botapitest.Fault{{Drop: true}}, 0, 1, 0, reply.Unknown, job.ReplyIsUnknown},
		"a page after the effect": {[]botapitest.Fault{{Late: 502, Body: "<html>"}}, 1, 1, 0, reply.Unknown, job.ReplyIsUnknown},
		"a server's error":        {[]botapitest.Fault{botapitest.Refused(500, "Internal Server Error: restart")}, 0, 1, 0, reply.Unknown, job.ReplyIsUnknown},
		"blocked":                 {[]botapitest.Fault{botapitest.Refused(403, "Forbidden: bot was blocked by the user")}, 0, 1, 0, reply.Refused, job.ReplyIsRefused},
		"chat not found":          {[]botapitest.Fault{botapitest.Refused(400, "Bad Request: chat not found")}, 0, 1, 0, reply.Refused, job.ReplyIsRefused},
		"too many requests":       {[]botapitest.Fault{{RetryAfter: 7}, {RetryAfter: 20}}, 1, 3, 27 * time.Second, reply.Sent, job.ReplyIsSent},
		"for too long":            {[]botapitest.Fault{{RetryAfter: 3600}}, 0, 1, 0, reply.Refused, job.ReplyIsRefused},
		"later, then cut":         {[]botapitest.Fault{{RetryAfter: 7}, {Cut: true}}, 1, 2, 7 * time.Second, reply.Unknown, job.ReplyIsUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.done(1)
			w.api.Fail("sendMessage", c.faults...)
			w.run(w.config())
			w.kept = nil
			w.run(w.config())
			w.want(c.messages, c.result)
			w.wantPhase(1, c.phase)
			if got := w.api.Calls("sendMessage"); got != c.calls {
				t.Errorf("%d requests, want %d", got, c.calls)
			}
			if got := w.clock.Now().Sub(began); got != c.waited {
				t.Errorf("waited %s, want %s", got, c.waited)
			}
		})
	}
}

// While Telegram wants to be left alone, nobody else is written to, and those who
// would wait too long are not claimed.
func TestTooManyRequestsIsForTheWholeBot(t *testing.T) {
	w := newWorld(t)
	w.done(1, 2)
	w.api.Fail("sendMessage", botapitest.Fault{RetryAfter: 3600})
	w.run(w.config())
	w.want(0, reply.Refused, reply.Late)
	w.wantPhase(2, job.NoReply)
	if got := w.api.Calls("sendMessage"); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

// Nobody listens at the address for a while: the request is made again, for as long
// as the reply is young.
func TestTelegramIsOutOfReach(t *testing.T) {
	w := newWorld(t)
	w.done(1)
	c := w.config()
	c.Bot = &unreachable{Sender: c.Bot, tries: 6}
	w.run(c)
	w.want(1, reply.Sent)
	if waited := w.clock.Now().Sub(began); waited != (1+2+4+8+16+30)*time.Second {
		t.Errorf("waited %s", waited)
	}
	w.done(2)
	c.Bot = &unreachable{Sender: w.client(), tries: 1000}
	w.run(c)
	w.want(1, reply.Sent, reply.Refused)
	if r := w.reply(2); !strings.Contains(r.Reason, "not sent in time; sendMessage: connection refused") || r.EndedAt.After(r.Claim.Until) {
		t.Errorf("recorded is %+v", r)
	}
}

func TestMistakesInTheConfigurationOfAReplier(t *testing.T) {
	w := newWorld(t)
	for i, spoil := range []func(*reply.Config){
		func(c *reply.Config) { c.Bot = nil }, func(c *reply.Config) { c.Log = nil }, func(c *reply.Config) { c.Clock = nil }, func(c *reply.Config) { c.IDs = nil },
		func(c *reply.Config) { c.Worker = "" }, func(c *reply.Config) { c.Texts = nil }, func(c *reply.Config) { c.Within = 0 },
	} {
		c := w.config()
		spoil(&c)
		if err := reply.Run(context.Background(), context.Background(), c); err == nil {
			t.Errorf("%d: no error", i)
		}
	}
}

// The log takes the claim and loses the answer: the same claim again is found to be
// this process's own. So is the ending.
func TestALostAnswerOfTheLog(t *testing.T) {
	for _, times := range []int{1, 2, 3} {
		w := newWorld(t)
		w.done(1)
		c := w.config()
		c.Log = &forgetful{w.log, times}
		w.run(c)
		w.want(1, reply.Sent)
		w.wantPhase(1, job.ReplyIsSent)
	}
}

// A panic is one reply's, and says nothing of the update.
func TestAPanicCostsOneReply(t *testing.T) {
	w := newWorld(t)
	w.done(1, 2)
	c := w.config()
	c.Bot = &panicking{Sender: c.Bot}
	w.run(c)
	w.want(1, reply.Sent)
	w.wantPhase(1, job.ReplyIsClaimed)
	if !strings.Contains(w.lines.String(), "panic: a *errors.errorString") {
		t.Errorf("the log says\n%s", w.lines.String())
	}
}

// An end while a reply waits: it was not sent, and that is recorded.
func TestStoppedWhileAReplyWaits(t *testing.T) {
	w := newWorld(t)
	w.done(1)
	w.api.Fail("sendMessage", botapitest.Fault{RetryAfter: 7})
	ctx, cancel := context.WithCancel(context.Background())
	c := w.config()
	c.Clock = &stopping{w.clock, cancel}
	if err := reply.Run(ctx, context.Background(), c); err != nil {
		t.Fatal(err)
	}
	w.want(0, reply.Refused)
	if r := w.reply(1); !strings.HasPrefix(r.Reason, "stopped before it was sent; sendMessage: 429") {
		t.Errorf("recorded is %+v", r)
	}
}

// The checkpoint spares a restart what was read.
func TestTheCheckpointIsKept(t *testing.T) {
	w := newWorld(t)
	all := []int64{1, 2, 3, 4, 5}
	w.done(all...)
	w.run(w.config())
	c := w.config()
	counted := &counting{Log: w.log}
	c.Log = counted
	w.run(c)
	if want := 2 * len(all); counted.events != want { // the replies' own, behind the last job's
		t.Errorf("%d events were read again, want %d", counted.events, want)
	}
	if got := len(w.api.Messages()); got != len(all) {
		t.Errorf("%d messages, want %d", got, len(all))
	}
}

// A checkpoint of another log, or of a later state of this one, is not believed, and says
// that the log may have lost which replies were sent: nobody gets a second one.
func TestARestoredLogTellsNobodyAgain(t *testing.T) {
	other := newWorld(t)
	other.done(1, 2, 3, 4)
	other.run(other.config())
	w := newWorld(t)
	w.done(1)
	w.kept = other.kept
	_ = w.clock.Sleep(t.Context(), time.Second)
	w.run(w.config())
	w.want(0)
	w.done(2)
	w.run(w.config())
	w.want(1, reply.Sent)
}
