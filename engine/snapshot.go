package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// snapshot is an agenda at rest. It spares a restart the reading of all that is
// finished, and may be lost at any time.
type snapshot struct {
	Version  int              `json:"version"`
	Position string           `json:"position"`
	Stream   string           `json:"stream"`
	Revision uint64           `json:"revision"`
	EventID  eventlog.EventID `json:"event_id"`
	Jobs     []snapshotJob    `json:"jobs"`
	Stopped  []string         `json:"stopped,omitempty"`
}

type snapshotJob struct {
	Stream   string    `json:"stream"`
	Revision uint64    `json:"revision"`
	Due      time.Time `json:"due,omitzero"`
	Waiting  bool      `json:"waiting,omitempty"`
}

// snapshotVersion changes when Due or the set of known events does.
const snapshotVersion = 2

// Snapshot writes the agenda down.
func (a *Agenda) Snapshot() ([]byte, error) {
	c := a.checkpoint
	s := snapshot{
		Version: snapshotVersion, Position: c.Position.String(), Stream: c.Stream,
		Revision: c.Revision, EventID: c.EventID, Stopped: slices.Sorted(maps.Keys(a.stopped)),
	}
	for _, x := range a.entries {
		s.Jobs = append(s.Jobs, snapshotJob{x.stream, x.revision, x.due, x.waiting})
	}
	slices.SortFunc(s.Jobs, func(x, y snapshotJob) int { return strings.Compare(x.Stream, y.Stream) })
	return json.Marshal(s)
}

// RestoreAgenda reads a snapshot of an agenda of this very log; one of another
// log or version is an error, and the caller sweeps from the start. Stopped jobs
// are due at once: this release may understand them.
func RestoreAgenda(ctx context.Context, log eventlog.Log, data []byte) (*Agenda, error) {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("read the agenda's snapshot: %w", err)
	}
	if s.Version != snapshotVersion {
		return nil, fmt.Errorf("the agenda's snapshot has version %d, not %d", s.Version, snapshotVersion)
	}
	position, err := eventlog.ParsePosition(s.Position)
	if err != nil {
		return nil, fmt.Errorf("read the agenda's snapshot: %w", err)
	}
	a := NewAgenda()
	a.checkpoint = eventlog.Checkpoint{Position: position, Stream: s.Stream, Revision: s.Revision, EventID: s.EventID}
	ours, err := a.checkpoint.BelongsTo(ctx, log)
	if err != nil {
		return nil, err
	}
	if !ours {
		return nil, errors.New("the agenda's snapshot is of another log")
	}
	for _, j := range s.Jobs {
		a.put(j.Stream, j.Revision, j.Due, j.Waiting)
	}
	for _, stream := range s.Stopped {
		a.put(stream, 0, time.Time{}, false)
	}
	return a, nil
}
