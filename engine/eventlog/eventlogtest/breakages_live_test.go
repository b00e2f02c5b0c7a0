package eventlogtest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// showsOneLate numbers an event before it commits: in every second read, the
// newest but one is not there yet.
func showsOneLate(log eventlog.Log) eventlog.Log {
	var reads atomic.Int64
	return readingAll(func(_ eventlog.Log, events sequence) sequence {
		if reads.Add(1)%2 == 0 {
			return events
		}
		n := 0
		for range events {
			n++
		}
		return picked(events, func(i int) int {
			if i == n-2 {
				return 0
			}
			return 1
		})
	})(log)
}

func dropsAnEvent(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	n := 0
	return sound.Subscribe(ctx, after, func(ctx context.Context, r eventlog.Recorded) error {
		if n++; n == 3 {
			return nil
		}
		return handler(ctx, r)
	})
}

func repeatsAnEvent(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	n := 0
	return sound.Subscribe(ctx, after, func(ctx context.Context, r eventlog.Recorded) error {
		if n++; n == 3 {
			return errors.Join(handler(ctx, r), handler(ctx, r))
		}
		return handler(ctx, r)
	})
}

func onlyLive(sound eventlog.Log, ctx context.Context, _ eventlog.Position, handler eventlog.Handler) error {
	tail, err := sound.Tail(ctx)
	if err != nil {
		return err
	}
	return sound.Subscribe(ctx, tail, handler)
}

func onlyPast(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	for r, err := range sound.ReadAll(ctx, after) {
		if err != nil {
			return err
		}
		if err := handler(ctx, r); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func forgetsError(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	return sound.Subscribe(ctx, after, func(ctx context.Context, r eventlog.Recorded) error {
		handler(ctx, r)
		return nil
	})
}

func outlivesContext(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	return sound.Subscribe(context.WithoutCancel(ctx), after, handler)
}

func callsConcurrently(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	return sound.Subscribe(ctx, after, func(ctx context.Context, r eventlog.Recorded) error {
		calls.Go(func() { handler(ctx, r) })
		return nil
	})
}

// subscriptionBlocksAppends calls the handler in the lock that appends take.
func subscriptionBlocksAppends(log eventlog.Log) eventlog.Log {
	lock := make(chan struct{}, 1)
	return &wrong{
		Log: log,
		append: func(sound eventlog.Log, a call) (eventlog.Appended, error) {
			select {
			case lock <- struct{}{}:
				defer func() { <-lock }()
				return a.on(sound)
			case <-a.ctx.Done():
				return eventlog.Appended{}, errors.Join(eventlog.ErrUnavailable, a.ctx.Err())
			}
		},
		subscribe: func(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
			return sound.Subscribe(ctx, after, func(ctx context.Context, r eventlog.Recorded) error {
				lock <- struct{}{}
				defer func() { <-lock }()
				return handler(ctx, r)
			})
		},
	}
}

// readsOwnCache keeps what it has read until it appends itself.
func readsOwnCache(log eventlog.Log) eventlog.Log {
	var mu sync.Mutex
	cached := make(map[string][]eventlog.Recorded)
	return &cache{Log: log, mu: &mu, streams: cached}
}

type cache struct {
	eventlog.Log
	mu      *sync.Mutex
	streams map[string][]eventlog.Recorded
}

func (c *cache) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	c.mu.Lock()
	delete(c.streams, stream)
	c.mu.Unlock()
	return c.Log.Append(ctx, stream, expected, events...)
}

func (c *cache) ReadStream(ctx context.Context, stream string, from uint64) sequence {
	if ctx.Err() != nil || from > 0 || eventlog.CheckStream(stream) != nil {
		return c.Log.ReadStream(ctx, stream, from)
	}
	c.mu.Lock()
	events, ok := c.streams[stream]
	c.mu.Unlock()
	if !ok {
		for r, err := range c.Log.ReadStream(ctx, stream, 0) {
			if err != nil {
				return c.Log.ReadStream(ctx, stream, 0)
			}
			events = append(events, r)
		}
		c.mu.Lock()
		c.streams[stream] = events
		c.mu.Unlock()
	}
	return func(yield func(eventlog.Recorded, error) bool) {
		for _, r := range events {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// checksOwnRevisions compares the expected revision with what this handle knows
// of the stream, as one with a cache of revisions and no check in the store.
func checksOwnRevisions(log eventlog.Log) eventlog.Log {
	var mu sync.Mutex
	own := make(map[string]uint64) // the number of events
	return appending(func(sound eventlog.Log, a call) (eventlog.Appended, error) {
		mu.Lock()
		defer mu.Unlock()
		r, exactly := a.expected.Revision()
		if n := own[a.stream]; exactly && r+1 == n || a.expected.IsNoStream() && n == 0 {
			a.expected = eventlog.Any
		}
		at, err := a.on(sound)
		if err == nil {
			own[a.stream] = at.Revision + 1
		}
		return at, err
	})(log)
}

// wakesOnOwnHandle looks for new events when its own handle has appended.
func wakesOnOwnHandle(log eventlog.Log) eventlog.Log {
	var mu sync.Mutex
	grown := make(chan struct{})
	return &wrong{
		Log: log,
		append: func(sound eventlog.Log, a call) (eventlog.Appended, error) {
			at, err := a.on(sound)
			mu.Lock()
			defer mu.Unlock()
			close(grown)
			grown = make(chan struct{})
			return at, err
		},
		subscribe: func(sound eventlog.Log, ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
			for {
				mu.Lock()
				wake := grown
				mu.Unlock()
				for r, err := range sound.ReadAll(ctx, after) {
					if err == nil {
						err = handler(ctx, r)
					}
					if err != nil {
						return err
					}
					after = r.Position
				}
				select {
				case <-wake:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		},
	}
}
