package kurrentdbtest

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// failure is a status with the trailers that the server sends along. The texts
// are those of RpcExceptions.
type failure struct {
	code     codes.Code
	message  string
	trailers []string // alternating names and values
}

func (f failure) Error() string { return f.message }

func (f failure) GRPCStatus() *status.Status { return status.New(f.code, f.message) }

// withTrailers sets the trailers of a failed call.
func withTrailers(ctx context.Context, err error) error {
	if f, ok := err.(failure); ok && len(f.trailers) > 0 {
		// It fails only outside of a call.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(f.trailers...))
	}
	return err
}

var (
	errAccessDenied    = failure{codes.PermissionDenied, "Access Denied", []string{"exception", "access-denied"}}
	errUnauthenticated = failure{codes.Unauthenticated, "Bad gRPC response. HTTP status code: 401", nil}
	errNotReady        = failure{codes.Unavailable, "Server Is Not Ready", nil}
	errCommitTimeout   = failure{codes.Aborted, "Operation timed out: Commit phase timeout.", nil}
	errDeadline        = failure{codes.DeadlineExceeded, "context deadline exceeded", nil}
	errNoExpectation   = errInvalidArgument("'None' is not a valid ExpectedStreamRevisionOneofCase")
	errInvalidPosition = failure{codes.InvalidArgument, "Trying to read from an invalid position.", nil}

	// errHandler is what ASP.NET makes of any exception that is no RpcException.
	errHandler = failure{codes.Unknown, "Exception was thrown by handler.", nil}
)

func errUnexpected(kind, result string) error {
	return failure{codes.Unknown, "Unexpected " + kind + ": " + result, nil}
}

func errStreamDeleted(stream string) error {
	return failure{codes.FailedPrecondition, fmt.Sprintf("Event stream '%s' is deleted.", stream),
		[]string{"exception", "stream-deleted", "stream-name", stream}}
}

func errWrongVersion(operation, stream string, expected, current int64) error {
	return failure{codes.FailedPrecondition,
		fmt.Sprintf("%s failed due to WrongExpectedVersion. Stream: %s, Expected version: %d, Actual version: %d", operation, stream, expected, current),
		[]string{"exception", "wrong-expected-version", "stream-name", stream,
			"expected-version", strconv.FormatInt(expected, 10), "actual-version", strconv.FormatInt(current, 10)}}
}

func errAppendTooLarge(limit int) error {
	return failure{codes.InvalidArgument, fmt.Sprintf("Maximum Append Size of %d Exceeded.", limit),
		[]string{"exception", "maximum-append-size-exceeded", "maximum-append-size", strconv.Itoa(limit)}}
}

func errMissingMetadata(name string) error {
	return failure{codes.InvalidArgument, fmt.Sprintf("Required Metadata Property '%s' is missing", name),
		[]string{"exception", "missing-required-metadata-property", "required-metadata-properties", "type,content-type"}}
}

func errInvalidArgument(what string) failure {
	return failure{codes.InvalidArgument, what, nil}
}

// errNotLeader names the leader, as host:port.
func errNotLeader(leader string) error {
	host, port, err := net.SplitHostPort(leader)
	if err != nil {
		return failure{codes.Unknown, "No leader info available in response", nil}
	}
	return failure{codes.NotFound, "Leader info available",
		[]string{"exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port}}
}
