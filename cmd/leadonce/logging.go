package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

func (l loggingConfig) level() (slog.Level, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(l.Level))
	return level, err
}

func newLogger(w io.Writer, l loggingConfig) *slog.Logger {
	level, err := l.level()
	if err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		// A duration would be a number of nanoseconds, which nothing says.
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration {
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// jobLogger writes what happens to jobs. It logs names and numbers only: never
// the update, a field of the lead or a person's words.
type jobLogger struct {
	log    *slog.Logger
	events eventlog.Log // read for what a line about trouble cannot say by itself
}

var _ engine.Observer = jobLogger{}

// Recorded logs each event with the job as it is after them.
func (l jobLogger) Recorded(s job.State, events []job.Event) {
	for _, e := range events {
		l.log.LogAttrs(context.Background(), severity(e), e.Name(), append(about(s), details(e)...)...)
	}
}

// Called logs each request to the CRM.
func (l jobLogger) Called(s job.State, request engine.Request, took time.Duration, failure *crm.Error) {
	attrs := append(about(s), slog.String("request", string(request)), slog.Duration("took", took))
	level, outcome := slog.LevelDebug, "answered"
	if failure != nil {
		level, outcome = slog.LevelWarn, failure.Error()
	}
	l.log.LogAttrs(context.Background(), level, "CRM called", append(attrs, slog.String("outcome", outcome))...)
}

// lookup is how long a line about trouble may take to find out about its job.
const lookup = 200 * time.Millisecond

// Troubled logs a step that could not be done. stream is empty when it is no
// job's.
func (l jobLogger) Troubled(stream string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookup)
	defer cancel()
	attrs := []slog.Attr{slog.Any("error", err)}
	if stream != "" {
		attrs = append(attrs, slog.String("stream", stream))
		if s, _ := engine.Load(ctx, l.events, stream); s.EventCount > 0 {
			attrs = append(attrs, about(s)...)
		}
	}
	l.log.LogAttrs(ctx, slog.LevelWarn, "step failed, it is tried again", attrs...)
}

func severity(e job.Event) slog.Level {
	switch e.(type) {
	case job.ReceiptConflicted, job.KeyConflicted:
		return slog.LevelError
	case job.JobDeadLettered, job.ReconciliationNeeded:
		return slog.LevelWarn
	case job.UpdateReceived, job.StepConfirmed, job.LeadConfirmed, job.NoEffectNeeded, job.LeadAbsent, job.JobRequeued:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// about is what every line about a job carries, as far as it is known.
func about(s job.State) []slog.Attr {
	attrs := []slog.Attr{
		slog.Int64("bot", s.Key.Bot), slog.Int64("update_id", s.Key.Update),
		slog.Int64("chat", s.Chat), slog.Int64("user", s.User),
		slog.String("kind", s.Kind), slog.String("phase", string(s.Now())),
	}
	if s.Key.Variant != "" {
		attrs = append(attrs, slog.String("variant", s.Key.Variant))
	}
	if s.OperationID != "" {
		attrs = append(attrs, slog.Int("attempt", s.Attempts),
			slog.String("business_key", s.BusinessKey), slog.String("operation_id", s.OperationID))
	}
	if s.Step != "" {
		attrs = append(attrs, slog.String("step", s.Step))
		if s.Step != job.LeadStep {
			attrs = append(attrs, slog.String("step_key", job.StepKey(s.OperationID, s.Step)))
		}
	}
	if s.CRMID != "" {
		attrs = append(attrs, slog.String("crm_id", s.CRMID))
	}
	return attrs
}

// details is what an event adds that the job's state does not say.
func details(e job.Event) []slog.Attr {
	switch e := e.(type) {
	case job.JobClaimed:
		return []slog.Attr{slog.String("worker", e.Worker)}
	case job.ClaimReleased:
		return []slog.Attr{slog.String("reason", e.Reason)}
	case job.AttemptNotApplied:
		return []slog.Attr{slog.String("reason", e.Reason)}
	case job.OutcomeUnknown:
		return []slog.Attr{slog.String("reason", e.Reason)}
	case job.ReconciliationNeeded:
		return []slog.Attr{slog.String("reason", e.Reason), slog.Bool("human", e.Human)}
	case job.StepConfirmed:
		return []slog.Attr{slog.String("step_crm_id", e.CRMID), slog.String("how", string(e.How))}
	case job.LeadConfirmed:
		return []slog.Attr{slog.String("how", string(e.How))}
	case job.ReceiptConflicted:
		return []slog.Attr{slog.String("other_crm_id", e.CRMID)}
	case job.KeyConflicted:
		return []slog.Attr{slog.String("stored_as", e.StoredAs)}
	case job.NoEffectNeeded:
		return []slog.Attr{slog.String("reason", e.Reason), slog.String("confirmed_by", e.ConfirmedBy)}
	case job.JobDeadLettered:
		return []slog.Attr{slog.String("reason", e.Reason), slog.String("by", e.By)}
	case job.JobRequeued:
		return []slog.Attr{slog.String("by", e.By)}
	default:
		return nil
	}
}
