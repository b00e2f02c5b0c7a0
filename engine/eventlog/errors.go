package eventlog

import (
	"errors"
	"fmt"
)

var (
	// ErrUnavailable: the log did not take the append and certainly recorded
	// nothing, or a read could not be done. Trying again later may succeed.
	ErrUnavailable = errors.New("log unavailable")

	// ErrInvalid: the arguments break a limit of the port.
	ErrInvalid = errors.New("invalid")
)

// ConflictError says that a stream was not at the expected revision.
type ConflictError struct {
	Stream   string
	Expected Expected
	Current  uint64 // revision of the newest event; meaningless unless Exists
	Exists   bool
}

func (e *ConflictError) Error() string {
	current := "it does not exist"
	if e.Exists {
		current = fmt.Sprintf("it is at revision %d", e.Current)
	}
	return fmt.Sprintf("append to %s expected %s, but %s", e.Stream, e.Expected, current)
}

// UnknownError says that an append may or may not have been recorded. Repeat it
// with the same ids, or read the stream.
type UnknownError struct {
	Stream string
	Err    error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("append to %s: outcome unknown: %v", e.Stream, e.Err)
}

func (e *UnknownError) Unwrap() error { return e.Err }

// IsConflict reports whether err says that the stream was elsewhere.
func IsConflict(err error) bool {
	var c *ConflictError
	return errors.As(err, &c)
}

// IsUnknown reports whether err leaves open whether the append was recorded.
func IsUnknown(err error) bool {
	var u *UnknownError
	return errors.As(err, &u)
}
