package poll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// atOnce is how many updates are stored at the same time. A log that syncs once for
// several appends is much faster with more than one.
const atOnce = 16

// buttonTimeout bounds the answer to a pressed button.
const buttonTimeout = 5 * time.Second

var errNotStored = errors.New("not stored")

// fetched is one update of a batch.
type fetched struct {
	update  job.Update
	odd     error // what makes it no update
	durable bool
}

// store makes a batch durable, and moves the offset behind the updates that are, up
// to the first that is not. Updates of one chat are stored in their order.
func (p *poller) store(ctx context.Context, updates []json.RawMessage) error {
	batch := make([]fetched, len(updates))
	chats := map[int64][]*fetched{}
	for i, raw := range updates {
		f := &batch[i]
		f.update, f.odd = job.ParseUpdate(p.bot.Bot(), raw)
		chats[f.update.Chat] = append(chats[f.update.Chat], f)
	}
	var failed atomic.Bool // the log takes no appends: leave it in peace
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, chat := range chats {
		group.Go(func() error {
			var first error
			for _, f := range chat {
				if failed.Load() {
					break
				}
				err := p.accept(ctx, f)
				first = errors.Join(first, err)
				if err != nil && f.odd == nil {
					failed.Store(true)
				}
			}
			return first
		})
	}
	cause := group.Wait()
	p.answerButtons(ctx, batch)
	for _, f := range batch {
		if !f.durable {
			return cause
		}
		if f.update.ID < 0 || f.update.ID == math.MaxInt64 {
			return fmt.Errorf("update %d is stored, and no offset can confirm it", f.update.ID)
		}
		p.offset = f.update.ID + 1
	}
	return nil
}

// accept stores one update, as it came.
func (p *poller) accept(ctx context.Context, f *fetched) error {
	began := time.Now()
	d := telegram.Delivery{Bot: p.bot.Bot(), Result: telegram.Unavailable}
	var cause error
	defer func() {
		d.Took = time.Since(began)
		p.Observe(d)
		p.log(d, cause)
	}()
	if f.odd != nil {
		d.Result, cause = telegram.Bad, job.ErrNotUpdate
		return fmt.Errorf("an update is %w: %w", errNotStored, job.ErrNotUpdate)
	}
	u := f.update
	d.UpdateID, d.Chat, d.User, d.Kind = u.ID, u.Chat, u.User, telegram.Label(u.Kind)
	ctx, cancel := context.WithTimeout(ctx, p.AcceptTimeout)
	defer cancel()
	_, acceptance, err := p.Accepter.Accept(ctx, u)
	if err != nil {
		cause = err
		return fmt.Errorf("update %d is %w: %w", u.ID, errNotStored, err)
	}
	d.Result, f.durable = telegram.Result(acceptance), true
	return nil
}

func (p *poller) log(d telegram.Delivery, cause error) {
	level := slog.LevelDebug
	switch d.Result {
	case telegram.Duplicate:
		level = slog.LevelInfo
	case telegram.Conflicted, telegram.Bad:
		level = slog.LevelWarn
	case telegram.Unavailable:
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("result", string(d.Result)), slog.Int64("bot", d.Bot), slog.Int64("update_id", d.UpdateID),
		slog.Int64("chat", d.Chat), slog.Int64("user", d.User), slog.String("kind", d.Kind), slog.Duration("took", d.Took),
	}
	if cause != nil {
		attrs = append(attrs, slog.String("error", cause.Error()))
	}
	p.Logger.LogAttrs(context.Background(), level, "fetched", attrs...)
}

// answerButtons ends the wait of those who pressed one. It is a courtesy: what
// fails is not tried again, and delays no update.
func (p *poller) answerButtons(ctx context.Context, batch []fetched) {
	ctx, cancel := context.WithTimeout(ctx, buttonTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, f := range batch {
		id := telegram.CallbackQueryID(f.update)
		if !f.durable || id == "" {
			continue
		}
		group.Go(func() error {
			if err := p.bot.AnswerCallbackQuery(ctx, id); err != nil {
				p.Logger.Debug("a button is not answered", "bot", p.bot.Bot(), "update_id", f.update.ID, "error", err.Error())
			}
			return nil
		})
	}
	_ = group.Wait() // there is no error
}
