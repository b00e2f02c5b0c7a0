package logcopy

import (
	"context"
	"fmt"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// maxBatchBytes is how much goes in one append, unless one event alone is more:
// backends refuse more than their limit, and 1 MiB is a common one.
const maxBatchBytes = 512 << 10

// appendRest appends what the source has behind what was compared, up to its end
// or about roundEvents, and returns how many events. The appends are made one
// after the other: two at the same time could change places.
func (c *Copy) appendRest(ctx context.Context) (appended uint64, err error) {
	var b batch
	flush := func() error {
		if err := b.appendTo(ctx, c.target); err != nil {
			return err
		}
		appended += uint64(len(b.events))
		c.acknowledged = c.counts.Events + appended
		c.reach(c.acknowledged)
		b = batch{}
		return nil
	}
	for r, err := range c.source.ReadAll(ctx, c.counts.Source.Last) {
		if err != nil {
			return appended, fmt.Errorf("read the source: %w", err)
		}
		if !b.takes(r) {
			if err := flush(); err != nil {
				return appended, err
			}
			if appended >= roundEvents {
				return appended, nil
			}
		}
		b.add(r)
	}
	if len(b.events) > 0 {
		err = flush()
	}
	return appended, err
}

// batch is events of one stream that are neighbours in the source: they are
// recorded next to each other as one append.
type batch struct {
	stream string
	first  uint64 // revision
	events []eventlog.Proposed
	bytes  int
}

func (b *batch) takes(r eventlog.Recorded) bool {
	if len(b.events) == 0 {
		return true
	}
	if r.Stream != b.stream || len(b.events) == eventlog.MaxEvents || b.bytes+size(r) > maxBatchBytes {
		return false
	}
	for _, e := range b.events {
		if e.ID == r.ID { // recorded twice; no append may have it twice
			return false
		}
	}
	return true
}

func (b *batch) add(r eventlog.Recorded) {
	if len(b.events) == 0 {
		b.stream, b.first = r.Stream, r.Revision
	}
	b.events = append(b.events, eventlog.Proposed{ID: r.ID, Type: r.Type, Time: r.Time, Data: r.Data})
	b.bytes += size(r)
}

func (b *batch) appendTo(ctx context.Context, target eventlog.Log) error {
	expected := eventlog.NoStream
	if b.first > 0 {
		expected = eventlog.Exactly(b.first - 1)
	}
	_, err := target.Append(ctx, b.stream, expected, b.events...)
	return err
}

// size is about what an event takes, in bytes.
func size(r eventlog.Recorded) int { return len(r.Data) + len(r.Type) + len(r.Stream) + 64 }
