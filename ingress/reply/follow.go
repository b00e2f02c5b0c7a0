package reply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// replier replies for one bot.
type replier struct {
	Config
	streams string // prefix of the bot's jobs

	// calls is the context of what has begun: it ends later than that of Run, so that
	// a request under way gets its answer.
	calls context.Context

	checkpoint eventlog.Checkpoint // of an event of a job
	saved      time.Time
	since      time.Time // nothing older is told
	notBefore  time.Time // Telegram asked to be left alone until then
	stuck      bool      // nothing was handled since trouble was told
}

// saveEvery bounds what a restart reads again.
const saveEvery = 15 * time.Second

// Run replies until ctx ends. A request that is under way then, and the record of what
// came of it, may take until calls ends. What fails is tried again. The error is a
// mistake in the configuration.
func Run(ctx, calls context.Context, c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	r := &replier{Config: c, streams: job.JobStreamsOf(c.Bot.Bot()), calls: calls, saved: c.Clock.Now()}
	restored := false
	for ctx.Err() == nil {
		if !restored {
			err = r.restore(ctx)
			restored = err == nil
		}
		if restored {
			err = r.Log.Subscribe(ctx, r.checkpoint.Position, r.handle)
		}
		if ctx.Err() == nil {
			if !r.stuck {
				r.Logger.Warn("replies stand still, they are tried again", "bot", c.Bot.Bot(), "error", err)
			}
			r.stuck = true
			_ = c.Clock.Sleep(ctx, engine.TroublePause)
		}
	}
	r.save()
	return nil
}

// handle takes one event. An error has it handled again.
func (r *replier) handle(ctx context.Context, e eventlog.Recorded) error {
	if !strings.HasPrefix(e.Stream, job.JobStreams) {
		return nil
	}
	// Most of a log is too old, or of another bot. It is not even decoded.
	if strings.HasPrefix(e.Stream, r.streams) && r.Clock.Now().Before(e.Time.Add(r.Within)) && !e.Time.Before(r.since) {
		if err := r.consider(ctx, e); err != nil {
			return err
		}
	}
	r.checkpoint, r.stuck = eventlog.CheckpointOf(e), false
	if now := r.Clock.Now(); now.Sub(r.saved) >= saveEvery {
		r.saved = now
		r.save()
	}
	return nil
}

// kept is a checkpoint as it is saved.
type kept struct {
	Position string           `json:"position"`
	Stream   string           `json:"stream"`
	Revision uint64           `json:"revision"`
	EventID  eventlog.EventID `json:"event_id"`
}

func (r *replier) save() {
	c := r.checkpoint
	if c.Position == eventlog.Start {
		return
	}
	data, err := json.Marshal(kept{c.Position.String(), c.Stream, c.Revision, c.EventID})
	if err == nil {
		err = r.Save(data)
	}
	if err != nil {
		r.Logger.Warn("the checkpoint of the replies is not saved", "bot", r.Bot.Bot(), "error", err)
	}
}

// restore goes on from the saved checkpoint; without one, the log is read from its
// start. One that the log does not have says that the log was restored or is another
// one: it may have lost which replies were sent, so nothing that is older than now is
// told. The error is the log's.
func (r *replier) restore(ctx context.Context) error {
	c, err := r.load()
	if err != nil {
		r.Logger.Warn("the checkpoint of the replies is not used, the log is read from its start", "bot", r.Bot.Bot(), "error", err)
		return nil
	}
	ours, err := c.BelongsTo(ctx, r.Log)
	if err != nil {
		return fmt.Errorf("compare the checkpoint with the log: %w", err)
	}
	if ours {
		r.checkpoint = c
		return nil
	}
	r.since = r.Clock.Now()
	r.Logger.Warn("the log is not the one of the last replies: nobody is told of what is older than now", "bot", r.Bot.Bot())
	return nil
}

func (r *replier) load() (c eventlog.Checkpoint, err error) {
	data, err := r.Load()
	if err != nil || len(data) == 0 {
		return c, err
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return c, err
	}
	position, err := eventlog.ParsePosition(k.Position)
	if err != nil {
		return c, err
	}
	return eventlog.Checkpoint{Position: position, Stream: k.Stream, Revision: k.Revision, EventID: k.EventID}, nil
}
