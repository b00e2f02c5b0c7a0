package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.Flags().Lookup("crm").Value.String() == fromConfig {
				return mistake("unknown argument %q; write --crm=%s, without a space", args[0], args[0])
			}
			return noArgs(c, args)
		},
	}
	read, out := withConfig(c), withOutput(c)
	from := c.Flags().String("crm", "", "also compare with the CRM's leads: a file or URL of a JSON array of {external_id, crm_id}; alone, the oracle of the simulated CRM at crm.url")
	c.Flags().Lookup("crm").NoOptDefVal = fromConfig
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		return withLog(c, read, func(ctx context.Context, config config, log eventlog.Log) error {
			report, failure := verify(ctx, config, log, *from, c.ErrOrStderr())
			if failure != nil && len(report.Findings) == 0 {
				return failure
			}
			write := writeReport
			if out.json() {
				write = func(w io.Writer, r audit.Report) error { return writeJSON(w, r) }
			}
			switch err := write(c.OutOrStdout(), report); {
			case err != nil:
				return err
			case failure != nil:
				return fmt.Errorf("the audit is not complete: %w", failure)
			case len(report.Findings) > 0:
				return errFound
			}
			return nil
		})
	}
	parent.AddCommand(c)
	return parent
}

// verify audits the log, and compares it with the CRM's leads if from names them.
// With an error comes a report on what could be read. Notes go to w.
func verify(ctx context.Context, c config, log eventlog.Log, from string, w io.Writer) (audit.Report, error) {
	var before, after []audit.Lead
	var err error
	if from != "" {
		if before, err = readLeads(ctx, c, from); err != nil {
			return audit.Report{}, err
		}
	}
	damage, err := damages(ctx, log, filepath.Join(c.DataDir, snapshotFile), w)
	report := audit.Report{Findings: damage}
	if err != nil {
		return report, err
	}
	report, err = audit.Verify(ctx, log, eventProgress(w))
	report.Findings = append(damage, report.Findings...)
	if from == "" || err != nil {
		return report, err
	}
	if after, err = readLeads(ctx, c, from); err == nil {
		report.Compare(before, after)
	}
	return report, err
}

// checked is a log that can look for damage that its events do not show.
type checked interface {
	Check(ctx context.Context) error
}

// damages looks at the log as it is kept: whether its own check finds fault, and
// whether it has what serve had read of it when it wrote the snapshot.
func damages(ctx context.Context, log eventlog.Log, snapshotPath string, w io.Writer) ([]audit.Finding, error) {
	found := []audit.Finding{}
	if log, ok := log.(checked); ok {
		err := log.Check(ctx)
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		if err != nil {
			found = append(found, audit.Finding{Kind: audit.Damaged, Subject: "log", Detail: err.Error()})
		}
	}
	snapshot, err := os.ReadFile(snapshotPath)
	if errors.Is(err, os.ErrNotExist) {
		return found, nil
	}
	cut := false
	if err == nil {
		cut, err = audit.Cut(ctx, log, snapshot)
		if err != nil && !errors.Is(err, audit.ErrNoSnapshot) {
			return found, err
		}
	}
	if err != nil { // serve does without, too
		fmt.Fprintf(w, "%s: the log is not compared with it: %v\n", snapshotPath, err)
	}
	if cut {
		found = append(found, audit.Finding{Kind: audit.Damaged, Subject: "log",
			Detail: "the agenda's snapshot names an event that the log does not have: the log was cut, replaced or restored"})
	}
	return found, nil
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
	if n := r.Replies; len(n) > 0 {
		fmt.Fprintf(w, "replies: %d sent, %d refused, %d unknown, %d claimed\n",
			n[job.ReplyIsSent], n[job.ReplyIsRefused], n[job.ReplyIsUnknown], n[job.ReplyIsClaimed])
	}
	if r.Drops > 0 {
		fmt.Fprintf(w, "%d updates that waited at Telegram were dropped by a person, in %d commands; see `leadonce webhook drops`\n", r.Dropped, r.Drops)
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

// leadsMend says what --crm takes, and leadsTimeout how long a CRM has for it.
const (
	leadsMend    = "give a file or URL of a JSON array of {external_id, crm_id}"
	leadsTimeout = 30 * time.Second
)

// readLeads reads the CRM's list from a file or over HTTP.
func readLeads(ctx context.Context, c config, from string) ([]audit.Lead, error) {
	if from == fromConfig {
		if err := c.checkCRM(); err != nil {
			return nil, err
		}
		if c.CRM.URL == "" {
			return nil, mistake("--crm: only the simulated CRM tells its leads by itself, at crm.url; export those of yours, and give --crm=FILE or --crm=URL of a JSON array of {external_id, crm_id}")
		}
		from = strings.TrimRight(c.CRM.URL, "/") + "/oracle/effects"
	}
	return fetchLeads(ctx, &http.Client{Timeout: leadsTimeout}, from)
}

func fetchLeads(ctx context.Context, client *http.Client, from string) ([]audit.Lead, error) {
	body, err := openLeads(ctx, client, from)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var listed []listedLead
	err = json.NewDecoder(body).Decode(&listed)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return nil, fmt.Errorf("--crm: the CRM's list is not there in time: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--crm: not a JSON array of {external_id, crm_id}: %w", err)
	}
	leads := make([]audit.Lead, len(listed))
	for i, l := range listed {
		leads[i] = audit.Lead{ExternalID: string(l.ExternalID), CRMID: string(l.CRMID)}
	}
	return leads, nil
}

// listedLead is a lead as an export has it.
type listedLead struct {
	ExternalID listedID `json:"external_id"`
	CRMID      listedID `json:"crm_id"`
}

// listedID is a text, or a number as it is written.
type listedID string

func (id *listedID) UnmarshalJSON(data []byte) error {
	var value any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // a float64 is exact up to 2^53 only
	if err := dec.Decode(&value); err != nil {
		return err
	}
	switch value := value.(type) {
	case nil:
		*id = ""
	case string:
		*id = listedID(value)
	case json.Number:
		*id = listedID(value)
	default:
		return fmt.Errorf("the id %.40s is neither a text nor a number", data)
	}
	return nil
}

func openLeads(ctx context.Context, client *http.Client, from string) (io.ReadCloser, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		f, err := os.Open(from)
		if err != nil {
			return nil, mistake("--crm: %v", err)
		}
		return f, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, mistake("--crm: not an address; %s", leadsMend)
	}
	response, err := client.Do(req)
	var failure *url.Error
	if errors.As(err, &failure) {
		err = failure.Err // without the address: it may hold a password
	}
	if err != nil {
		return nil, fmt.Errorf("--crm: the CRM cannot be asked: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("--crm: the CRM answered %s; %s", response.Status, leadsMend)
	}
	return response.Body, nil
}
