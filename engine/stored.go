package engine

import (
	"context"
	"fmt"

	"github.com/leadonce/leadonce/engine/job"
)

// Stored reports whether the update is in the log, under its own key or, where
// that is another update's, under its variant key. It writes nothing. With an
// error it is not known.
func (e *Engine) Stored(ctx context.Context, u job.Update) (bool, error) {
	taken, same, err := e.holds(ctx, u, u.Key())
	if err != nil || !taken || same {
		return same, err
	}
	_, same, err = e.holds(ctx, u, u.VariantKey())
	return same, err
}

// holds reports whether the key's stream exists, and whether the update is what
// it holds. An event that this release cannot decode may be any update.
func (e *Engine) holds(ctx context.Context, u job.Update, key job.Key) (taken, same bool, err error) {
	for r, err := range e.Log.ReadStream(ctx, key.Stream(), 0) {
		if err != nil {
			return false, false, fmt.Errorf("read %s: %w", key.Stream(), err)
		}
		event, err := job.Decode(r.Type, r.Data)
		received, ok := event.(job.UpdateReceived)
		return true, err == nil && ok && received.Fingerprint == u.Fingerprint, nil
	}
	return false, false, nil
}
