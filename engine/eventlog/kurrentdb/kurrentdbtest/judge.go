package kurrentdbtest

import (
	"slices"
	"time"
)

// Event is a recorded event as a judge sees it.
type Event struct {
	Stream   string
	Revision uint64 // of a tombstone 2^63-1
	Position uint64 // commit and prepare position
	ID       string
	Type     string
	Data     []byte
	Metadata []byte
	Created  time.Time
}

// Events returns all that is recorded and indexed, in the order of $all, the
// server's own events and scavenged ones too.
func (s *Server) Events() []Event {
	records := s.store.all()
	events := make([]Event, len(records))
	for i, r := range records {
		events[i] = Event{
			Stream: r.Stream, Revision: uint64(r.Revision), Position: uint64(r.Pos), ID: r.ID.String(), Type: r.Type,
			Data: slices.Clone(r.Data), Metadata: slices.Clone(r.Meta), Created: time.Unix(0, r.Created*100).UTC(),
		}
	}
	return events
}
