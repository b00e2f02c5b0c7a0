package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// trytonAccount is what became of the operations.
type trytonAccount struct {
	connector                        string
	cuts                             int // answers to creates that had their effect
	late                             int // creates that had it behind their deadline
	kills                            int // of both
	jobs, leads, doubled, lost       int
	reconciled, found, absent, exist int
	took                             time.Duration
}

// judge compares the jobs with the rows of the database.
func (r *trytonRun) judge() {
	leads, err := r.crm.Leads(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	a := &r.account
	jobs := r.jobs()
	a.jobs = len(jobs)
	if a.jobs != trytonUpdates {
		r.t.Errorf("%d jobs, want %d", a.jobs, trytonUpdates)
	}
	for id, j := range jobs {
		made := leads[j.OperationID]
		a.leads += len(made)
		if j.Phase != job.Done || !slices.Contains(made, j.CRMID) {
			a.lost++
			r.t.Errorf("update %d is %s with lead %q, and Tryton has %q: %s", id, j.Phase, j.CRMID, made, j.LastError)
		}
		if len(made) > 1 {
			a.doubled++
			r.t.Errorf("update %d has leads %q", id, made)
		}
		delete(leads, j.OperationID)
	}
	for key, made := range leads {
		r.t.Errorf("leads %q of %q, which no job asked for", made, key)
	}
	r.readLog()
	r.verify()
	if a.reconciled+a.exist == 0 || r.proxy != nil && (a.cuts < trytonUpdates*trytonCuts/2 || a.late == 0) {
		r.t.Errorf("the weather did not come: %+v", *a)
	}
}

// readLog counts how the outcomes became known. That nothing was found says something
// only once the request can no longer have an effect.
func (r *trytonRun) readLog() {
	c := defaultConfig()
	c.DataDir = r.path("data")
	events, closeLog, err := openLog(r.t.Context(), c, false, slog.New(slog.DiscardHandler))
	if err != nil {
		r.t.Fatal(err)
	}
	defer closeLog()
	states := map[string]job.State{}
	for e, err := range events.ReadAll(r.t.Context(), eventlog.Start) {
		if err != nil {
			r.t.Fatal(err)
		}
		if !strings.HasPrefix(e.Stream, job.JobStreams) {
			continue
		}
		event, err := job.Decode(e.Type, e.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		before := states[e.Stream]
		states[e.Stream] = before.Evolve(event, e.Time)
		r.count(before, event, e.Time)
	}
}

func (r *trytonRun) count(before job.State, event job.Event, at time.Time) {
	a := &r.account
	switch event := event.(type) {
	case job.ReconciliationNeeded:
		if before.Phase != job.NeedsReconciliation {
			a.reconciled++
		}
	case job.LeadConfirmed:
		if before.Phase == job.NeedsReconciliation && event.How == job.ByLookup {
			a.found++
		}
		if event.How == job.ByExists {
			a.exist++
		}
	case job.LeadAbsent:
		a.absent++
		if settled := before.LastDeadline.Add(trytonSettle); at.Before(settled) {
			r.t.Errorf("%s was taken for absent %s before its request had settled", before.Key, settled.Sub(at))
		}
	}
}

// verify has the program's own audit compare the log with the CRM.
func (r *trytonRun) verify() {
	leads, err := r.crm.Leads(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	type lead struct {
		ExternalID string `json:"external_id"`
		CRMID      string `json:"crm_id"`
	}
	list := []lead{}
	for key, made := range leads {
		for _, id := range made {
			list = append(list, lead{key, id})
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write("leads.json", string(text))
	if status, out, failure := r.run("audit", "verify", "--crm=leads.json"); status != 0 || !strings.Contains(out, "nothing is wrong") {
		r.t.Errorf("audit: status %d\n%s%s", status, out, failure)
	}
}

func trytonTable(accounts <-chan trytonAccount) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nconnector\toperations\tleads\tdoubled\tlost\treconcile\tfound\tabsent\texists\tcut\tlate\tSIGKILLs\tseconds\t")
	var rows []trytonAccount
	for a := range accounts {
		rows = append(rows, a)
	}
	slices.SortFunc(rows, func(a, b trytonAccount) int {
		return cmp.Or(cmp.Compare(a.connector, b.connector), cmp.Compare(a.cuts, b.cuts))
	})
	for _, a := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.0f\t\n", a.connector, a.jobs, a.leads, a.doubled, a.lost,
			a.reconciled, a.found, a.absent, a.exist, a.cuts, a.late, a.kills, a.took.Seconds())
	}
	_ = w.Flush()
	return out.String()
}

// cuttingProxy stands in front of trytond. It breaks off a share of the answers that
// have come, and holds some creates until nobody waits for them any more.
type cuttingProxy struct {
	*httptest.Server
	trytond *crmtest.Upstream
	share   float64
	ended   context.Context
	cuts    atomic.Int64 // answers to creates that had made a lead
	late    atomic.Int64 // leads that were made behind the request's deadline
}

func newCuttingProxy(t *testing.T, root string, share float64) *cuttingProxy {
	t.Helper()
	trytond, err := crmtest.NewUpstream(root, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	p := &cuttingProxy{trytond: trytond, share: share, ended: t.Context()}
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.Start()
	t.Cleanup(p.Close)
	return p
}

func (p *cuttingProxy) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	question, err := io.ReadAll(in.Body)
	if err != nil {
		return // leadonce was killed
	}
	create := strings.Contains(string(question), "opportunity.create")
	late := create && rand.Float64() < trytonLate
	if late {
		pause(p.ended, trytonHeld)
	}
	status, header, answer, err := p.trytond.Forward(in, question)
	made := create && strings.Contains(string(answer), `"result"`)
	switch {
	case err != nil:
		crmtest.HangUp(out, false)
	case late:
		if made {
			p.late.Add(1)
		}
		crmtest.HangUp(out, false)
	case rand.Float64() < p.share:
		if made {
			p.cuts.Add(1)
		}
		crmtest.HangUp(out, rand.N(2) == 0)
	default:
		crmtest.Relay(out, status, header, answer)
	}
}
