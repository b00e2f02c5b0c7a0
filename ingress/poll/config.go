package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// Config is what Run fetches with. Bots and Accepter must be set; each other field
// left zero has its default.
type Config struct {
	Bots     []*botapi.Client // one a bot
	Accepter telegram.Accepter

	// Full reports whether no new update may be added to the backlog. None is
	// fetched meanwhile. Default: never.
	Full func() bool

	// Observe is told of every update that was fetched, each time. It must not
	// block. Default: nobody.
	Observe func(telegram.Delivery)

	// Fetched is told of every call of getUpdates, but for one that the end of Run
	// broke off. It must not block. Default: nobody.
	Fetched func(Fetch)

	// Logger gets a line for each update, what is stored at debug, the rest higher;
	// and one whenever fetching begins to fail, fails again, or works again.
	// Default: none.
	Logger *slog.Logger

	// Wait is how long Telegram may hold a call until there is an update, in whole
	// seconds. Default botapi.MaxPoll, 50 s, which is also the most.
	Wait time.Duration

	// AcceptTimeout bounds the append of one update. Default 20 s.
	AcceptTimeout time.Duration

	// BackoffFirst is the pause after a call or an append that failed. It doubles
	// up to BackoffMax. Default 1 s and 60 s.
	BackoffFirst, BackoffMax time.Duration

	// Sleep waits. Default: on a timer.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (c Config) withDefaults() (Config, error) {
	if c.Accepter == nil {
		return c, errors.New("long polling: no accepter")
	}
	if len(c.Bots) == 0 {
		return c, errors.New("long polling: no bot: configure one with its token")
	}
	seen := map[int64]bool{}
	for _, b := range c.Bots {
		if seen[b.Bot()] {
			return c, fmt.Errorf("long polling: bot %d is there twice: keep one", b.Bot())
		}
		seen[b.Bot()] = true
	}
	if c.Full == nil {
		c.Full = func() bool { return false }
	}
	if c.Observe == nil {
		c.Observe = func(telegram.Delivery) {}
	}
	if c.Fetched == nil {
		c.Fetched = func(Fetch) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&c.Wait, botapi.MaxPoll}, {&c.AcceptTimeout, 20 * time.Second}, {&c.BackoffFirst, time.Second}, {&c.BackoffMax, time.Minute},
	} {
		if *d.field <= 0 {
			*d.field = d.standard
		}
	}
	return c, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
