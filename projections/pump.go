package projections

import (
	"context"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// source hands events to the handler in order, until it has no more (nil).
type source func(context.Context, eventlog.Handler) error

func readAll(log eventlog.Log, after eventlog.Position) source {
	return func(ctx context.Context, handle eventlog.Handler) error {
		for r, err := range log.ReadAll(ctx, after) {
			if err != nil {
				return err
			}
			if err := handle(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}
}

func subscribe(log eventlog.Log, after eventlog.Position) source {
	return func(ctx context.Context, handle eventlog.Handler) error {
		return log.Subscribe(ctx, after, handle)
	}
}

// pumping is one run from a source into a set of tables.
type pumping struct {
	write    func(context.Context, batch) (applied int, err error)
	source   source
	after    eventlog.Position // where the source begins
	most     int               // events in a transaction
	full     bool              // wait until there are that many, or the source ends
	progress func(Progress)    // may be nil
}

// pump reads and decodes in one goroutine and writes in the caller's, until the
// source has ended and all of it is written, or until either fails. The
// goroutine has ended when it returns.
func (s *Store) pump(ctx context.Context, p pumping) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrivals := make(chan arrival, p.most)
	var sourceErr error // read behind the channel's end
	go func() {
		defer close(arrivals)
		sourceErr = p.source(ctx, func(ctx context.Context, r eventlog.Recorded) error {
			a, ours := arrive(r)
			if !ours {
				return nil
			}
			select {
			case arrivals <- a:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	writeErr := p.drain(ctx, arrivals)
	cancel()
	for range arrivals { // until the source has ended
	}
	if writeErr != nil {
		return writeErr
	}
	return sourceErr
}

// drain writes what arrives, batch by batch.
func (p pumping) drain(ctx context.Context, arrivals <-chan arrival) error {
	b := batch{after: p.after}
	var total Progress
	for a := range arrivals {
		b.arrivals = p.collect(append(b.arrivals[:0], a), arrivals)
		applied, err := p.write(ctx, b)
		if err != nil {
			return err
		}
		last := b.arrivals[len(b.arrivals)-1]
		b.after = last.Recorded.Position
		total = Progress{Events: total.Events + int64(applied), Position: b.after, UpTo: last.Time}
		if p.progress != nil {
			p.progress(total)
		}
	}
	return nil
}

// collect adds what else has arrived.
func (p pumping) collect(list []arrival, arrivals <-chan arrival) []arrival {
	for len(list) < p.most {
		select {
		case a, open := <-arrivals:
			if !open {
				return list
			}
			list = append(list, a)
			continue
		default:
		}
		if !p.full {
			return list
		}
		a, open := <-arrivals
		if !open {
			return list
		}
		list = append(list, a)
	}
	return list
}
