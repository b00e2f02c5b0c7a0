package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// migrate records which chat the update's was before. Telegram delivers the updates of
// a chat one after the other, so what is recorded before one is answered is known to
// all that come after it.
func (e *Engine) migrate(ctx context.Context, m job.ChatMigrated) error {
	proposed, err := e.propose(e.Clock.Now(), m)
	if err != nil {
		return err
	}
	err = e.append(ctx, job.ChatStream(m.Bot, m.To), eventlog.NoStream, proposed...)
	if eventlog.IsConflict(err) {
		return nil // the other service message, or an earlier delivery of this one
	}
	return err
}

// maxMigrations bounds the way back to a chat's first id. Telegram makes a group a
// supergroup once.
const maxMigrations = 4

// origin is the id that the chat had first. Only groups migrate, and their ids are
// negative.
func (e *Engine) origin(ctx context.Context, bot, chat int64) (int64, error) {
	for range maxMigrations {
		if chat >= 0 {
			break
		}
		stream := job.ChatStream(bot, chat)
		migrated, err := history[job.ChatMigrated](ctx, e.Log, stream)
		if err != nil || len(migrated) == 0 {
			return chat, err
		}
		chat = migrated[0].From
	}
	return chat, nil
}

// join makes the job one of its series: of one that is open, or of a new one.
func (e *Engine) join(ctx context.Context, s job.State, series job.Series, chat int64) (job.SeriesJoined, error) {
	stream := job.SeriesStream(s.Key.Bot, series.Name, chat, s.User)
	before, err := history[job.SeriesJoined](ctx, e.Log, stream)
	if err != nil {
		return job.SeriesJoined{}, err
	}
	joined, recorded := series.Join(before, s.Key)
	if recorded {
		return joined, nil
	}
	proposed, err := e.propose(e.Clock.Now(), joined)
	if err != nil {
		return joined, err
	}
	expected := eventlog.NoStream
	if len(before) > 0 {
		expected = eventlog.Exactly(uint64(len(before) - 1))
	}
	return joined, e.append(ctx, stream, expected, proposed...)
}

// history reads a stream that has events of one kind only.
func history[E job.Event](ctx context.Context, log eventlog.Log, stream string) (events []E, err error) {
	for r, err := range log.ReadStream(ctx, stream, 0) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		decoded, err := job.Decode(r.Type, r.Data)
		event, ok := decoded.(E)
		if err == nil && !ok {
			err = errors.New("not an event of this stream")
		}
		if err != nil {
			return nil, &StoppedError{stream, r.Revision, r.Position, err}
		}
		events = append(events, event)
	}
	return slices.Clip(events), nil
}

// plan is what the job's update asks for. What it joins and where its chat comes from
// is settled before the first claim, and recorded in it.
func (e *Engine) plan(ctx context.Context, s job.State) (job.Plan, error) {
	if s.OperationID != "" && s.Fields != "" {
		return s.Bind(job.Plan{}), nil
	}
	update := s.AsUpdate()
	origin, err := e.origin(ctx, s.Key.Bot, s.Chat)
	if err != nil {
		return job.Plan{}, err
	}
	update.Origin = origin
	plan := s.Bind(e.Plan(s.Key, update))
	if plan.Series.Window > 0 && plan.Effect && s.OperationID == "" {
		joined, err := e.join(ctx, s, plan.Series, origin)
		if err != nil {
			return job.Plan{}, err
		}
		plan.BusinessKey = joined.BusinessKey()
	}
	return plan, nil
}
