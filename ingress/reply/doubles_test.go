package reply_test

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/reply"
)

var errCanary = errors.New("canary")

// unreachable refuses the connection for some tries.
type unreachable struct {
	reply.Sender
	tries int
}

func (u *unreachable) SendMessage(ctx context.Context, m botapi.Message) (int64, error) {
	if u.tries--; u.tries >= 0 {
		return 0, &botapi.Error{Method: "sendMessage", Description: "connection refused", NotSent: true}
	}
	return u.Sender.SendMessage(ctx, m)
}

// panicking panics once.
type panicking struct {
	reply.Sender
	calls int
}

func (p *panicking) SendMessage(ctx context.Context, m botapi.Message) (int64, error) {
	if p.calls++; p.calls == 1 {
		panic(errCanary)
	}
	return p.Sender.SendMessage(ctx, m)
}

// stopping ends the replier at its first wait.
type stopping struct {
	*clock
	stop context.CancelFunc
}

func (s *stopping) Sleep(ctx context.Context, d time.Duration) error {
	s.stop()
	return s.clock.Sleep(ctx, d)
}

// counting counts the events that a follower reads.
type counting struct {
	eventlog.Log
	events int
}

func (l *counting) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range l.Log.ReadAll(ctx, after) {
			if l.events++; !yield(r, err) {
				return
			}
		}
	}
}

// forgetful is a log that takes an append and loses the answer, for some appends.
type forgetful struct {
	eventlog.Log
	times int
}

func (l *forgetful) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	appended, err := l.Log.Append(ctx, stream, expected, events...)
	if l.times--; l.times >= 0 && err == nil {
		return eventlog.Appended{}, &eventlog.UnknownError{Stream: stream, Err: errCanary}
	}
	return appended, err
}

// slow is a log behind whose appends time passes.
type slow struct {
	eventlog.Log
	pass func()
}

func (l *slow) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	defer l.pass()
	return l.Log.Append(ctx, stream, expected, events...)
}
