package kurrentdb

import (
	"context"
	"errors"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Subscribe implements eventlog.Log. It resumes by itself behind the last event
// that the handler took: after a drop, a restart, a change of leader, and when it
// was silent while the log grew. It returns eventlog.ErrUnavailable when it has
// heard nothing for ResumeTimeout, when the server refuses it, and when the log
// is closed.
func (l *Log) Subscribe(ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	s := &subscription{log: l, handler: handler, last: after, heard: time.Now()}
	for {
		err := s.run(ctx)
		var stopped *handlerError
		if errors.As(err, &stopped) {
			return stopped.err
		}
		if l.clients.closing.Err() != nil {
			err = errClosed
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isFinal(err), time.Since(s.heard) > l.config.ResumeTimeout:
			return unavailable(ctx, "subscribe", err)
		}
		s.notify(Resuming, err)
		s.failures++
		pause(ctx, s.failures)
	}
}

// subscription is one call of Subscribe over the client's subscriptions that it
// takes.
type subscription struct {
	log      *Log
	handler  eventlog.Handler
	last     eventlog.Position // of the last event that the handler took
	heard    time.Time         // when the server last sent something
	failures int               // since then
}

// handlerError is what the handler returned.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return "handler: " + e.err.Error() }

var (
	errStalled     = errors.New("silent, though there are newer events")
	errNoConfirm   = errors.New("not confirmed in time")
	errReceiverEnd = errors.New("ended without an error")
)

// run takes one subscription of the client until it ends, and never ends well.
func (s *subscription) run(ctx context.Context) (err error) {
	client, err := s.log.clients.lend(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	incoming := make(chan *esdb.SubscriptionEvent)
	ended := make(chan struct{})
	go s.log.clients.hold(ctx, client, ended, func(ctx context.Context, c *esdb.Client) error {
		return s.receive(ctx, c, incoming)
	})
	defer func() {
		cancel(err)
		select {
		case <-ended: // at once: gRPC heeds the context
		case <-time.After(s.log.config.ReadTimeout): // the client does not everywhere; it is left to itself
		}
	}()
	s.notify(Subscribed, nil)
	watchdog := time.NewTimer(s.log.config.Watchdog)
	defer watchdog.Stop()
	confirmed := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-incoming:
			confirmed = true
			if err := s.take(ctx, e); err != nil {
				return err
			}
		case <-ended:
			return errReceiverEnd
		case <-watchdog.C:
			if err := s.watch(ctx, confirmed); err != nil {
				return err
			}
		}
		watchdog.Reset(s.log.config.Watchdog)
	}
}

// receive hands over what the client gets, one at a time: while the handler
// works, the server is held back by the flow control of the connection. A nil
// event is the confirmation.
func (s *subscription) receive(ctx context.Context, client *esdb.Client, incoming chan<- *esdb.SubscriptionEvent) error {
	send := func(e *esdb.SubscriptionEvent) bool {
		select {
		case incoming <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	sub, err := client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{
		From:               fromPosition(s.last), // never nil, which would mean the end (H6)
		ResolveLinkTos:     false,
		MaxSearchWindow:    filterWindow,
		CheckpointInterval: 1,
		Filter:             &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: s.log.names.filter()},
		Authenticated:      nil, // as in the connection string
		Deadline:           within(forever),
		RequiresLeader:     true,
	})
	if err != nil {
		send(&esdb.SubscriptionEvent{SubscriptionDropped: &esdb.SubscriptionDropped{Error: err}})
		return err
	}
	defer sub.Close()
	for e := (*esdb.SubscriptionEvent)(nil); ; e = sub.Recv() {
		if !send(e) {
			return context.Cause(ctx)
		}
		if e != nil && e.SubscriptionDropped != nil {
			return e.SubscriptionDropped.Error
		}
	}
}

// filterWindow is after how many events of others the server sends a sign of
// life (a checkpoint).
const filterWindow = 256

// take does what an event of the client's subscription asks for. Checkpoints are
// signs of life and nothing more: the server can send one at the largest position
// there is (H13), and the log is resumed from events alone.
func (s *subscription) take(ctx context.Context, e *esdb.SubscriptionEvent) error {
	switch {
	case e == nil:
		return nil
	case e.SubscriptionDropped != nil:
		return e.SubscriptionDropped.Error
	}
	defer func() { s.heard = time.Now() }()
	switch {
	case e.CaughtUp != nil:
		s.notify(CaughtUp, nil)
	case e.FellBehind != nil:
		s.notify(FellBehind, nil)
	case e.EventAppeared != nil && e.EventAppeared.Event != nil:
		return s.hand(ctx, e.EventAppeared.Event)
	}
	return nil
}

func (s *subscription) hand(ctx context.Context, e *esdb.RecordedEvent) error {
	stream, ours := s.log.names.of(e.StreamID)
	if !ours || positionOf(e.Position).Compare(s.last) <= 0 {
		return nil
	}
	r := recorded(stream, e)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.handler(ctx, r); err != nil {
		return &handlerError{err}
	}
	s.last, s.failures = r.Position, 0
	return nil
}

// watch looks after a subscription that has been silent: a node that shuts down
// can leave it so for ever (H12).
func (s *subscription) watch(ctx context.Context, confirmed bool) error {
	if !confirmed {
		return errNoConfirm
	}
	tail, err := s.log.Tail(ctx)
	if err != nil {
		return err
	}
	if tail.Compare(s.last) > 0 {
		s.notify(Stalled, nil)
		return errStalled
	}
	s.heard, s.failures = time.Now(), 0 // rightly silent
	return nil
}

func (s *subscription) notify(kind Kind, err error) {
	s.log.config.Observe(Notice{Kind: kind, Position: s.last.String(), Err: err})
}
