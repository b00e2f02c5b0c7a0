package eventlogtest_test

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// memo remembers which ids were appended under a key.
type memo struct {
	mu  sync.Mutex
	ids map[string]map[eventlog.EventID]eventlog.Appended
}

// known reports the first answer for these events; at is kept for later when
// there is none.
func (m *memo) known(key string, events []eventlog.Proposed, at eventlog.Appended) (eventlog.Appended, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids == nil {
		m.ids = make(map[string]map[eventlog.EventID]eventlog.Appended)
	}
	if m.ids[key] == nil {
		m.ids[key] = make(map[eventlog.EventID]eventlog.Appended)
	}
	if first, ok := m.ids[key][events[0].ID]; ok {
		return first, true
	}
	m.ids[key][events[0].ID] = at
	return at, false
}

func repeatAddsAgain(log eventlog.Log) eventlog.Log {
	var seen memo
	return appending(func(sound eventlog.Log, a call) (eventlog.Appended, error) {
		at, err := a.on(sound)
		if err == nil {
			if _, again := seen.known(a.stream, a.events, at); again {
				fresh := slices.Clone(a.events)
				for i := range fresh {
					fresh[i].ID[0] ^= 0xff
				}
				call{a.ctx, a.stream, eventlog.Any, fresh}.on(sound)
			}
		}
		return at, err
	})(log)
}

func overlapWithAnyIsRecorded(log eventlog.Log) eventlog.Log {
	return appending(func(sound eventlog.Log, a call) (eventlog.Appended, error) {
		at, err := a.on(sound)
		if eventlog.IsConflict(err) && a.expected.IsAny() {
			fresh := slices.Clone(a.events)
			for i := range fresh {
				fresh[i].ID[0] ^= 0xff
			}
			return call{a.ctx, a.stream, eventlog.Any, fresh}.on(sound)
		}
		return at, err
	})(log)
}

func idsOfWholeLog(log eventlog.Log) eventlog.Log {
	var seen memo
	return appending(func(sound eventlog.Log, a call) (eventlog.Appended, error) {
		if len(a.events) == 0 {
			return a.on(sound)
		}
		if first, again := seen.known("", a.events, eventlog.Appended{Revision: uint64(len(a.events) - 1)}); again {
			return first, nil
		}
		return a.on(sound)
	})(log)
}

// at is where the stream has the first of the events, or -1.
func at(log eventlog.Log, a call) int {
	for r, err := range log.ReadStream(context.Background(), a.stream, 0) {
		if err == nil && len(a.events) > 0 && r.ID == a.events[0].ID {
			return int(r.Revision)
		}
	}
	return -1
}

func repeatOnlyWhileNewest(sound eventlog.Log, a call) (eventlog.Appended, error) {
	n := length(sound, a.stream)
	if first := at(sound, a); first >= 0 && first+len(a.events) < n {
		return eventlog.Appended{}, &eventlog.ConflictError{Stream: a.stream, Expected: a.expected, Current: uint64(n - 1), Exists: true}
	}
	return a.on(sound)
}

func repeatInAnyOrder(sound eventlog.Log, a call) (eventlog.Appended, error) {
	got, err := a.on(sound)
	if eventlog.IsConflict(err) && at(sound, a) >= 0 {
		return eventlog.Appended{Revision: uint64(at(sound, a))}, nil
	}
	return got, err
}

func repeatAnswersTail(sound eventlog.Log, a call) (eventlog.Appended, error) {
	got, err := a.on(sound)
	if err == nil {
		got.Revision = uint64(length(sound, a.stream) - 1)
	}
	return got, err
}

// callersBytesShared keeps the slices it was given.
func callersBytesShared(log eventlog.Log) eventlog.Log {
	var mu sync.Mutex
	kept := make(map[eventlog.EventID][]byte)
	return &wrong{
		Log: log,
		append: func(sound eventlog.Log, a call) (eventlog.Appended, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range a.events {
				kept[e.ID] = e.Data
			}
			return a.on(sound)
		},
		each: func(r *eventlog.Recorded) {
			mu.Lock()
			defer mu.Unlock()
			r.Data = kept[r.ID]
		},
	}
}

// readersBytesReused hands out one buffer, as a row scanner would.
func readersBytesReused(log eventlog.Log) eventlog.Log {
	return reading(func(_ eventlog.Log, events sequence) sequence {
		return func(yield func(eventlog.Recorded, error) bool) {
			var buffer []byte
			for r, err := range events {
				buffer = append(buffer[:0], r.Data...)
				r.Data = buffer
				if !yield(r, err) {
					return
				}
			}
		}
	})(log)
}

// oneBehind misses the newest event of the log.
func oneBehind(sound eventlog.Log, events sequence) sequence {
	tail, _ := sound.Tail(context.Background())
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range events {
			if r.Position == tail && err == nil || !yield(r, err) {
				return
			}
		}
	}
}

func leaks(_ eventlog.Log, events sequence) sequence {
	return func(yield func(eventlog.Recorded, error) bool) {
		next, _ := iter.Pull2(events)
		for r, err, ok := next(); ok && yield(r, err); r, err, ok = next() {
		}
	}
}

// readsAnyName takes a name that cannot exist for a stream that does not.
func readsAnyName(log eventlog.Log) eventlog.Log { return reading(errorIsEnd)(log) }

func errorIsEnd(_ eventlog.Log, events sequence) sequence {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range events {
			if err != nil || !yield(r, nil) {
				return
			}
		}
	}
}

func goesOnAfterError(_ eventlog.Log, events sequence) sequence {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range events {
			if !yield(r, err) || err != nil && !yield(eventlog.Recorded{}, err) {
				return
			}
		}
	}
}

func skipsOne(_ eventlog.Log, events sequence) sequence {
	return picked(events, func(i int) int {
		if i == 7 {
			return 0
		}
		return 1
	})
}

func repeatsOne(_ eventlog.Log, events sequence) sequence {
	return picked(events, func(i int) int {
		if i == 7 {
			return 2
		}
		return 1
	})
}
