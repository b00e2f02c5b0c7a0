package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// replayed is one event of a job and what it did.
type replayed struct {
	Revision uint64          `json:"revision"`
	Position string          `json:"position"`
	Time     time.Time       `json:"time"`
	Type     string          `json:"type"`
	Phase    job.Phase       `json:"phase"` // after the event
	Data     json.RawMessage `json:"data"`
	Error    string          `json:"error,omitempty"`
}

func jobReplayCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "replay KEY",
		Short: "Print each event of a job with the phase after it; changes nothing",
		Args:  exactArgs("KEY"),
	}
	read, out := withConfig(c), withOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		key, err := parseKey(args[0])
		if err != nil {
			return err
		}
		if err := out.check(); err != nil {
			return err
		}
		return withLog(c, read, func(ctx context.Context, _ config, log eventlog.Log) error {
			events, err := replay(ctx, log, key)
			if err != nil {
				return err
			}
			if out.json() {
				return writeJSON(c.OutOrStdout(), events)
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "REV\tTIME\tEVENT\tPHASE\tDATA")
			for _, e := range events {
				fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s%s\n", e.Revision, e.Time.UTC().Format(time.RFC3339Nano), e.Type, e.Phase, e.Error, e.Data)
			}
			return t.Flush()
		})
	}
	return c
}

func parseKey(s string) (job.Key, error) {
	key, err := job.ParseKey(s)
	if err != nil {
		return key, mistake("%v", err)
	}
	return key, nil
}

// replay folds a job's stream event by event. One that cannot be decoded is
// shown, and the fold stops there, as the engine's does.
func replay(ctx context.Context, log eventlog.Log, key job.Key) ([]replayed, error) {
	var events []replayed
	var s job.State
	stopped := false
	for r, err := range log.ReadStream(ctx, key.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		e := replayed{Revision: r.Revision, Position: r.Position.String(), Time: r.Time, Type: r.Type, Data: printable(r.Data)}
		event, err := job.Decode(r.Type, r.Data)
		switch {
		case err != nil:
			stopped = true
			e.Error = fmt.Sprintf("the job stops here: %v ", err)
		case !stopped:
			if err := job.Allowed(s.Now(), event); err != nil {
				e.Error = fmt.Sprintf("illegal: %v ", err)
			}
			s = s.Evolve(event, r.Time)
		}
		e.Phase = s.Now()
		events = append(events, e)
	}
	if len(events) == 0 {
		return nil, noSuchJob(key)
	}
	return events, nil
}

func noSuchJob(key job.Key) error {
	return fmt.Errorf("%s: %w; `leadonce job list` shows what there is", key, engine.ErrNoJob)
}

// printable is data as JSON, whatever it is.
func printable(data []byte) json.RawMessage {
	if json.Valid(data) {
		return data
	}
	quoted, _ := json.Marshal(string(data)) // a string always has a form
	return quoted
}
