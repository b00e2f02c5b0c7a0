package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadonce/leadonce/engine/audit"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// fromConfig is the value of --crm without one.
const fromConfig = "crm.url"

func auditCommand() *cobra.Command {
	parent := &cobra.Command{Use: "audit", Short: "Prove what happened", Args: noArgs, RunE: help}
	c := &cobra.Command{
		Use:   "verify",
		Short: "Decide the whole log again; exit 1 when a promise is broken",
		Args:  noArgs,
	}
	read, out := withConfig(c), withOutput(c)
	from := c.Flags().String("crm", "", "also compare with the CRM's leads: a file or URL of a JSON array of {external_id, crm_id}; alone, the oracle of the simulated CRM at crm.url")
	c.Flags().Lookup("crm").NoOptDefVal = fromConfig
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		return withLog(c, read, func(ctx context.Context, config config, log eventlog.Log) error {
			report, err := verify(ctx, config, log, *from, eventProgress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			if out.json() {
				err = writeJSON(c.OutOrStdout(), report)
			} else {
				err = writeReport(c.OutOrStdout(), report)
			}
			if err == nil && len(report.Findings) > 0 {
				err = errFound
			}
			return err
		})
	}
	parent.AddCommand(c)
	return parent
}

// verify audits the log, and compares it with the CRM's leads if from names them.
func verify(ctx context.Context, c config, log eventlog.Log, from string, progress func(int)) (audit.Report, error) {
	if from == "" {
		return audit.Verify(ctx, log, progress)
	}
	before, err := readLeads(ctx, c, from)
	if err != nil {
		return audit.Report{}, err
	}
	report, err := audit.Verify(ctx, log, progress)
	if err != nil {
		return report, err
	}
	after, err := readLeads(ctx, c, from)
	report.Compare(before, after)
	return report, err
}

func eventProgress(w io.Writer) func(int) {
	last := time.Now()
	return func(events int) {
		if time.Since(last) > time.Second {
			last = time.Now()
			fmt.Fprintf(w, "reading the log: %d events\n", events)
		}
	}
}

func writeReport(w io.Writer, r audit.Report) error {
	fmt.Fprintf(w, "%d events, %d jobs, %d leads confirmed, %d deliveries repeated, %d keys in conflict\n",
		r.Events, r.Jobs, r.Leads, r.Duplicates, r.Conflicts)
	for _, p := range job.Phases {
		if r.Phases[p] > 0 {
			fmt.Fprintf(w, "  %-21s %d\n", p, r.Phases[p])
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%s: %s: %s\n", strings.ToUpper(string(f.Kind)), f.Subject, f.Detail)
	}
	verdict := "nothing is wrong"
	if n := len(r.Findings); n > 0 {
		verdict = fmt.Sprintf("%d findings", n)
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}

// readLeads reads the CRM's list from a file or over HTTP.
func readLeads(ctx context.Context, c config, from string) ([]audit.Lead, error) {
	var leads []audit.Lead
	if from == fromConfig {
		if err := c.checkCRM(); err != nil {
			return nil, err
		}
		from = strings.TrimRight(c.CRM.URL, "/") + "/oracle/effects"
	}
	body, err := openLeads(ctx, from)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&leads); err != nil {
		return nil, fmt.Errorf("--crm: not a JSON array of {external_id, crm_id}: %w", err)
	}
	return leads, nil
}

func openLeads(ctx context.Context, from string) (io.ReadCloser, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		f, err := os.Open(from)
		if err != nil {
			return nil, mistake("--crm: %v", err)
		}
		return f, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, mistake("--crm: not an address")
	}
	response, err := http.DefaultClient.Do(req)
	var failure *url.Error
	if errors.As(err, &failure) {
		err = failure.Err // without the address: it may hold a password
	}
	if err != nil {
		return nil, fmt.Errorf("--crm: the CRM cannot be asked: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("--crm: the CRM answered %s", response.Status)
	}
	return response.Body, nil
}
