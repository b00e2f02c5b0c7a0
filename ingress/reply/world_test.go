package reply_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
	"github.com/leadonce/leadonce/ingress/reply"
)

// doomedLog names the log of a child that is killed.
const doomedLog = "LEADONCE_TEST_DOOMED_LOG"

func TestMain(m *testing.M) {
	if os.Getenv(doomedLog) != "" {
		os.Exit(m.Run()) // it is killed
	}
	goleak.VerifyTestMain(m)
}

const (
	bot    = 424242
	token  = "424242:canary-token_of-the-bot"
	thanks = "Thank you, Ada canary. We will call you."
	within = 10 * time.Minute
)

var began = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func key(id int64) job.Key { return job.Key{Bot: bot, Update: id} }

// clock stands still but for Sleep, which moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

type ids struct{ n atomic.Uint64 }

func (i *ids) New() (id eventlog.EventID) {
	binary.BigEndian.PutUint64(id[8:], i.n.Add(1))
	return id
}

var everyID ids

// texts has one for each outcome.
func texts(t testing.TB, outcomes ...job.ReplyOutcome) map[job.ReplyOutcome]*rules.Reply {
	t.Helper()
	list := map[job.ReplyOutcome]*rules.Reply{}
	for _, o := range outcomes {
		text := "Thank you, ${user.name}. We will call you."
		if o != job.LeadMade {
			text = string(o) + " ${crm_id}"
		}
		r, err := rules.NewReply("test.yaml", "reply", string(o), text)
		if err != nil {
			t.Fatal(err)
		}
		list[o] = r
	}
	return list
}

// world is a log, a Bot API and what a replier was told.
type world struct {
	*testing.T
	log   eventlog.Log
	api   *botapitest.Server
	clock *clock
	texts map[job.ReplyOutcome]*rules.Reply

	mu    sync.Mutex
	told  []reply.Result
	kept  []byte // checkpoint
	lines bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	api, err := botapitest.New(token, botapitest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	w := &world{T: t, log: memory.New(), api: api, clock: &clock{now: began}, texts: texts(t, job.LeadMade)}
	t.Cleanup(func() {
		if got := w.lines.String(); strings.Contains(got, "canary") {
			t.Errorf("the log shows what it must not:\n%s", got)
		}
	})
	return w
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.Write(p)
}

// tell appends events to the stream, now.
func (w *world) tell(stream string, events ...job.Event) {
	w.Helper()
	tellIn(w.T, w.log, w.clock.Now(), stream, events...)
}

func tellIn(t testing.TB, log eventlog.Log, at time.Time, stream string, events ...job.Event) {
	t.Helper()
	for _, e := range events {
		name, data, err := job.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		_, err = log.Append(context.Background(), stream, eventlog.Any, eventlog.Proposed{ID: everyID.New(), Type: name, Time: at, Data: data})
		if err != nil {
			t.Fatal(err)
		}
	}
}

const said = `{"update_id":%d,"message":{"message_id":70,"chat":{"id":5,"type":"private"},"from":{"id":6,"first_name":"Ada","last_name":"canary"},"text":"canary"}}`

func received(t testing.TB, id int64, format string) job.UpdateReceived {
	t.Helper()
	u, err := job.ParseUpdate(bot, fmt.Appendf(nil, format, id))
	if err != nil {
		t.Fatal(err)
	}
	return job.Receive(u, key(id))
}

// job is a job with these events, of a message or another update.
func (w *world) job(id int64, format string, events ...job.Event) {
	w.Helper()
	w.tell(key(id).Stream(), append([]job.Event{received(w.T, id, format), job.JobClaimed{Worker: "w"}}, events...)...)
}

func (w *world) done(ids ...int64) {
	w.Helper()
	for _, id := range ids {
		w.job(id, said, job.LeadConfirmed{CRMID: fmt.Sprint("L-", id), How: job.ByCreate})
	}
}

func (w *world) client() *botapi.Client {
	w.Helper()
	client, err := botapi.New(botapi.Config{Token: token, BaseURL: w.api.URL})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(client.Close)
	return client
}

func (w *world) config() reply.Config {
	w.Helper()
	return reply.Config{
		Bot: w.client(), Log: w.log, Clock: w.clock, IDs: &everyID, Worker: "w", Texts: w.texts, Within: within,
		Load:    func() ([]byte, error) { return w.kept, nil },
		Save:    func(data []byte) error { w.kept = data; return nil },
		Observe: w.observe, Logger: slog.New(slog.NewJSONHandler(w, nil)),
	}
}

func (w *world) observe(r reply.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, r)
}

// run lets a replier read the log to its end.
func (w *world) run(c reply.Config) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.Log = finite{c.Log, cancel}
	if err := reply.Run(ctx, context.Background(), c); err != nil {
		w.Fatal(err)
	}
}

// finite is a log that nobody appends to: its subscription ends the replier.
type finite struct {
	eventlog.Log
	end context.CancelFunc
}

func (l finite) Subscribe(ctx context.Context, after eventlog.Position, handle eventlog.Handler) error {
	for {
		n := 0
		for r, err := range l.ReadAll(ctx, after) {
			if err != nil {
				return err
			}
			if err := handle(ctx, r); err != nil {
				return err
			}
			after, n = r.Position, n+1
		}
		if n == 0 {
			l.end()
			return ctx.Err()
		}
	}
}

// want demands the results that were told, and the messages that are there.
func (w *world) want(messages int, results ...reply.Result) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.told, results) {
		w.Errorf("told are %v, want %v", w.told, results)
	}
	if sent := w.api.Messages(); len(sent) != messages {
		w.Errorf("the person has got %+v, want %d", sent, messages)
	}
}

func (w *world) reply(id int64) job.Reply {
	w.Helper()
	return replyIn(w.T, w.log, id)
}

// replyIn is the fold of the reply about a job.
func replyIn(t testing.TB, log eventlog.Log, id int64) (r job.Reply) {
	t.Helper()
	for e, err := range log.ReadStream(context.Background(), key(id).ReplyStream(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		event, err := job.Decode(e.Type, e.Data)
		if err == nil {
			err = r.Allows(event)
		}
		if err != nil {
			t.Fatal(err)
		}
		r = r.Evolve(event, e.Time)
	}
	return r
}

func (w *world) wantPhase(id int64, want job.ReplyPhase) {
	w.Helper()
	if got := w.reply(id); got.Phase != want {
		w.Errorf("the reply about %d is %+v, want %q", id, got, want)
	}
}
