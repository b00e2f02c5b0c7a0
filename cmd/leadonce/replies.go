package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/metrics"
	"github.com/leadonce/leadonce/ingress/reply"
)

// openReplies makes what replies to people: one for each bot.
func (a *app) openReplies(m *metrics.Metrics) error {
	for _, id := range a.config.replyBots {
		client, err := botClient(id, apiURL(), 0)
		if err != nil {
			return err
		}
		c := reply.Config{
			Bot: client, Log: a.log, Clock: systemClock{}, IDs: randomIDs{}, Worker: workerName(),
			Texts: a.config.replies, Within: a.config.Reply.Within, Observe: m.Replied, Logger: a.logger,
		}
		if a.config.Log != logMemory {
			path := filepath.Join(a.config.DataDir, "reply-"+strconv.FormatInt(id, 10)+".json")
			c.Load = func() ([]byte, error) {
				data, err := os.ReadFile(path)
				if errors.Is(err, fs.ErrNotExist) {
					return nil, nil
				}
				return data, err
			}
			c.Save = func(data []byte) error { return replaceFile(path, data) }
		}
		a.replies = append(a.replies, c)
		a.closers = append(a.closers, func() error { client.Close(); return nil })
	}
	return nil
}

// reply replies for one bot. Its trouble holds up no job.
func (a *app) reply(ctx, calls context.Context, c reply.Config) {
	if err := reply.Run(ctx, calls, c); err != nil {
		a.logger.Error("no replies", "bot", c.Bot.Bot(), "error", err)
	}
}

// toldOutcomes lists the outcomes that have a text.
func toldOutcomes(c config) string {
	var list []string
	for _, o := range job.ReplyOutcomes() {
		if c.replies[o] != nil {
			list = append(list, string(o))
		}
	}
	return strings.Join(list, ", ")
}

// shownReply is a reply as commands show it.
type shownReply struct {
	State     job.ReplyPhase   `json:"state"` // claimed: under way, or its worker died; it is not sent again
	Outcome   job.ReplyOutcome `json:"outcome"`
	Worker    string           `json:"worker"`
	ClaimedAt string           `json:"claimed_at"`
	EndedAt   string           `json:"ended_at,omitempty"`
	MessageID int64            `json:"message_id,omitempty"`
	Reason    string           `json:"reason,omitempty"`
	Error     string           `json:"error,omitempty"` // why what follows is not known
}

// readReply is the reply about a job; nil when there is none.
func readReply(ctx context.Context, log eventlog.Log, key string) (*shownReply, error) {
	k, err := job.ParseKey(key)
	if err != nil {
		return nil, nil // a stopped job has no key
	}
	var r job.Reply
	shown := shownReply{}
	for e, err := range log.ReadStream(ctx, k.ReplyStream(), 0) {
		if err != nil {
			return nil, err
		}
		event, err := job.Decode(e.Type, e.Data)
		if err == nil {
			err = r.Allows(event)
		}
		if err != nil {
			shown.Error = err.Error()
			break
		}
		r = r.Evolve(event, e.Time)
	}
	if r.Phase == job.NoReply && shown.Error == "" {
		return nil, nil
	}
	shown.State, shown.Outcome, shown.Worker, shown.ClaimedAt = r.Phase, r.Claim.Outcome, r.Claim.Worker, stamp(r.ClaimedAt)
	shown.MessageID, shown.Reason = r.MessageID, r.Reason
	if !r.EndedAt.IsZero() {
		shown.EndedAt = stamp(r.EndedAt)
	}
	return &shown, nil
}
