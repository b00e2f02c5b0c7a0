package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/projections"
)

// readModel reads one read model for the jobs of a filter, and how it looks as a
// table.
type readModel func(context.Context, *projections.Store, projections.Filter) (rows any, table func(io.Writer), err error)

// readModels are those that `projections show` prints, beside what `job list` does.
var readModels = map[string]readModel{
	"mapping": func(ctx context.Context, s *projections.Store, f projections.Filter) (any, func(io.Writer), error) {
		rows, err := s.Mappings(ctx, f)
		return rows, func(w io.Writer) {
			fmt.Fprintln(w, "NUMBER\tJOB\tOPERATION\tCRM ID\tHOW\tMADE BY")
			for _, r := range rows {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", r.Number, r.Key, r.OperationID, r.CRMID, r.How, r.ConfirmedBy)
			}
		}, err
	},
	"duplicates": func(ctx context.Context, s *projections.Store, f projections.Filter) (any, func(io.Writer), error) {
		rows, err := s.Duplicates(ctx, f)
		return rows, func(w io.Writer) {
			fmt.Fprintln(w, "NUMBER\tJOB\tDELIVERED AGAIN\tFIRST\tLAST\tWHY")
			for _, r := range rows {
				fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\n", r.Number, r.Key, r.Count, stamp(r.FirstAt), stamp(r.LastAt), r.Reason)
			}
		}, err
	},
	"incidents": func(ctx context.Context, s *projections.Store, f projections.Filter) (any, func(io.Writer), error) {
		rows, err := s.Incidents(ctx, f)
		return rows, func(w io.Writer) {
			fmt.Fprintln(w, "ID\tJOB\tKIND\tAT\tSTORED AS\tSTEP\tCRM ID\tCONFIRMED")
			for _, r := range rows {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Key, r.Kind, stamp(r.At), r.StoredAs, r.Step, r.CRMID, r.Confirmed)
			}
		}, err
	},
	"timings": func(ctx context.Context, s *projections.Store, f projections.Filter) (any, func(io.Writer), error) {
		row, err := s.Timings(ctx, f.Since)
		return row, func(w io.Writer) {
			fmt.Fprintln(w, "FROM ACCEPTANCE TO\tJOBS\tHALF WITHIN\t90 % WITHIN\t99 % WITHIN\tLONGEST")
			for _, q := range []struct {
				name string
				projections.Quantiles
			}{{"first claim", row.ToClaim}, {"end", row.ToFinish}} {
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", q.name, q.Count, q.P50, q.P90, q.P99, q.Max)
			}
		}, err
	},
}

func projectionsShowCommand() *cobra.Command {
	names := slices.Sorted(maps.Keys(readModels))
	c := &cobra.Command{
		Use:   "show (" + strings.Join(names, " | ") + ")",
		Short: "Print a read model; the jobs themselves are in `job list`",
		Args:  exactArgs("NAME"),
	}
	read, out := withConfig(c), withOutput(c)
	var f projections.Filter
	c.Flags().Int64Var(&f.Bot, "bot", 0, "only this bot")
	c.Flags().IntVar(&f.Limit, "limit", projections.DefaultLimit, "at most this many")
	c.Flags().Int64Var(&f.After, "after", 0, "the number or id of the last row of the page before")
	since := c.Flags().Duration("since", 0, "only what is younger than this, such as 24h (default: all)")
	c.RunE = func(c *cobra.Command, args []string) error {
		model, ok := readModels[args[0]]
		if !ok {
			return mistake("%q is no read model, give one of %s", args[0], strings.Join(names, ", "))
		}
		if err := out.check(); err != nil {
			return err
		}
		if *since > 0 {
			f.Since = time.Now().Add(-*since)
		}
		return withModels(c, read, func(ctx context.Context, models *projections.Store, _ eventlog.Log) error {
			rows, table, err := model(ctx, models, f)
			if err != nil {
				return err
			}
			if out.json() {
				return writeJSON(c.OutOrStdout(), rows)
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			table(t)
			return t.Flush()
		})
	}
	return c
}
