package reply

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
	"github.com/leadonce/leadonce/ingress/botapi"
)

// answer is one reply on its way.
type answer struct {
	key     job.Key
	outcome job.ReplyOutcome
	message botapi.Message
	until   time.Time // the request does not leave after it
}

// consider replies if the event is an outcome that is to be told. An error is the
// log's; nothing was sent then. A panic costs this reply and nothing else.
func (r *replier) consider(ctx context.Context, e eventlog.Recorded) (err error) {
	defer func() {
		if p := recover(); p != nil { // its value may quote the update
			err = nil
			r.Logger.Error("a reply is left out", "stream", e.Stream, "error", fmt.Sprintf("panic: a %T", p))
		}
	}()
	event, err := job.Decode(e.Type, e.Data)
	if err != nil {
		return nil // it stops its job, which others tell
	}
	outcome, ok := job.OutcomeOf(event)
	text := r.Texts[outcome]
	if !ok || text == nil {
		return nil
	}
	told, err := r.read(ctx, e.Stream)
	if err != nil || !told.Tells(e.Revision) {
		return err
	}
	a := answer{key: told.Key, outcome: outcome, until: e.Time.Add(r.Within)}
	if a.message, err = write(text, told.State); err != nil {
		r.end(a, Unwritten, "the text cannot be evaluated for this update")
		return nil
	}
	if a.message.Text == "" {
		return nil
	}
	if wait := r.notBefore.Sub(r.Clock.Now()); wait > 0 {
		if r.notBefore.After(a.until) {
			r.end(a, Late, "Telegram asked to wait longer than a reply may")
			return nil
		}
		if err := r.Clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	mine, err := r.claim(ctx, a)
	if err != nil || !mine {
		return err
	}
	r.record(a, r.send(ctx, a))
	return nil
}

// read folds the job. One that is stopped tells nothing.
func (r *replier) read(ctx context.Context, stream string) (job.Telling, error) {
	var t job.Telling
	for e, err := range r.Log.ReadStream(ctx, stream, 0) {
		if err != nil {
			return t, fmt.Errorf("read %s: %w", stream, err)
		}
		event, err := job.Decode(e.Type, e.Data)
		if err != nil {
			return job.Telling{}, nil
		}
		t = t.Evolve(event, e.Time)
	}
	return t, nil
}

// write is the message about a job; its text is empty when nothing is to be said.
func write(text *rules.Reply, s job.State) (botapi.Message, error) {
	u, err := job.ParseUpdate(s.Key.Bot, []byte(s.Update))
	if err != nil {
		return botapi.Message{}, err
	}
	crmID := s.CRMID
	if crmID == "" {
		crmID = s.SharedCRMID
	}
	letter, err := text.Write(u, crmID)
	return botapi.Message{Chat: s.Chat, Text: letter.Text, ReplyTo: letter.MessageID}, err
}

// claim makes the reply this process's own, or finds that it is another's, or that
// the time is over. With an error it is not known, and nothing may be sent: whoever
// asks again finds it taken.
func (r *replier) claim(ctx context.Context, a answer) (mine bool, err error) {
	proposed, err := r.propose(job.ReplyClaimed{Key: a.key, Worker: r.Worker, Outcome: a.outcome, Until: a.until})
	if err != nil {
		return false, err
	}
	for r.Clock.Now().Before(a.until) {
		_, err := r.Log.Append(ctx, a.key.ReplyStream(), eventlog.NoStream, proposed)
		if err == nil || eventlog.IsConflict(err) {
			return err == nil, nil
		}
		// The same id again: should it be there already, that succeeds.
		if err := r.Clock.Sleep(ctx, engine.TroublePause); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (r *replier) propose(e job.Event) (eventlog.Proposed, error) {
	name, data, err := job.Encode(e)
	return eventlog.Proposed{ID: r.IDs.New(), Type: name, Time: r.Clock.Now(), Data: data}, err
}

// The waits before a request that did not leave is made again.
const (
	retryFirst = time.Second
	retryMax   = 30 * time.Second
)

// send makes the request, and makes it again only when the one before is proven to
// have had no effect. It returns what is to be recorded.
func (r *replier) send(ctx context.Context, a answer) job.Event {
	reason := "it was too old when it could be sent"
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		switch {
		case ctx.Err() != nil:
			return job.ReplyRefused{Reason: "stopped before it was sent; " + reason}
		case !r.Clock.Now().Before(a.until):
			return job.ReplyRefused{Reason: "not sent in time; " + reason}
		}
		id, err := r.Bot.SendMessage(r.calls, a.message)
		switch {
		case err == nil:
			return job.ReplySent{MessageID: id}
		case !botapi.NotDone(err):
			return job.ReplyUnknown{Reason: err.Error()}
		case !botapi.Temporary(err):
			return job.ReplyRefused{Reason: err.Error()}
		}
		reason = err.Error()
		pause := wait
		if asked := botapi.RetryAfter(err); asked > 0 {
			pause = asked
			r.notBefore = r.Clock.Now().Add(asked)
		}
		if r.Clock.Now().Add(pause).After(a.until) {
			return job.ReplyRefused{Reason: "not sent in time; " + reason}
		}
		_ = r.Clock.Sleep(ctx, pause) // an end of ctx is seen above
	}
}

// farewell is how long the record of a request may take that was cut at the end.
const farewell = 5 * time.Second

// record appends the ending behind the claim, for as long as it takes. What cannot be
// recorded leaves a claim, which nobody sends again.
func (r *replier) record(a answer, ending job.Event) {
	ctx := r.calls
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
	}
	defer func() {
		result, reason := resultOf(ending)
		r.end(a, result, reason)
	}()
	proposed, err := r.propose(ending)
	for err == nil {
		_, err = r.Log.Append(ctx, a.key.ReplyStream(), eventlog.Exactly(0), proposed)
		if err == nil || eventlog.IsConflict(err) {
			break
		}
		err = r.Clock.Sleep(ctx, engine.TroublePause)
	}
	if err != nil {
		r.Logger.Error("what became of a reply is not recorded", "stream", a.key.ReplyStream(), "error", err)
	}
}

func resultOf(ending job.Event) (Result, string) {
	switch e := ending.(type) {
	case job.ReplySent:
		return Sent, ""
	case job.ReplyRefused:
		return Refused, e.Reason
	case job.ReplyUnknown:
		return Unknown, e.Reason
	default:
		panic("no ending of a reply: " + ending.Name())
	}
}

// end tells of a reply that came to an end.
func (r *replier) end(a answer, result Result, reason string) {
	r.Observe(result)
	level := slog.LevelInfo
	if result != Sent {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("result", string(result)), slog.Int64("bot", a.key.Bot), slog.Int64("update_id", a.key.Update),
		slog.Int64("chat", a.message.Chat), slog.String("outcome", string(a.outcome)),
	}
	if a.key.Variant != "" {
		attrs = append(attrs, slog.String("variant", a.key.Variant))
	}
	if reason != "" {
		attrs = append(attrs, slog.String("reason", reason))
	}
	r.Logger.LogAttrs(context.Background(), level, "reply", attrs...)
}
