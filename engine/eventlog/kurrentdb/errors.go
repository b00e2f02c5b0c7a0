package kurrentdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// DamagedError says that a stream is not as appends left it: deleted, truncated,
// or written to by someone else. It is joined with eventlog.ErrUnavailable, or is
// the cause of an *eventlog.UnknownError.
type DamagedError struct {
	Stream string
	Detail string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("stream %s is damaged: %s; streams of the log are never deleted, truncated or limited by $maxAge or $maxCount", e.Stream, e.Detail)
}

// notSentError: no connection was to be had, so no request has left.
type notSentError struct{ cause error }

func (e *notSentError) Error() string { return "no connection: " + e.cause.Error() }
func (e *notSentError) Unwrap() error { return e.cause }

// abandonedError: the context ended while the client had the call.
type abandonedError struct{ cause error }

func (e *abandonedError) Error() string { return "gave up waiting for the client: " + e.cause.Error() }
func (e *abandonedError) Unwrap() error { return e.cause }

// panicError: the client panicked in the call.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the client panicked: %v", e.value) }

var errClosed = errors.New("the log is closed")

// verdict is what an error says about an append.
type verdict int

const (
	done      verdict = iota
	refused           // certainly not recorded, and it will not be soon: rights, sizes, a deleted stream
	notLeft           // certainly not recorded; trying again may help
	elsewhere         // certainly not recorded: the stream is not at the expected revision
	unclear           // may have been recorded
)

// judge reads types and codes, never texts. What it does not know is unclear.
//
// An esdb.Error that is wrapped comes from before the request was complete: the
// client wraps what fails while the call is made or its messages are sent, and
// the server writes nothing before the last of them (H10). What fails while the
// answer is awaited comes bare.
func judge(err error) verdict {
	if err == nil {
		return done
	}
	var unsent *notSentError
	if errors.As(err, &unsent) {
		return notLeft
	}
	var e *esdb.Error // errors.As: esdb.FromError does not see wrapped ones (H9)
	if !errors.As(err, &e) {
		return unclear
	}
	switch e.Code() {
	case esdb.ErrorCodeWrongExpectedVersion:
		return elsewhere
	case esdb.ErrorCodeAccessDenied, esdb.ErrorCodeUnauthenticated, esdb.ErrorCodeStreamDeleted, esdb.ErrorCodeUnsupportedFeature:
		return refused
	case esdb.ErrorCodeNotLeader, esdb.ErrorCodeConnectionClosed:
		return notLeft
	}
	if status.Code(err) == codes.InvalidArgument { // too large; the client has no code for it
		return refused
	}
	if _, bare := err.(*esdb.Error); !bare {
		return notLeft
	}
	return unclear
}

// isNotFound reports whether the stream does not exist. A refusal by a follower
// has the same gRPC code, and another code of the client's.
func isNotFound(err error) bool {
	var e *esdb.Error
	return errors.As(err, &e) && e.Code() == esdb.ErrorCodeResourceNotFound && status.Code(err) != codes.NotFound
}

// isFinal reports whether a read or a subscription would fail again at once.
func isFinal(err error) bool {
	var damaged *DamagedError
	if errors.As(err, &damaged) || errors.Is(err, errClosed) || judge(err) == refused {
		return true
	}
	switch status.Code(err) { // what a subscription says is a bare status
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.InvalidArgument:
		return true
	default:
		return false
	}
}

// isSpent reports whether the client must not be used again after err: once it
// has seen Unavailable it reconnects by itself, which leaks the old connection
// or kills the client (H1). A call whose caller gave up says nothing about it.
func isSpent(caller context.Context, err error) bool {
	var panicked *panicError
	switch {
	case err == nil:
		return false
	case errors.As(err, &panicked), errors.Is(err, errStalled), errors.Is(err, errNoConfirm):
		return true
	}
	var e *esdb.Error
	if errors.As(err, &e) {
		switch e.Code() {
		case esdb.ErrorUnavailable:
			return true
		case esdb.ErrorCodeWrongExpectedVersion, esdb.ErrorCodeNotLeader, esdb.ErrorCodeStreamDeleted,
			esdb.ErrorCodeAccessDenied, esdb.ErrorCodeUnauthenticated, esdb.ErrorCodeResourceNotFound, esdb.ErrorAborted:
			return false
		}
	}
	return caller.Err() == nil && status.Code(err) != codes.InvalidArgument
}

// unavailable is eventlog.ErrUnavailable with what was being done and why it
// failed.
func unavailable(ctx context.Context, doing string, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return fmt.Errorf("%s: %w: %w%s", doing, eventlog.ErrUnavailable, err, mend(err))
}

// mend is what the operator can do about it, or nothing.
func mend(err error) string {
	var e *esdb.Error
	if errors.As(err, &e) {
		switch e.Code() {
		case esdb.ErrorCodeAccessDenied:
			return " (the user needs to read $all, and to read and write the streams of the log)"
		case esdb.ErrorCodeUnauthenticated:
			return " (the user or the password in the connection string is wrong)"
		case esdb.ErrorCodeStreamDeleted:
			return " (streams of the log must never be deleted)"
		}
	}
	var unsent *notSentError
	if errors.As(err, &unsent) && !errors.Is(err, errClosed) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return " (is the server there, and is tls in the connection string as the server has it?)"
	}
	if status.Code(err) == codes.InvalidArgument {
		return " (if it is too large: start the server with --max-append-size=8388608 or more)"
	}
	return ""
}
