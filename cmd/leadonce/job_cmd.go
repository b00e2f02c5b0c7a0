package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

func jobCommand() *cobra.Command {
	parent := &cobra.Command{Use: "job", Short: "Look at jobs and decide what only a person can", Args: noArgs, RunE: help}
	parent.AddCommand(jobListCommand(), jobShowCommand(), jobReplayCommand(), jobReconcileCommand(), jobDoubtCommand(),
		operatorCommand("requeue", "Give a dead letter another round of attempts", (*engine.Engine).Requeue),
		operatorCommand("discard", "Give a job up", (*engine.Engine).Discard))
	return parent
}

// output is the flag --output.
type output struct{ format *string }

func withOutput(c *cobra.Command) output {
	return output{c.Flags().String("output", "table", "table or json")}
}

func (o output) check() error {
	if *o.format != "table" && *o.format != "json" {
		return mistake("--output: %q is unknown, give table or json", *o.format)
	}
	return nil
}

func (o output) json() bool { return *o.format == "json" }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func jobListCommand() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List jobs, the newest first", Args: noArgs}
	read, out := withConfig(c), withOutput(c)
	var f projections.Filter
	phase := c.Flags().String("phase", "", "only this phase: pending, claimed, needs_reconciliation, done or dead_letter")
	c.Flags().Int64Var(&f.Bot, "bot", 0, "only this bot")
	c.Flags().Int64Var(&f.Chat, "chat", 0, "only this chat")
	c.Flags().Int64Var(&f.User, "user", 0, "only this user")
	c.Flags().StringVar(&f.Kind, "kind", "", "only this kind of update")
	c.Flags().StringVar(&f.Text, "find", "", "only with this in the event key, business key, operation id or crm id")
	c.Flags().BoolVar(&f.Human, "human", false, "only those that wait for a person")
	c.Flags().BoolVar(&f.Stopped, "stopped", false, "only those stopped by an event that cannot be decoded")
	c.Flags().IntVar(&f.Limit, "limit", projections.DefaultLimit, "at most this many")
	c.Flags().Int64Var(&f.After, "after", 0, "the number of the last job of the page before")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(out.check(), checkPhase(*phase)); err != nil {
			return err
		}
		f.Phase = job.Phase(*phase)
		return withModels(c, read, func(ctx context.Context, models *projections.Store, _ eventlog.Log) error {
			jobs, err := models.Jobs(ctx, f)
			if err != nil {
				return err
			}
			if out.json() {
				return writeJSON(c.OutOrStdout(), jobs)
			}
			return writeJobs(c.OutOrStdout(), jobs)
		})
	}
	return c
}

func checkPhase(s string) error {
	for _, p := range job.Phases {
		if s == "" || s == string(p) {
			return nil
		}
	}
	return mistake("--phase: %q is unknown, give one of %v", s, job.Phases[1:])
}

func writeJobs(w io.Writer, jobs []projections.Job) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NUMBER\tJOB\tKIND\tPHASE\tATTEMPTS\tCRM ID\tRECEIVED\tNOTE")
	for _, j := range jobs {
		name := j.Key
		if name == "" {
			name = j.Stream
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", j.Number, name, j.Kind, j.Phase, j.Attempts,
			j.CRMID, stamp(j.ReceivedAt), noteOn(j))
	}
	return t.Flush()
}

