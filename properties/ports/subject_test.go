package ports

import (
	"context"
	"iter"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
)

// subject is a store that is compared with the model.
type subject struct {
	name      string
	handles   []eventlog.Log
	reopen    func(handle int) error // nil: what the process keeps cannot be opened again
	positions []eventlog.Position    // of the event numbered 1, 2, …
}

// ordinal is the number of the event at the position; -1 for none.
func (s *subject) ordinal(p eventlog.Position) int {
	if p == eventlog.Start {
		return 0
	}
	for i := range s.positions {
		if s.positions[i] == p {
			return i + 1
		}
	}
	return -1
}

// position is the place of an event by its number; behind the newest it is one
// that no event has.
func (s *subject) position(ordinal int) eventlog.Position {
	switch {
	case ordinal == 0:
		return eventlog.Start
	case ordinal <= len(s.positions):
		return s.positions[ordinal-1]
	default:
		return eventlog.NewPosition(math.MaxUint64, math.MaxUint64)
	}
}

func (s *subject) seen(r eventlog.Recorded) seen {
	when := r.Time.Format(time.RFC3339Nano)
	if r.Time.Location() != time.UTC {
		when = "not in UTC: " + when
	}
	return seen{
		ordinal: s.ordinal(r.Position), stream: r.Stream, revision: r.Revision, id: r.ID, kind: r.Type,
		time: when, data: string(r.Data), nilData: r.Data == nil,
	}
}

func (s *subject) read(events iter.Seq2[eventlog.Recorded, error], limit int) answer {
	a := answer{class: "ok"}
	for r, err := range events {
		if a.class != "ok" {
			a.class += ", and went on"
			break
		}
		if err != nil {
			a.class = classOf(err)
			continue
		}
		if a.events = append(a.events, s.seen(r)); len(a.events) == limit {
			break
		}
	}
	return a
}

func (s *subject) append(ctx context.Context, log eventlog.Log, c call) answer {
	at, err := log.Append(ctx, c.stream, c.expected, c.events...)
	a := answer{class: classOf(err), conflict: conflictOf(err), revision: at.Revision}
	// What was added is met behind all that was there. Its positions are the
	// log's own: from here on they are known.
	last := s.position(len(s.positions))
	for r, err := range log.ReadAll(context.Background(), last) {
		if err != nil {
			a.class += ", then a read: " + classOf(err)
			break
		}
		if r.Position.Compare(s.position(len(s.positions))) <= 0 {
			a.class += ", at a position that does not grow"
			break
		}
		s.positions = append(s.positions, r.Position)
		a.events = append(a.events, s.seen(r))
	}
	a.ordinal = s.ordinal(at.Position)
	return a
}

// ended is a context that ended before the call.
var ended = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

// ask is what the log answers.
func (s *subject) ask(o step) answer {
	ctx := context.Background()
	if o.Ended {
		ctx = ended
	}
	handle := o.Handle % len(s.handles)
	log := s.handles[handle]
	switch o.Kind {
	case readStream:
		return s.read(log.ReadStream(ctx, names[o.Stream], o.from), o.Limit)
	case readAll:
		return s.read(log.ReadAll(ctx, s.position(o.behind)), o.Limit)
	case readTail:
		p, err := log.Tail(ctx)
		return answer{class: classOf(err), ordinal: s.ordinal(p)}
	case checkpoint:
		c := eventlog.Checkpoint{Position: s.position(o.ordinal), Stream: o.place.stream, Revision: o.place.revision, EventID: o.place.id}
		yes, err := c.BelongsTo(ctx, log)
		return answer{class: classOf(err), belongs: yes}
	case reopening:
		if s.reopen != nil {
			if err := s.reopen(handle); err != nil {
				return answer{class: "cannot be opened again: " + err.Error()}
			}
		}
		return s.read(s.handles[handle].ReadAll(ctx, eventlog.Start), 0)
	default:
		return s.append(ctx, log, o.call)
	}
}

func inMemory() *subject {
	return &subject{name: "memory", handles: []eventlog.Log{memory.New()}}
}

// onDisk is a log file with two handles, as two processes have.
func onDisk(folder string) (s *subject, closeAll func() error, err error) {
	path := filepath.Join(folder, "log.db")
	open := func() (*sqlite.Log, error) { return sqlite.Open(context.Background(), path, sqlite.Options{}) }
	logs := make([]*sqlite.Log, 2)
	s = &subject{name: "sqlite", handles: make([]eventlog.Log, 2)}
	s.reopen = func(handle int) (err error) {
		if logs[handle] != nil {
			if err := logs[handle].Close(); err != nil {
				return err
			}
		}
		logs[handle], err = open()
		s.handles[handle] = logs[handle]
		return err
	}
	closeAll = func() error {
		for _, l := range logs {
			if l == nil {
				continue
			}
			if err := l.Close(); err != nil {
				return err
			}
		}
		return os.RemoveAll(folder)
	}
	for handle := range logs {
		if err := s.reopen(handle); err != nil {
			return nil, nil, err
		}
	}
	return s, closeAll, nil
}
