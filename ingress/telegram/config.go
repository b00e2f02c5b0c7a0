package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/job"
)

// Accepter stores updates; *engine.Engine is one. It must not keep u.Raw after
// it returns.
type Accepter interface {
	// Accept stores the update, or proves that it is stored. Its error leaves
	// that open.
	Accept(ctx context.Context, u job.Update) (job.Key, engine.Acceptance, error)

	// Stored reports whether the update is stored already. It writes nothing.
	Stored(ctx context.Context, u job.Update) (bool, error)
}

// Bot is one bot whose updates are taken.
type Bot struct {
	ID int64 // the number in front of the token's colon

	// Secrets are the accepted secret_token values of setWebhook: one, or two
	// while one is being replaced by the other.
	Secrets []string
}

// Config is what a Handler is made of. Bots and Accepter must be set; each other
// field left zero has its default.
type Config struct {
	Bots     []Bot
	Accepter Accepter

	// Full reports whether no new update may be added to the backlog. Default:
	// never.
	Full func() bool

	// Observe is told of every delivery. It must not block.
	Observe func(Delivery)

	// Logger gets one line a delivery: what is stored at debug, the rest higher.
	// Default: none.
	Logger *slog.Logger

	// Remote is the sender's address for the log. Default: the connection's.
	Remote func(*http.Request) string

	// AcceptTimeout bounds the append, ProofTimeout the look whether an update
	// is stored whose append failed. They go on when the client is gone. With
	// the time to read the body they must stay below the 60 s after which
	// Telegram gives up. Default 20 s and 5 s.
	AcceptTimeout, ProofTimeout time.Duration

	// BodyMemory bounds the bytes of the bodies in hand at one time. A delivery
	// above it waits up to WaitTimeout, then is answered 503. Then it has
	// BodyTimeout to send its body. Default 64 MiB, 5 s, 10 s.
	BodyMemory               int64
	WaitTimeout, BodyTimeout time.Duration

	// RetryAfter is what a 503 asks Telegram to wait, in whole seconds; it obeys
	// up to 3600. Default 5 s.
	RetryAfter time.Duration
}

func (c Config) withDefaults() Config {
	if c.Full == nil {
		c.Full = func() bool { return false }
	}
	if c.Observe == nil {
		c.Observe = func(Delivery) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Remote == nil {
		c.Remote = func(r *http.Request) string { return r.RemoteAddr }
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&c.AcceptTimeout, 20 * time.Second},
		{&c.ProofTimeout, 5 * time.Second},
		{&c.WaitTimeout, 5 * time.Second},
		{&c.BodyTimeout, 10 * time.Second},
		{&c.RetryAfter, 5 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.standard
		}
	}
	if c.BodyMemory <= 0 {
		c.BodyMemory = 64 << 20
	}
	c.BodyMemory = max(c.BodyMemory, MaxBody)
	return c
}

// bot is a Bot in the form that a delivery needs.
type bot struct {
	id      int64
	secrets secrets
}

// New is a handler of POST /telegram/{bot}. It refuses a bot without a proper
// secret; the error is one line that names the bot and no secret.
func New(c Config) (*Handler, error) {
	if c.Accepter == nil {
		return nil, errors.New("telegram webhook: no accepter")
	}
	if len(c.Bots) == 0 {
		return nil, errors.New("telegram webhook: no bot: configure one with its id and secret")
	}
	c = c.withDefaults()
	h := &Handler{
		Config: c, bots: make(map[string]*bot, len(c.Bots)),
		memory:     semaphore.NewWeighted(c.BodyMemory),
		retryAfter: []string{strconv.Itoa(max(1, int(c.RetryAfter/time.Second)))},
	}
	for _, b := range c.Bots {
		if b.ID <= 0 {
			return nil, fmt.Errorf("telegram webhook: bot %d: the id is the number in front of the token's colon", b.ID)
		}
		name := strconv.FormatInt(b.ID, 10)
		if h.bots[name] != nil {
			return nil, fmt.Errorf("telegram webhook: bot %d is configured twice: keep one", b.ID)
		}
		secrets, err := digest(b.Secrets)
		if err != nil {
			return nil, fmt.Errorf("telegram webhook: bot %d: %w", b.ID, err)
		}
		h.bots[name] = &bot{b.ID, secrets}
	}
	return h, nil
}
