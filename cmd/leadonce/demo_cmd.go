package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/cmd/leadonce/demo"
)

func demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run it all against a CRM that misbehaves, with SIGKILLs, and give account",
		Long: "Starts simulated CRMs with faults and an engine for each, delivers updates as Telegram does,\n" +
			"kills the engines with SIGKILL, and takes account from the CRMs' own journals.\n" +
			"It needs no configuration, network or account. Exit status 0 only if nothing was lost or doubled.",
		Args: noArgs,
	}
	var o demo.Options
	c.Flags().IntVar(&o.Updates, "updates", 1000, "how many updates in all")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "decides updates, faults and the moments of the kills")
	c.Flags().Float64Var(&o.Faults, "faults", 0.3, "share of the CRM's requests that meet a fault, 0 to 1")
	class := c.Flags().String("class", "all", "what the CRM promises: all, or one of "+strings.Join(demo.Classes, ", "))
	c.Flags().IntVar(&o.Kills, "kills", 40, "how many SIGKILLs in all")
	c.Flags().IntVar(&o.Processes, "processes", 1, "of the engine, for each CRM: 1 that does all, or this many that accept and as many that make leads")
	c.Flags().BoolVar(&o.Keep, "keep", false, "leave everything running at the end, with the next commands to try")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.Classes = []string{*class}
		if *class == "all" {
			o.Classes = demo.Classes
		}
		switch {
		case *class != "all" && !slices.Contains(demo.Classes, *class):
			return mistake("--class: %q is unknown, give all or one of %s", *class, strings.Join(demo.Classes, ", "))
		case o.Updates < 10*len(o.Classes):
			return mistake("--updates: %d, give at least %d", o.Updates, 10*len(o.Classes))
		case !(o.Faults >= 0 && o.Faults <= 1):
			return mistake("--faults: %v, give 0 to 1", o.Faults)
		case o.Processes < 1 || o.Processes > 10:
			return mistake("--processes: %d, give 1 to 10", o.Processes)
		case o.Kills < 0:
			return mistake("--kills: %d, give 0 or more", o.Kills)
		}
		var err error
		if o.Executable, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		o.Out = c.OutOrStdout()
		if err = demo.Run(c.Context(), o); errors.Is(err, demo.ErrWrong) {
			fmt.Fprintf(c.ErrOrStderr(), "leadonce: %v\n", err)
			return errFound
		}
		return err
	}
	return c
}
