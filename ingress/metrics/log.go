package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
)

// ProbeStream is the stream of the appends that find out whether a log that
// failed works again. No job lives on it.
const ProbeStream = "readiness-probe"

const (
	probeType  = "ReadinessProbed.v1"
	probeEvery = time.Second
)

// Log measures the appends to a log, and knows whether the last one worked.
type Log struct {
	eventlog.Log
	clock   engine.Clock
	ids     engine.IDs
	metrics *Metrics

	failing atomic.Pointer[error] // why the last append failed; nil when it did not

	probing sync.Mutex
	probed  time.Time
}

// Observe is log, measured.
func (m *Metrics) Observe(log eventlog.Log, clock engine.Clock, ids engine.IDs) *Log {
	return &Log{Log: log, clock: clock, ids: ids, metrics: m}
}

// Append is the log's own.
func (l *Log) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	began := l.clock.Now()
	appended, err := l.Log.Append(ctx, stream, expected, events...)
	outcome, health := judge(err)
	l.metrics.appending.WithLabelValues(outcome).Observe(l.clock.Now().Sub(began).Seconds())
	switch {
	case health == fails:
		l.failing.Store(&err)
	case health == works && l.failing.Load() != nil:
		l.failing.Store(nil)
	}
	return appended, err
}

// health is what an append's error says of the log.
type health int

const (
	saysNothing health = iota
	works
	fails
)

// judge names the outcome of an append. A caller that went away says nothing of
// the log; one whose time ran out does.
func judge(err error) (outcome string, h health) {
	switch {
	case err == nil:
		return "ok", works
	case eventlog.IsConflict(err):
		return "conflict", works
	case eventlog.IsUnknown(err):
		return "unknown", fails
	case errors.Is(err, eventlog.ErrInvalid):
		return "invalid", saysNothing
	case errors.Is(err, context.Canceled):
		return "canceled", saysNothing
	default:
		return "unavailable", fails
	}
}

// Writable is a readiness probe. It is an error while the log does not answer,
// or the last append failed. Then it appends a small event itself, at most once
// a second, so that a recovery is seen without traffic.
func (l *Log) Writable(ctx context.Context) error {
	if l.failing.Load() == nil {
		if _, err := l.Tail(ctx); err != nil {
			return fmt.Errorf("the log does not answer: %w", err)
		}
		return nil
	}
	l.probing.Lock()
	defer l.probing.Unlock()
	now := l.clock.Now()
	if l.failing.Load() != nil && now.Sub(l.probed) >= probeEvery {
		l.probed = now
		event := eventlog.Proposed{ID: l.ids.New(), Type: probeType, Time: now, Data: []byte("{}")}
		if _, err := l.Append(ctx, ProbeStream, eventlog.Any, event); err != nil {
			return fmt.Errorf("the log takes no appends: %w", err)
		}
	}
	if err := l.failing.Load(); err != nil {
		return fmt.Errorf("the log takes no appends: %w", *err)
	}
	return nil
}
