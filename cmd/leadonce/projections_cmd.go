package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/projections"
)

func projectionsCommand() *cobra.Command {
	parent := &cobra.Command{Use: "projections", Short: "Look after the read models", Args: noArgs, RunE: help}
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Build the read models anew from the log; a damaged file is set aside",
		Args:  noArgs,
	}
	read := withConfig(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withLog(c, read, func(ctx context.Context, config config, log eventlog.Log) error {
			models, closeModels, err := openModels(ctx, config, projections.Options{SetAside: true})
			if err != nil {
				return err
			}
			var events int64
			report := progressTo(c.ErrOrStderr())
			err = models.Rebuild(ctx, log, func(p projections.Progress) {
				events = p.Events
				report(p)
			})
			if err == nil {
				_, err = fmt.Fprintf(c.OutOrStdout(), "built anew from %d events\n", events)
			}
			return errors.Join(err, closeModels())
		})
	}
	parent.AddCommand(c, projectionsShowCommand())
	return parent
}