// noteOn is what a person should know about a job in a few words.
func noteOn(j projections.Job) string {
	switch {
	case j.Stopped != projections.Stop{}:
		return fmt.Sprintf("stopped at revision %d: %s", j.Stopped.Revision, j.Stopped.Reason)
	case j.Human && j.Step != "":
		return fmt.Sprintf("waits for you at its step %s: %s", j.Step, j.LastError)
	case j.Human:
		return "waits for you: " + j.LastError
	case j.CRMID != "":
		return "" // what went wrong on the way is no news any more
	case j.ConfirmedBy != "":
		return "made by " + j.ConfirmedBy
	default:
		return j.LastError
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// withModels runs use on read models that are up to date, as far as another
// process lets them be.
func withModels(c *cobra.Command, read func() (config, error), use func(context.Context, *projections.Store, eventlog.Log) error) error {
	return withLog(c, read, func(ctx context.Context, config config, log eventlog.Log) error {
		models, closeModels, err := openModels(ctx, config, projections.Options{})
		if err != nil {
			return err
		}
		err = catchUp(ctx, models, log, progressTo(c.ErrOrStderr()))
		if errors.Is(err, errHeld) {
			fmt.Fprintf(c.ErrOrStderr(), "leadonce: %v; what follows may be old\n", err)
			err = nil
		}
		if err == nil {
			err = use(ctx, models, log)
		}
		return errors.Join(err, closeModels())
	})
}

// errHeld: another process writes the read models and does not come to an end.
var errHeld = errors.New("another process holds the read models")

// heldAfter is how long a catch-up may come no further.
const heldAfter = 5 * time.Second

// catchUp brings the read models up to date. It gives up with errHeld when it
// comes no further: reading needs no lock.
func catchUp(ctx context.Context, models *projections.Store, log eventlog.Log, report func(projections.Progress)) error {
	held, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(heldAfter, cancel)
	defer watchdog.Stop()
	err := models.CatchUp(held, log, func(p projections.Progress) {
		watchdog.Reset(heldAfter)
		report(p)
	})
	if err != nil && held.Err() != nil && ctx.Err() == nil {
		return errHeld
	}
	return err
}

// progressTo reports a long catch-up, at most once a second.
func progressTo(w io.Writer) func(projections.Progress) {
	last := time.Now()
	return func(p projections.Progress) {
		if time.Since(last) > time.Second {
			last = time.Now()
			fmt.Fprintf(w, "reading the log: %d events, up to %s\n", p.Events, stamp(p.UpTo))
		}
	}
}

// withLog runs use on the log that is there.
func withLog(c *cobra.Command, read func() (config, error), use func(context.Context, config, eventlog.Log) error) error {
	config, err := read()
	if err != nil {
		return err
	}
	if err := config.checkLog(); err != nil {
		return err
	}
	log, closeLog, err := openLog(c.Context(), config, false, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(use(c.Context(), config, log), closeLog())
}

func jobShowCommand() *cobra.Command {
	c := &cobra.Command{Use: "show KEY", Short: "Show one job, such as telegram/700000001/1234", Args: exactArgs("KEY")}
	read, out := withConfig(c), withOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if !strings.HasPrefix(args[0], job.JobStreams) {
			if _, err := parseKey(args[0]); err != nil {
				return err
			}
		}
		return withModels(c, read, func(ctx context.Context, models *projections.Store, log eventlog.Log) error {
			j, err := models.Job(ctx, args[0])
			if errors.Is(err, projections.ErrNoJob) {
				return fmt.Errorf("%s: no such job; `leadonce job list` shows what there is", args[0])
			}
			if err != nil {
				return err
			}
			reply, err := readReply(ctx, log, j.Key)
			if err != nil {
				return err
			}
			shown := shownJob{j, stepKey(j), madeBefore(ctx, log, j.Key), reply}
			if out.json() {
				return writeJSON(c.OutOrStdout(), shown)
			}
			return writeJob(c.OutOrStdout(), shown)
		})
	}
	return c
}

// shownJob is a job with what its steps made, and with the reply to its person.
type shownJob struct {
	projections.Job
	StepKey string      `json:"step_key,omitempty"`
	Made    []job.Made  `json:"made,omitempty"`
	Reply   *shownReply `json:"reply,omitempty"`
}

// madeBefore is what the steps of a job made so far; of one that is stopped, as far as
// its events can be read.
func madeBefore(ctx context.Context, log eventlog.Log, key string) []job.Made {
	k, err := job.ParseKey(key)
	if err != nil {
		return nil // a stopped job has no key
	}
	s, _ := engine.Load(ctx, log, k.Stream())
	return s.Made
}

// stepKey is what to look for in the CRM when a job stands at another step than the
// lead: not the operation id, which is the lead's own.
func stepKey(j projections.Job) string {
	if j.Step == "" || j.Step == job.LeadStep || j.OperationID == "" {
		return ""
	}
	return job.StepKey(j.OperationID, j.Step)
}

// writeJob shows every field that has something to say, of the job, its steps and the
// reply.
func writeJob(w io.Writer, j shownJob) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if err := writeFields(t, "", j.Job); err != nil {
		return err
	}
	if j.StepKey != "" {
		fmt.Fprintf(t, "step_key\t%s\n", j.StepKey)
	}
	for _, m := range j.Made {
		fmt.Fprintf(t, "made.%s\t%s, known by %s\n", m.Step, m.CRMID, m.How)
	}
	if j.Reply != nil {
		if err := writeFields(t, "reply.", j.Reply); err != nil {
			return err
		}
	}
	return t.Flush()
}

// writeFields writes a line for each member of v as JSON.
func writeFields(w io.Writer, prefix string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber() // ids of 64 bits stay exact
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s%s\t%v\n", prefix, name, value)
	}
	return nil
}
