package reply

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
	"github.com/leadonce/leadonce/ingress/botapi"
)

// Sender sends messages as one bot: a *botapi.Client without Patience.
type Sender interface {
	Bot() int64
	SendMessage(ctx context.Context, m botapi.Message) (messageID int64, err error)
}

// Config is what a replier is made of. Each field up to Within must be set.
type Config struct {
	Bot    Sender
	Log    eventlog.Log
	Clock  engine.Clock
	IDs    engine.IDs
	Worker string // names this process in its claims
	Texts  map[job.ReplyOutcome]*rules.Reply
	Within time.Duration // how old an outcome may be

	// Load and Save keep the checkpoint over restarts. Losing it costs the reading of
	// the log from its start. Default: it is not kept.
	Load func() ([]byte, error)
	Save func([]byte) error

	// Observe is told how each reply ended. It must not block. Default: nobody.
	Observe func(Result)

	// Logger gets a line for each of them, without text or names, and one for trouble.
	// Default: none.
	Logger *slog.Logger
}

// Result is how a reply ended.
type Result string

// The results.
const (
	Sent      Result = "sent"
	Refused   Result = "refused"   // proven: it was not sent, and will not be
	Unknown   Result = "unknown"   // it may have been sent, and is not sent again
	Late      Result = "late"      // Telegram asked to wait until it was too old; not claimed
	Unwritten Result = "unwritten" // its text cannot be evaluated for this update; not claimed
)

// Results lists them.
func Results() []Result { return []Result{Sent, Refused, Unknown, Late, Unwritten} }

func (c Config) withDefaults() (Config, error) {
	if c.Bot == nil || c.Log == nil || c.Clock == nil || c.IDs == nil || c.Worker == "" || len(c.Texts) == 0 || c.Within <= 0 {
		return c, errors.New("replies: bot, log, clock, ids, worker, texts and within are needed")
	}
	if c.Load == nil {
		c.Load = func() ([]byte, error) { return nil, nil }
	}
	if c.Save == nil {
		c.Save = func([]byte) error { return nil }
	}
	if c.Observe == nil {
		c.Observe = func(Result) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
