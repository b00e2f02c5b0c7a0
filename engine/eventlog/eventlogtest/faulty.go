package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// errCut is the cause of every fault of a FaultyLog.
var errCut = errors.New("connection cut")

// FaultyLog is a log behind a connection that can be cut. It gives any log the
// capabilities LoseAck and CutRead; a log whose own connection can be cut
// should do so instead.
type FaultyLog struct {
	eventlog.Log

	mu   sync.Mutex
	loss Loss // of the next append; 0 for none
	cut  *int // events after which the next read fails; nil for none
}

// NewFaultyLog is log, with faults that wait to be armed.
func NewFaultyLog(log eventlog.Log) *FaultyLog { return &FaultyLog{Log: log} }

// LoseAck makes the next append end in an *eventlog.UnknownError, unless it
// breaks a limit of the port, which is found before anything is sent.
func (l *FaultyLog) LoseAck(loss Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loss = loss
}

// CutRead makes the next read fail after that many events.
func (l *FaultyLog) CutRead(after int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = &after
}

// Append is the log's, unless LoseAck has armed a fault. A conflict that does
// not reach the caller is an unknown outcome too.
func (l *FaultyLog) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	if err := eventlog.CheckAppend(stream, expected, events); err != nil {
		return eventlog.Appended{}, err
	}
	l.mu.Lock()
	loss := l.loss
	l.loss = 0
	l.mu.Unlock()
	switch loss {
	case BeforeCommit:
	case AfterCommit:
		l.Log.Append(ctx, stream, expected, events...)
	default:
		return l.Log.Append(ctx, stream, expected, events...)
	}
	return eventlog.Appended{}, &eventlog.UnknownError{Stream: stream, Err: errCut}
}

// ReadStream is the log's, unless CutRead has armed a fault.
func (l *FaultyLog) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return l.cutting(l.Log.ReadStream(ctx, stream, from), "read "+stream)
}

// ReadAll is the log's, unless CutRead has armed a fault.
func (l *FaultyLog) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return l.cutting(l.Log.ReadAll(ctx, after), "read all")
}

func (l *FaultyLog) cutting(read iter.Seq2[eventlog.Recorded, error], operation string) iter.Seq2[eventlog.Recorded, error] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut == nil {
		return read
	}
	after := *l.cut
	l.cut = nil
	return func(yield func(eventlog.Recorded, error) bool) {
		n := 0
		for r, err := range read {
			if n == after {
				break
			}
			if n++; !yield(r, err) || err != nil {
				return
			}
		}
		yield(eventlog.Recorded{}, fmt.Errorf("%s: after %d events: %w: %w", operation, n, eventlog.ErrUnavailable, errCut))
	}
}
