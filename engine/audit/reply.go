package audit

import (
	"context"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// reply checks one stream of a reply: one claim, and one ending at most. A claim
// without an ending is none of anybody's mistakes: its worker may be at it, or dead.
func (v *verifier) reply(ctx context.Context, stream string) error {
	var reply job.Reply
	next := uint64(0)
	for r, err := range v.log.ReadStream(ctx, stream, 0) {
		if err != nil {
			return err
		}
		event, ok := v.decode(r, next)
		next = r.Revision + 1
		if !ok {
			return nil
		}
		if err := reply.Allows(event); err != nil {
			v.find(Illegal, stream, "revision %d: %v", r.Revision, err)
			continue
		}
		reply = reply.Evolve(event, r.Time)
	}
	if reply.Phase == job.NoReply {
		return nil // a finding already
	}
	v.report.Replies[reply.Phase]++
	key := reply.Claim.Key
	if key.ReplyStream() != stream {
		v.find(Illegal, stream, "holds the reply about %s", key)
		return nil
	}
	// A job is stored before it is replied to, so a log in use has it by now.
	exists, err := v.exists(ctx, key)
	if err == nil && !exists {
		v.find(Illegal, stream, "is about %s, which does not exist", key)
	}
	return err
}

// bot counts what a bot's stream says.
func (v *verifier) bot(ctx context.Context, stream string) error {
	return v.each(ctx, stream, func(r eventlog.Recorded, event job.Event) error {
		dropped, ok := event.(job.PendingUpdatesDropped)
		if !ok || job.BotStream(dropped.Bot) != stream {
			v.find(Illegal, stream, "revision %d: %s is not about this bot", r.Revision, event.Name())
			return nil
		}
		v.report.Drops++
		v.report.Dropped += dropped.Count
		return nil
	})
}
