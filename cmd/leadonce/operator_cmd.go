package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// signing gives a command the flags --by and --reason.
func signing(c *cobra.Command) *job.Signature {
	var g job.Signature
	c.Flags().StringVar(&g.By, "by", "", "who decides; recorded (required)")
	c.Flags().StringVar(&g.Reason, "reason", "", "why; recorded (required)")
	return &g
}

func checkSignature(g *job.Signature) error {
	if g.By == "" || g.Reason == "" {
		return mistake("--by and --reason are needed: who decides, and why; both are recorded")
	}
	return nil
}

func jobReconcileCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reconcile KEY (--crm-id ID | --absent) [--step NAME] --by WHO --reason WHY",
		Short: "Say what became of a job in needs_reconciliation",
		Args:  exactArgs("KEY"),
	}
	read, g := withConfig(c), signing(c)
	crmID := c.Flags().String("crm-id", "", "it exists, with this id")
	absent := c.Flags().Bool("absent", false, "it was not made: make a new attempt")
	step := c.Flags().String("step", "", "what you looked for, where a lead takes several effects (default: the lead itself)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if (*crmID != "") == *absent {
			return mistake("give --crm-id ID or --absent, one of them")
		}
		return operate(c, read, args[0], g, func(ctx context.Context, e *engine.Engine, key job.Key) (job.State, error) {
			if *absent {
				return e.ResolveAbsent(ctx, key, *step, *g)
			}
			return e.Resolve(ctx, key, *step, *crmID, *g)
		})
	}
	return c
}

func operatorCommand(name, short string, act func(*engine.Engine, context.Context, job.Key, job.Signature) (job.State, error)) *cobra.Command {
	c := &cobra.Command{Use: name + " KEY --by WHO --reason WHY", Short: short, Args: exactArgs("KEY")}
	read, g := withConfig(c), signing(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return operate(c, read, args[0], g, func(ctx context.Context, e *engine.Engine, key job.Key) (job.State, error) {
			return act(e, ctx, key, *g)
		})
	}
	return c
}

// operate does a person's act through an engine of its own: `serve` may be
// running on the same log.
func operate(c *cobra.Command, read func() (config, error), arg string, g *job.Signature, act func(context.Context, *engine.Engine, job.Key) (job.State, error)) error {
	key, err := parseKey(arg)
	if err != nil {
		return err
	}
	if err := checkSignature(g); err != nil {
		return err
	}
	return withEngine(c, read, func(ctx context.Context, e *engine.Engine) error {
		s, err := act(ctx, e, key)
		if errors.Is(err, engine.ErrNoJob) {
			return noSuchJob(key)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s is now %s\n", key, s.Now())
		return nil
	})
}

// withEngine runs use with an engine on the log that is there.
func withEngine(c *cobra.Command, read func() (config, error), use func(context.Context, *engine.Engine) error) error {
	return withLog(c, read, func(ctx context.Context, config config, log eventlog.Log) error {
		if err := config.checkCRM(); err != nil {
			return err
		}
		connector, err := newConnector(config)
		if err != nil {
			return err
		}
		e, err := engine.New(engine.Config{
			Log: log, CRM: connector, Clock: systemClock{}, IDs: randomIDs{}, Observer: silent{},
			Plan: config.plan(), Policy: config.policy(), Worker: workerName(),
		})
		if err != nil {
			return mistake("%v", err)
		}
		return use(ctx, e)
	})
}

func jobDoubtCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doubt --by WHO --reason WHY",
		Short: "After a log was restored: reconcile every open job before anything is sent",
		Long: "A restored log does not know what was made since its backup. This records, for every job that\n" +
			"is about to be sent, that its lead may exist already: it is looked up first, or put before a\n" +
			"person. Run it before `leadonce serve`.",
		Args: noArgs,
	}
	read, g := withConfig(c), signing(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkSignature(g); err != nil {
			return err
		}
		return withEngine(c, read, func(ctx context.Context, e *engine.Engine) error {
			a := engine.NewAgenda()
			if err := a.Sweep(ctx, e.Log, eventProgress(c.ErrOrStderr())); err != nil {
				return err
			}
			jobs := 0
			for {
				stream, ok := a.Next(time.Now().Add(longest))
				if !ok {
					fmt.Fprintf(c.OutOrStdout(), "%d jobs are reconciled before anything is sent\n", jobs)
					return forgetSnapshot(read)
				}
				doubted, err := e.Doubt(ctx, stream, *g)
				if err != nil {
					return err
				}
				if doubted {
					jobs++
				}
			}
		})
	}
	return c
}

// forgetSnapshot removes the agenda's snapshot, by which serve knows the log that
// was there before.
func forgetSnapshot(read func() (config, error)) error {
	config, err := read()
	if err != nil {
		return err
	}
	err = os.Remove(filepath.Join(config.DataDir, snapshotFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// silent observes nothing: the command prints its own result.
type silent struct{}

func (silent) Recorded(job.State, []job.Event)                             {}
func (silent) Called(job.State, engine.Request, time.Duration, *crm.Error) {}
func (silent) Troubled(string, error)                                      {}
