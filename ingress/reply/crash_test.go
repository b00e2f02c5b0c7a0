package reply_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/reply"
)

// At most one message about a job, for every way in which a replier dies, is held up
// while another one runs, and sees its log and its requests fail. What is on the
// replies' streams is a claim and at most one ending, and an ending that proves
// something is true.
func TestNoFaultMakesTwoMessages(t *testing.T) {
	text := texts(t, job.LeadMade, job.LeftToHuman)
	seen := map[string]int{}
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 500
	}
	for seed := range seeds {
		c := &chaos{
			T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 42)), log: memory.New(), clock: &clock{now: began},
			texts: text, messages: map[string]int{}, seen: seen,
		}
		c.someJobs()
		for range c.random.IntN(4) {
			c.troubles = c.random.IntN(6)
			c.process(true)
			_ = c.clock.Sleep(context.Background(), []time.Duration{0, 0, time.Second, within}[c.random.IntN(4)])
		}
		c.troubles = 0
		c.process(true)
		c.judge()
	}
	for _, what := range []string{"died", "another ran", "lost answer", "lost append", "refused append", "too many", "refused", "not sent", "sent twice nearly"} {
		if seen[what] == 0 {
			t.Errorf("%q never happened: %v", what, seen)
		}
	}
}

// chaos is a world in which every call may go wrong.
type chaos struct {
	*testing.T
	seed     uint64
	random   *rand.Rand
	log      *memory.Log
	clock    *clock
	texts    map[job.ReplyOutcome]*rules.Reply
	messages map[string]int // by text: those that are there
	jobs     int64
	troubles int // that may still happen
	nested   bool
	kept     []byte
	seen     map[string]int
}

func (c *chaos) someJobs() {
	c.jobs = 1 + c.random.Int64N(3)
	for id := range c.jobs {
		update := strings.Replace(`{"update_id":%d,"message":{"message_id":1,"chat":{"id":5},"from":{"first_name":"NAME"},"text":"x"}}`, "NAME", fmt.Sprint(id), 1)
		events := []job.Event{received(c.T, id, update), job.JobClaimed{Worker: "w"}}
		if c.random.IntN(2) == 0 {
			events = append(events, job.ReconciliationNeeded{Human: true})
		}
		tellIn(c.T, c.log, c.clock.Now(), key(id).Stream(), append(events, job.LeadConfirmed{CRMID: "L"})...)
	}
}

// process runs a replier until it has read the log, or dies.
func (c *chaos) process(keep bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config := reply.Config{
		Bot: chaoticBot{c}, Log: finite{chaoticLog{c.log, c}, cancel}, Clock: c.clock, IDs: &everyID, Worker: "w", Texts: c.texts, Within: within,
		Load: func() ([]byte, error) {
			if c.random.IntN(2) == 0 {
				return nil, nil
			}
			return c.kept, nil
		},
	}
	if keep {
		config.Save = func(data []byte) error { c.kept = data; return nil }
	}
	var life sync.WaitGroup
	life.Go(func() { _ = reply.Run(ctx, context.Background(), config) })
	life.Wait()
}

// trouble is 0 for none, else 1 to kinds.
func (c *chaos) trouble(kinds int) int {
	if c.troubles == 0 || c.random.IntN(4) > 0 {
		return 0
	}
	c.troubles--
	return 1 + c.random.IntN(kinds)
}

// between is called around every effect: the process may die there, or be held up
// while another one runs.
func (c *chaos) between() {
	switch c.trouble(2) {
	case 1:
		c.seen["died"]++
		runtime.Goexit()
	case 2:
		if c.nested {
			return
		}
		c.seen["another ran"]++
		c.nested = true
		c.process(false)
		c.nested = false
	}
}

type chaoticLog struct {
	*memory.Log
	c *chaos
}

var errLost = errors.New("the answer is lost")

func (l chaoticLog) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	l.c.between()
	trouble := l.c.trouble(3)
	if trouble == 1 {
		l.c.seen["refused append"]++
		return eventlog.Appended{}, eventlog.ErrUnavailable
	}
	if trouble == 2 { // not recorded, and nobody knows
		return eventlog.Appended{}, &eventlog.UnknownError{Stream: stream, Err: errLost}
	}
	appended, err := l.Log.Append(ctx, stream, expected, events...)
	l.c.between()
	if trouble == 3 && err == nil {
		l.c.seen["lost append"]++
		return eventlog.Appended{}, &eventlog.UnknownError{Stream: stream, Err: errLost}
	}
	if eventlog.IsConflict(err) {
		l.c.seen["sent twice nearly"]++
	}
	return appended, err
}

func (l chaoticLog) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	if l.c.trouble(1) == 1 {
		return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, eventlog.ErrUnavailable) }
	}
	return l.Log.ReadStream(ctx, stream, from)
}

type chaoticBot struct{ c *chaos }

func (chaoticBot) Bot() int64 { return bot }

func (b chaoticBot) SendMessage(_ context.Context, m botapi.Message) (int64, error) {
	b.c.between()
	fail := func(what string, e botapi.Error) (int64, error) {
		b.c.seen[what]++
		return 0, &e
	}
	trouble := b.c.trouble(6)
	switch trouble {
	case 1:
		return fail("not sent", botapi.Error{NotSent: true})
	case 2:
		return fail("too many", botapi.Error{Status: 429, Code: 429, RetryAfter: 7 * time.Second})
	case 3:
		return fail("refused", botapi.Error{Status: 403, Code: 403})
	case 4:
		return fail("lost answer", botapi.Error{}) // without effect
	}
	b.c.messages[m.Text]++
	b.c.between()
	if trouble > 4 {
		return fail("lost answer", botapi.Error{Status: 502})
	}
	return int64(len(b.c.messages)), nil
}

// judge looks at what is there in the end.
func (c *chaos) judge() {
	defer func() {
		if c.Failed() {
			c.Logf("seed %d", c.seed)
		}
	}()
	for id := range c.jobs {
		sent := c.messages[fmt.Sprintf("Thank you, %d. We will call you.", id)]
		if sent > 1 {
			c.Fatalf("%d messages about job %d", sent, id)
		}
		r := replyIn(c.T, c.log, id)
		switch {
		case r.Phase == job.ReplyIsSent && sent != 1, r.Phase == job.ReplyIsRefused && sent != 0, r.Phase == job.NoReply && sent != 0:
			c.Fatalf("the reply about job %d is %q, and %d messages are there", id, r.Phase, sent)
		}
	}
}
