package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leadonce/leadonce/ingress/botapi"
)

// Run fetches for every bot until ctx ends; then the updates in hand become
// durable first, and Run returns nil. What fails is tried again for ever. An error
// is a mistake in the configuration: a bot whose token Telegram does not know from
// the beginning.
func Run(ctx context.Context, c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, b := range c.Bots {
		p := &poller{Config: c, bot: b}
		group.Go(func() error { return p.run(ctx) })
	}
	return group.Wait()
}

// poller fetches for one bot.
type poller struct {
	Config
	bot *botapi.Client

	// offset is what the next call confirms: all below it. 0: nothing. It is
	// Telegram's cursor and tells nothing about what is stored.
	offset int64

	welcome  bool // a call has succeeded
	failures int  // since then
}

// fullPause is how long a poller waits before it looks again whether the backlog
// has room.
const fullPause = time.Second

// farewell is how long the last call may take, which only spares duplicates.
const farewell = 5 * time.Second

func (p *poller) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if p.Full() {
			_ = p.Sleep(ctx, fullPause)
			continue
		}
		err := p.round(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			p.succeeded()
		case !p.welcome && botapi.Unauthorized(err):
			return fmt.Errorf("bot %d: its token is refused: give the one that @BotFather shows now: %w", p.bot.Bot(), err)
		default:
			_ = p.Sleep(ctx, p.failed(err))
		}
	}
	if p.offset > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		_, _ = p.bot.GetUpdates(ctx, p.offset, 1, 0)
	}
	p.bot.Close()
	return nil
}

// round confirms what the round before has stored, fetches, and stores.
func (p *poller) round(ctx context.Context) error {
	updates, err := p.bot.GetUpdates(ctx, p.offset, botapi.MaxUpdates, p.Wait)
	if ctx.Err() == nil {
		p.Fetched(Fetch{p.bot.Bot(), troubleOf(err)})
	}
	if err != nil {
		return err
	}
	// What the call confirmed is forgotten by now. The offset must go: after a week
	// without updates Telegram begins anew at a random id, and what comes below an
	// offset would be forgotten unseen.
	p.offset = 0
	p.welcome = true
	return p.store(context.WithoutCancel(ctx), updates)
}

func (p *poller) succeeded() {
	if p.failures > 0 {
		p.Logger.Info("updates are fetched again", "bot", p.bot.Bot())
	}
	p.failures = 0
}

// failed logs and returns how long to wait.
func (p *poller) failed(err error) time.Duration {
	wait := p.BackoffFirst
	for range p.failures {
		wait = min(2*wait, p.BackoffMax)
	}
	p.failures++
	wait = wait/2 + rand.N(wait/2+1)
	var refused *botapi.Error
	if errors.As(err, &refused) && refused.RetryAfter > 0 {
		wait = refused.RetryAfter
	}
	level, mend := slog.LevelWarn, "none is lost: Telegram keeps them for 24 hours"
	switch known, ok := mends[troubleOf(err)]; {
	case errors.Is(err, errNotStored):
		level = slog.LevelError
	case ok:
		level, mend = slog.LevelError, known
	}
	p.Logger.Log(context.Background(), level, "updates are not fetched", "bot", p.bot.Bot(), "error", err.Error(), "mend", mend, "again_in", wait.Round(time.Millisecond))
	return wait
}
