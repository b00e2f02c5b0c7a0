package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// ErrNoSnapshot says that data is no snapshot of an agenda.
var ErrNoSnapshot = errors.New("not a snapshot of an agenda")

// Cut reports whether the log lacks the event up to which the agenda's snapshot
// (engine.Agenda.Snapshot) had read it: its end was cut off, or it is another
// log or was restored to an earlier state. A snapshot that is read before is
// never ahead of a log in use. The error is the log's, or ErrNoSnapshot, which
// tells nothing about the log.
func Cut(ctx context.Context, log eventlog.Log, snapshot []byte) (bool, error) {
	// Of any version: what changes between them is what the agenda knows of jobs.
	var s struct {
		Position string           `json:"position"`
		Stream   string           `json:"stream"`
		Revision uint64           `json:"revision"`
		EventID  eventlog.EventID `json:"event_id"`
	}
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return false, fmt.Errorf("%w: %w", ErrNoSnapshot, err)
	}
	position, err := eventlog.ParsePosition(s.Position)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrNoSnapshot, err)
	}
	c := eventlog.Checkpoint{Position: position, Stream: s.Stream, Revision: s.Revision, EventID: s.EventID}
	ours, err := c.BelongsTo(ctx, log)
	return err == nil && !ours, err
}
