package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

func lostAckIsUnknown(s *scene) {
	var recorded []eventlog.Proposed
	for _, loss := range []Loss{AfterCommit, BeforeCommit} {
		events := batch("lost", 3)
		s.backend.LoseAck(s, s.log, loss)
		_, err := s.log.Append(s.ctx, "lost", eventlog.Any, events...)
		var u *eventlog.UnknownError
		switch {
		case !errors.As(err, &u):
			s.Errorf("error is %v, want an unknown outcome", err)
		case u.Stream != "lost" || u.Err == nil:
			s.Errorf("unknown outcome names stream %q and cause %v", u.Stream, u.Err)
		case eventlog.IsConflict(err), errors.Is(err, eventlog.ErrUnavailable), errors.Is(err, eventlog.ErrInvalid):
			s.Errorf("%v claims to be known", err)
		}
		if loss == AfterCommit {
			recorded = append(recorded, events...)
		}
		s.holds("lost", recorded...)
	}
}

func unknownThenOvertaken(s *scene) {
	mine, theirs := batch("mine", 2), batch("theirs", 3)
	s.backend.LoseAck(s, s.log, BeforeCommit)
	if _, err := s.log.Append(s.ctx, "overtaken", eventlog.NoStream, mine...); !eventlog.IsUnknown(err) {
		s.Errorf("error is %v, want an unknown outcome", err)
	}
	s.append("overtaken", eventlog.NoStream, theirs...)
	s.conflict(2, "overtaken", eventlog.NoStream, mine...)
	s.holds("overtaken", theirs...)
}

func endedContextRecordsNothing(s *scene) {
	expired, cancel := context.WithDeadline(s.ctx, time.Unix(0, 0))
	defer cancel()
	for _, test := range []struct {
		ctx  context.Context
		want error
	}{{ended(s.ctx), context.Canceled}, {expired, context.DeadlineExceeded}} {
		_, err := s.log.Append(test.ctx, "late", eventlog.Any, batch("late", 2)...)
		if !errors.Is(err, eventlog.ErrUnavailable) || !errors.Is(err, test.want) || eventlog.IsUnknown(err) {
			s.Errorf("append: error is %v, want ErrUnavailable and %v", err, test.want)
		}
		if _, err := s.log.Tail(test.ctx); !errors.Is(err, test.want) {
			s.Errorf("tail: error is %v, want %v", err, test.want)
		}
	}
	s.empty()
}

// cancelledInFlight ends the context at some moment of each append. Whatever
// the answer is, the log has to bear it out.
func cancelledInFlight(s *scene) {
	const rounds = 40
	for i := range rounds {
		stream := fmt.Sprintf("cancelled-%d", i)
		events := batch("e", 1+i%3)
		ctx, cancel := context.WithCancel(s.ctx)
		var err error
		var both sync.WaitGroup
		both.Go(func() { _, err = s.log.Append(ctx, stream, eventlog.NoStream, events...) })
		both.Go(cancel)
		both.Wait()
		switch {
		case err == nil:
			s.holds(stream, events...)
		case eventlog.IsUnknown(err) && !errors.Is(err, eventlog.ErrUnavailable):
		case errors.Is(err, eventlog.ErrUnavailable):
			s.holds(stream)
		default:
			s.Errorf("append %d: error is %v, want an unknown outcome or ErrUnavailable", i, err)
		}
		s.append(stream, eventlog.NoStream, events...)
		s.holds(stream, events...)
	}
}
