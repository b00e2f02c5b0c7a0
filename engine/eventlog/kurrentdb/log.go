package kurrentdb

import (
	"context"
	"fmt"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Log is a log on a KurrentDB server or cluster. Open makes it.
type Log struct {
	config  Config
	names   namespace
	clients *clients
	flights flights
	passed  passed
}

var _ eventlog.Log = (*Log)(nil)

// Open connects and makes sure that $all can be read. Its error is one line
// that names the server and the mend. The end of ctx does not close the log.
func Open(ctx context.Context, config Config) (*Log, error) {
	config = config.withDefaults()
	names, err := newNamespace(config)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	client, err := clientConfig(config.Connection)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &Log{config: config, names: names, clients: newClients(client, config.Connections, config.Observe)}
	_, err = retrying(ctx, l, func(ctx context.Context) (page, error) {
		return l.all(ctx, esdb.Backwards, esdb.End{}, 1)
	})
	if err != nil {
		l.Close()
		return nil, unavailable(ctx, "open log on "+hosts(client), err)
	}
	return l, nil
}

// Close ends what is under way: appends with an *eventlog.UnknownError or
// eventlog.ErrUnavailable, reads and subscriptions with eventlog.ErrUnavailable.
// It waits for all of it but the handlers. It may be called more than once.
func (l *Log) Close() error {
	l.clients.shut()
	return nil
}

// Tail is the position of the newest event of the log. It looks from the end of
// $all backwards past what others have written there.
func (l *Log) Tail(ctx context.Context) (eventlog.Position, error) {
	var from esdb.AllPosition = esdb.End{}
	for count := uint64(tailPageShortest); ; count = min(count*8, readPageEvents) {
		p, err := retrying(ctx, l, func(ctx context.Context) (page, error) {
			return l.all(ctx, esdb.Backwards, from, count)
		})
		switch {
		case err != nil:
			return eventlog.Start, unavailable(ctx, "read tail", err)
		case len(p.events) > 0:
			return p.events[0].Position, nil
		case p.last:
			return eventlog.Start, nil
		}
		from = fromPosition(p.end)
	}
}

// tailPageShortest is enough where the log has the server for itself.
const tailPageShortest = 8

// retrying runs a read until it succeeds, fails for good, or has gone on for
// SettleTimeout after its first failure; an attempt that runs then may end. A
// read may be done again: what it begins with does not change.
func retrying[T any](ctx context.Context, l *Log, read func(context.Context) (T, error)) (T, error) {
	value, err := read(ctx)
	if err == nil || isFinal(err) {
		return value, err
	}
	settling, cancel := context.WithTimeout(ctx, l.config.SettleTimeout)
	defer cancel()
	for failures := 1; pause(settling, failures); failures++ {
		if value, err = read(ctx); err == nil || isFinal(err) {
			return value, err
		}
	}
	return value, err
}

// forever is the deadline of what has none.
const forever = 100 * 365 * 24 * time.Hour

// within is a deadline as the client's options take it.
func within(d time.Duration) *time.Duration { return &d }
