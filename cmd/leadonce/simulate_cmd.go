package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/properties/sim"
)

func simulateCommand() *cobra.Command {
	var s sim.Soak
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Search for a way to lose or double a lead, in a simulated world",
		Long: "Runs the engine against a simulated log, CRM, Telegram and clocks that fail in every way,\n" +
			"one call at a time, and judges every step. The same seed finds the same. What is found is\n" +
			"made as short as possible, told, and saved. Exit status 1 if something was found.",
		Args: noArgs,
	}
	c.Flags().IntVar(&s.Runs, "runs", 20_000, "how many runs; 0 for no limit but --time")
	c.Flags().DurationVar(&s.Time, "time", 0, "for how long, like 10m; 0 for no limit but --runs")
	c.Flags().Uint64Var(&s.Seed, "seed", 0, "of the first run; drawn when it is not given")
	class := c.Flags().String("class", "all", "what the CRM promises: all, or one of "+classNames())
	coverage := c.Flags().Bool("coverage", false, "print what the runs came to, and how often")
	schedule := c.Flags().String("schedule", "", "run this one schedule, or the one in this file, and tell what happens")
	save := c.Flags().String("save", "leadonce-schedule.json", "the file for the schedule of what is found")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("schedule") {
			for _, other := range []string{"runs", "time", "seed", "class", "coverage", "save"} {
				if c.Flags().Changed(other) {
					return mistake("--schedule says all: drop --%s", other)
				}
			}
			return retell(c.OutOrStdout(), strings.TrimSpace(*schedule))
		}
		if *class != "all" {
			var err error
			if s.Class, err = crm.ParseClass(*class); err != nil {
				return mistake("--class: %q is unknown, give all or one of %s", *class, classNames())
			}
		}
		if c.Flags().Changed("time") && !c.Flags().Changed("runs") {
			s.Runs = 0
		}
		switch {
		case s.Runs < 0:
			return mistake("--runs: %d, give 0 or more", s.Runs)
		case s.Time < 0:
			return mistake("--time: %s, give 0 or more", s.Time)
		case s.Runs == 0 && s.Time == 0:
			return mistake("--runs and --time: give at least one limit")
		}
		if !c.Flags().Changed("seed") {
			s.Seed = rand.Uint64() >> 16
		}
		return simulate(c, s, *save, *coverage)
	}
	return c
}

func classNames() string {
	names := make([]string, len(crm.Classes))
	for i, class := range crm.Classes {
		names[i] = string(class)
	}
	return strings.Join(names, ", ")
}

// kept is a schedule in a file.
type kept struct {
	Schedule string       `json:"schedule"`
	Broke    sim.Property `json:"broke"`
	Story    string       `json:"story"`
}

// retell runs one schedule.
func retell(out io.Writer, schedule string) error {
	if strings.HasSuffix(schedule, ".json") {
		data, err := os.ReadFile(schedule)
		if err != nil {
			return mistake("--schedule: %v", err)
		}
		var k kept
		if err := json.Unmarshal(data, &k); err != nil || k.Schedule == "" {
			return mistake("--schedule: %s has no member \"schedule\"", schedule)
		}
		schedule = k.Schedule
	}
	plan, err := sim.ParseSchedule(schedule)
	if err != nil {
		return mistake("--schedule: %v", err)
	}
	if violation := sim.Story(out, plan); violation != nil {
		fmt.Fprintf(out, "\nBROKEN %s\n", violation)
		return errFound
	}
	fmt.Fprintln(out, "\nEvery promise was kept.")
	return nil
}

func simulate(c *cobra.Command, s sim.Soak, save string, coverage bool) error {
	out, progress := c.OutOrStdout(), c.ErrOrStderr()
	fmt.Fprintf(out, "leadonce simulate: seed %d\n", s.Seed)
	s.Progress = func(runs int, took time.Duration) {
		fmt.Fprintf(progress, "%9d runs, %.0f a second\n", runs, float64(runs)/took.Seconds())
	}
	debug.SetGCPercent(3000) // a run leaves nothing behind, and the next one needs as much
	found, cover := s.Run(c.Context())
	if coverage {
		cover.Print(out)
	}
	cover.Summarize(out)
	switch {
	case found != nil:
		return report(out, found, save)
	case c.Context().Err() != nil:
		return fmt.Errorf("interrupted after %d runs; nothing was broken by then", cover.Runs)
	default:
		fmt.Fprintln(out, "Every promise was kept.")
		return nil
	}
}

// report tells what was found, and saves its schedule.
func report(out io.Writer, found *sim.Found, save string) error {
	fmt.Fprintf(out, "\nFound with seed %d. The shortest way to it:\n\n", found.Seed)
	plan := sim.Minimize(found.Plan)
	violation := sim.Story(out, plan)
	fmt.Fprintf(out, "\nBROKEN %s\n", violation)
	data, err := json.MarshalIndent(kept{plan.String(), violation.Property, violation.What}, "", "  ")
	if err == nil {
		err = os.WriteFile(save, append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save the schedule: %w", err)
	}
	fmt.Fprintf(out, "saved; see it again: leadonce simulate --schedule %s\n", save)
	return errFound
}
