package eventlog

import (
	"context"
	"iter"
)

// Log is an append-only event log. Its guarantees are numbered in the package
// comment. All methods are safe for concurrent use.
type Log interface {
	// Append records the events at the end of the stream when its revision is
	// the expected one. It takes 1 to MaxEvents events.
	//
	// Errors: *ConflictError (nothing added), *UnknownError (repeat with the same
	// ids, or read), ErrUnavailable (certainly nothing added), ErrInvalid (the
	// arguments break a limit; repeating is pointless).
	Append(ctx context.Context, stream string, expected Expected, events ...Proposed) (Appended, error)

	// ReadStream yields the stream's events from revision from on.
	ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[Recorded, error]

	// ReadAll yields the events of all streams behind the position after (Start
	// for all of them) up to the end of the log as it is met.
	ReadAll(ctx context.Context, after Position) iter.Seq2[Recorded, error]

	// Subscribe calls handler for every event behind after and goes on with new
	// ones until ctx ends or handler fails. Back-pressure is the handler's
	// blocking. It is at least once over restarts: the caller keeps its own
	// checkpoint.
	Subscribe(ctx context.Context, after Position, handler Handler) error

	// Tail is the position of the newest event; Start when there is none.
	Tail(ctx context.Context) (Position, error)
}

// Handler receives one event of a subscription.
type Handler func(context.Context, Recorded) error

// Appended says where an append ended.
type Appended struct {
	Revision uint64 // of the last event, in its stream
	Position Position
}
