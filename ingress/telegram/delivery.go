package telegram

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/job"
)

// Delivery is what became of one POST. It holds nothing that a person wrote.
type Delivery struct {
	Bot    int64 // 0 when it is not a configured one
	Result Result
	Took   time.Duration

	// Of the update; zero unless it could be read.
	UpdateID, Chat, User int64
	Kind                 string // see Label
}

// Result is the outcome of a delivery.
type Result string

// The results.
const (
	Stored       = Result(engine.Stored)
	Duplicate    = Result(engine.Repeated)
	Conflicted   = Result(engine.Conflicted)
	Unauthorized = Result("unauthorized")
	Bad          = Result("bad")
	TooLarge     = Result("too_large")
	Unavailable  = Result("unavailable")
	UnknownBot   = Result("unknown_bot")
)

// outcomes says how each result is answered, and how loudly it is logged: what
// anyone on the internet can cause is no warning. Unless the server hangs up, it
// reads the rest of a body before it answers, to keep the connection.
var outcomes = map[Result]struct {
	status int
	level  slog.Level
	hangUp bool
}{
	Stored:       {http.StatusOK, slog.LevelDebug, false},
	Duplicate:    {http.StatusOK, slog.LevelInfo, false},
	Conflicted:   {http.StatusOK, slog.LevelWarn, false},
	Unauthorized: {http.StatusUnauthorized, slog.LevelInfo, true},
	Bad:          {http.StatusBadRequest, slog.LevelWarn, false},
	TooLarge:     {http.StatusRequestEntityTooLarge, slog.LevelWarn, true},
	Unavailable:  {http.StatusServiceUnavailable, slog.LevelError, false},
	UnknownBot:   {http.StatusNotFound, slog.LevelInfo, true},
}

// Results lists what a delivery can come to, sorted by name.
func Results() []Result { return slices.Sorted(maps.Keys(outcomes)) }

// Label is an update's kind where senders must not choose the words: the kinds
// of the Bot API and job.NoKind as they are, everything else as "other".
func Label(kind string) string {
	if kind == job.NoKind || job.KnownKind(kind) {
		return kind
	}
	return "other"
}

// describe notes the update that the delivery carries.
func (d *Delivery) describe(u job.Update) {
	d.UpdateID, d.Chat, d.User, d.Kind = u.ID, u.Chat, u.User, Label(u.Kind)
}

// log writes the delivery's one line. cause is an error of our own making; the
// sender's words have no way in.
func (h *Handler) log(r *http.Request, d *Delivery, cause error) {
	level := outcomes[d.Result].level
	ctx := context.WithoutCancel(r.Context())
	if !h.Logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 9)
	attrs = append(attrs, slog.String("result", string(d.Result)), slog.Int64("bot", d.Bot))
	if d.Kind != "" {
		attrs = append(attrs, slog.Int64("update_id", d.UpdateID), slog.Int64("chat", d.Chat),
			slog.Int64("user", d.User), slog.String("kind", d.Kind))
	}
	attrs = append(attrs, slog.Duration("took", d.Took), slog.String("remote", h.Remote(r)))
	if cause != nil {
		attrs = append(attrs, slog.String("error", cause.Error()))
	}
	h.Logger.LogAttrs(ctx, level, "delivery", attrs...)
}
