package eventlog

import "context"

// Checkpoint is how far a reader of the whole log has come. Beside the position
// it names the event there, so that a checkpoint of another log, or of one that
// was restored to an earlier state, is found out instead of believed.
type Checkpoint struct {
	Position Position
	Stream   string
	Revision uint64
	EventID  EventID
}

// CheckpointOf is the checkpoint behind r.
func CheckpointOf(r Recorded) Checkpoint {
	return Checkpoint{Position: r.Position, Stream: r.Stream, Revision: r.Revision, EventID: r.ID}
}

// BelongsTo reports whether the event that c names is in the log at c's place.
// The zero checkpoint belongs to every log.
func (c Checkpoint) BelongsTo(ctx context.Context, log Log) (bool, error) {
	if c.Position == Start {
		return true, nil
	}
	for r, err := range log.ReadStream(ctx, c.Stream, c.Revision) {
		if err != nil {
			return false, err
		}
		return r.ID == c.EventID && r.Position == c.Position, nil
	}
	return false, nil
}
