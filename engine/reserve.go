package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// reservation is the newest event of an operation's stream.
type reservation struct {
	job.OperationReserved
	revision uint64
	exists   bool
}

// reserve makes sure that the job may make the effect of an operation that other
// jobs share. When it may not, the job waits (again says until when) or ends.
func (e *Engine) reserve(ctx context.Context, s job.State, plan job.Plan) (may bool, again time.Time, err error) {
	stream := job.OperationStream(job.OperationID(s.Key.Bot, plan.Action, plan.BusinessKey))
	r, err := e.reservation(ctx, stream)
	if IsStopped(err) { // the job itself can be read: it waits for a release that can read this too
		e.Observer.Troubled(s.Key.Stream(), fmt.Errorf("its operation's reservation: %w", err))
		return false, e.patience(s, e.Clock.Now()), nil
	}
	if err != nil {
		return false, time.Time{}, err
	}
	standing, holder := job.MayTake, job.State{}
	if r.exists {
		// The holder is read after its reservation: see job.Stand.
		if holder, err = e.holder(ctx, s, r); err != nil {
			return false, time.Time{}, err
		}
		standing = job.Stand(r.OperationReserved, s, holder)
	}
	switch standing {
	case job.Holds:
		return true, time.Time{}, nil
	case job.MayTake:
		return true, time.Time{}, e.take(ctx, stream, r, s)
	case job.Satisfied:
		_, err = e.record(ctx, s, job.NoEffectNeeded{
			Reason: "its operation was made by another job", ConfirmedBy: holder.Key.String(), CRMID: holder.CRMID,
		})
	case job.Blocked:
		_, err = e.record(ctx, s, job.JobDeadLettered{
			Reason: fmt.Sprintf("its operation belongs to %s, which was given up while its outcome was unknown, or after a part of it was made", holder.Key),
		})
	default:
		return false, e.patience(s, e.Clock.Now()), nil
	}
	return false, time.Time{}, err
}

// take reserves the operation for s at the revision that was read. A conflict
// says that another job was faster.
func (e *Engine) take(ctx context.Context, stream string, r reservation, s job.State) error {
	expected := eventlog.NoStream
	if r.exists {
		expected = eventlog.Exactly(r.revision)
	}
	proposed, err := e.propose(e.Clock.Now(), job.OperationReserved{Holder: s.Key, Requeues: s.Requeues})
	if err != nil {
		return err
	}
	return e.append(ctx, stream, expected, proposed...)
}

// holder is the job that holds the reservation. One that cannot be decoded has
// not ended, as far as this release can tell.
func (e *Engine) holder(ctx context.Context, s job.State, r reservation) (job.State, error) {
	if r.Holder == s.Key {
		return s, nil
	}
	holder, err := Load(ctx, e.Log, r.Holder.Stream())
	if IsStopped(err) {
		e.Observer.Troubled(s.Key.Stream(), fmt.Errorf("its operation's holder: %w", err))
		return job.State{Key: r.Holder, Requeues: r.Requeues, Phase: job.Claimed}, nil
	}
	return holder, err
}

func (e *Engine) reservation(ctx context.Context, stream string) (reservation, error) {
	var newest reservation
	for r, err := range e.Log.ReadStream(ctx, stream, 0) {
		if err != nil {
			return newest, fmt.Errorf("read %s: %w", stream, err)
		}
		event, err := job.Decode(r.Type, r.Data)
		reserved, ok := event.(job.OperationReserved)
		if err == nil && !ok {
			err = errors.New("not a reservation")
		}
		if err != nil {
			return newest, &StoppedError{stream, r.Revision, r.Position, err}
		}
		newest = reservation{reserved, r.Revision, true}
	}
	return newest, nil
}
