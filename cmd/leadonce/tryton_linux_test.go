package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm/restcrm/trytontest"
)

const (
	trytonUpdates = 500
	trytonKills   = 3    // of trytond, and as many of leadonce
	trytonCuts    = 0.2  // of the answers
	trytonLate    = 0.02 // of the creates: they are on their way for so long
	trytonHeld    = 8 * time.Second
	trytonTimeout = 5 * time.Second
	trytonSettle  = 10 * time.Second

	// trytonPatience is for one run on a machine with other work.
	trytonPatience = 10 * time.Minute
)

// trytonConfig gives a create 5 s, which is ten times what one takes among eight, and
// then Tryton 10 s to end what it has begun: as long again as a request may take, and
// its five tries after a conflict, which it makes within the same request.
const trytonConfig = `data_dir: data
bots: [{id: 700000001, secrets: ["${TELEGRAM_WEBHOOK_SECRET}"]}]
crm: {connector: ./crm.yaml, url: "%s", class: %s, settle: %s, trust_declared: true}
workers: 8
call_timeout: %s
lease: 7s
retry: {attempts: 50, first: 100ms, max: 1s}
clock_skew: 100ms
logging: {level: debug}
`

// TestTryton: a real CRM that is killed, under a leadonce that is killed, answers that
// get lost and requests that arrive late. PostgreSQL says what leads there are; no lead is doubled and none is
// lost, whether or not Tryton has a unique key.
func TestTryton(t *testing.T) {
	postgres := trytontest.Open(t)
	accounts := make(chan trytonAccount, 4)
	t.Cleanup(func() {
		close(accounts)
		t.Log(trytonTable(accounts))
	})
	for _, v := range []struct {
		variant trytontest.Variant
		class   string
	}{{trytontest.Unique, "unique_create"}, {trytontest.Stock, "lookup"}} {
		for _, share := range []float64{0, trytonCuts} {
			t.Run(fmt.Sprintf("%s/cut=%g", v.variant.Connector, share), func(t *testing.T) {
				t.Parallel() // a run waits most of the time
				r := newTrytonRun(t, postgres.Start(t, v.variant), v.variant.Connector, v.class, share)
				accounts <- r.drive()
			})
		}
	}
}

// trytonRun is a site whose CRM is Tryton.
type trytonRun struct {
	*site
	crm     *trytontest.CRM
	proxy   *cuttingProxy // nil: none
	account trytonAccount
}

func newTrytonRun(t *testing.T, crm *trytontest.CRM, connector, class string, share float64) *trytonRun {
	r := &trytonRun{site: &site{t: t, dir: t.TempDir(), env: []string{"TRYTON_PASSWORD=" + trytontest.Password}}, crm: crm}
	r.account.connector = connector
	url := crm.URL()
	if share > 0 {
		r.proxy = newCuttingProxy(t, crm.Root(), share)
		url = r.proxy.URL + crm.Path()
	}
	description, err := os.ReadFile("../../engine/crm/restcrm/connectors/" + connector + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	// What comes with the program, but for how long a CRM that fails is left alone:
	// this one is back within seconds.
	r.write("crm.yaml", string(description)+"\nlimits: {break_for: 1s}\n")
	r.write("leadonce.yaml", fmt.Sprintf(trytonConfig, url, class, trytonSettle, trytonTimeout))
	return r
}

// drive delivers the updates, kills, waits for the end, and judges.
func (r *trytonRun) drive() trytonAccount {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(r.t.Context(), trytonPatience)
	defer cancel()
	var base atomic.Value
	v := r.serve()
	base.Store(v.url)
	delivered := deliverAll(ctx, &base, trytonUpdates)
	for n := range 2 * trytonKills {
		r.awaitLeads(ctx, (n+1)*trytonUpdates/(2*trytonKills+1))
		if n%2 == 0 {
			r.crm.Kill()
			if err := r.crm.Restart(ctx); err != nil {
				r.t.Fatal(err)
			}
		} else {
			v.kill()
			v = r.serve()
			base.Store(v.url)
		}
		r.account.kills++
	}
	delivered()
	r.settle(ctx)
	r.account.took = time.Since(begun)
	r.terminate(v.program)
	if r.proxy != nil {
		r.account.cuts, r.account.late = int(r.proxy.cuts.Load()), int(r.proxy.late.Load())
	}
	r.judge()
	return r.account
}

// awaitLeads waits until so many are in the CRM.
func (r *trytonRun) awaitLeads(ctx context.Context, n int) {
	r.t.Helper()
	for {
		leads, err := r.crm.Leads(ctx)
		if err != nil {
			r.t.Fatalf("waiting for %d leads: %v", n, err)
		}
		if len(leads) >= n {
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// settle waits until every job is final.
func (r *trytonRun) settle(ctx context.Context) {
	r.t.Helper()
	for {
		open := 0
		jobs := r.jobs()
		for _, j := range jobs {
			if !j.Phase.Final() {
				open++
			}
		}
		if open == 0 && len(jobs) >= trytonUpdates {
			return
		}
		if ctx.Err() != nil {
			r.t.Fatalf("%d jobs, and %d of them still open after %s", len(jobs), open, trytonPatience)
		}
		pause(ctx, time.Second)
	}
}
