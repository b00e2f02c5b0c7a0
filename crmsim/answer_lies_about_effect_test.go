package crmsim_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leadonce/leadonce/crmsim"
)

const (
	made     = `{"id":"L-000001"}`
	html     = "<!doctype html>"
	internal = `{"error":{"code":"internal"}}`
	limited  = `{"error":{"code":"rate_limited"}}`
)

// faultOnCreate is what one create under the fault shows and does. A body is compared by its beginning.
type faultOnCreate struct {
	fault   crmsim.Fault
	status  int // 0: no answer
	body    string
	late    bool // the effect comes only after Hang
	effects int
}

var faultsOnCreate = []faultOnCreate{
	{crmsim.NoFault, 201, made, false, 1},
	{crmsim.ResetConnection, 0, "", false, 0},
	{crmsim.CutBefore, 0, "", false, 0},
	{crmsim.CutAfter, 0, "", false, 1},
	{crmsim.HangThenApply, 201, made, true, 1},
	{crmsim.RateLimited, 429, limited, false, 0},
	{crmsim.RateLimitedDate, 429, limited, false, 0},
	{crmsim.RateLimitedAbsent, 429, limited, false, 0},
	{crmsim.RateLimitedPast, 429, limited, false, 0},
	{crmsim.RateLimitedFar, 429, limited, false, 0},
	{crmsim.ErrorBefore, 500, internal, false, 0},
	{crmsim.ErrorAfter, 500, internal, false, 1},
	{crmsim.NotExecuted, 503, `{"error":{"code":"not_executed"}}`, false, 0},
	{crmsim.UnavailableBefore, 503, "", false, 0},
	{crmsim.UnavailableAfter, 503, "", false, 1},
	{crmsim.OKWithoutID, 200, `{"status":"ok"}`, false, 1},
	{crmsim.OKWithErrorBefore, 200, internal, false, 0},
	{crmsim.OKWithErrorAfter, 200, internal, false, 1},
	{crmsim.OKHTMLBefore, 200, html, false, 0},
	{crmsim.OKHTMLAfter, 200, html, false, 1},
	{crmsim.BadRequestAfter, 400, `{"error":{"code":"bad_request"}}`, false, 1},
	{crmsim.AcceptedLater, 202, `{"status":"accepted"}`, true, 1},
	{crmsim.LoginRedirect, 302, "", false, 0},
}

// faultsOfClass are those whose outcome depends on the class.
var faultsOfClass = map[crmsim.Class][]faultOnCreate{
	crmsim.IdempotencyKey: {
		{crmsim.KeyIgnored, 201, made, false, 1},
		{crmsim.Duplicated, 201, made, false, 1},
	},
	crmsim.Upsert:       {{crmsim.Duplicated, 200, made, false, 1}},
	crmsim.UniqueCreate: {{crmsim.Duplicated, 409, `{"error":{"code":"already_exists"},"id":"L-000001"}`, false, 1}},
	crmsim.Lookup:       {{crmsim.Duplicated, 201, `{"id":"L-000002"}`, false, 2}},
	crmsim.None:         {{crmsim.Duplicated, 201, `{"id":"L-000002"}`, false, 2}},
}

func TestWhatTheClientSawIsNotWhatHappened(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		for _, row := range slices.Concat(faultsOnCreate, faultsOfClass[class]) {
			t.Run(string(row.fault), func(t *testing.T) {
				sim := newCRM(t, crmsim.Config{Class: class})
				seen := sim.startCreate(t.Context(), "e-1", row.fault)
				if row.late {
					sim.awaitPending(1)
					sim.wantEffects(0)
					sim.open()
				}
				row.check(t, <-seen)
				sim.awaitPending(0)
				sim.wantEffects(row.effects)
				row.checkJournal(t, sim)
				sim.create(t.Context(), "e-1", fields{"name": "Ada"}, crmsim.NoFault)
				sim.wantEffects(afterRetry(class, row))
			})
		}
	})
}

func (row faultOnCreate) check(t *testing.T, seen answer) {
	t.Helper()
	if seen.status != row.status || !strings.HasPrefix(seen.body, row.body) || row.body == "" && seen.body != "" {
		t.Fatalf("client saw %d %q (%v), want %d %q", seen.status, seen.body, seen.err, row.status, row.body)
	}
	if row.fault == crmsim.ResetConnection && !errors.Is(seen.err, syscall.ECONNRESET) {
		t.Fatalf("client saw %v, want a reset", seen.err)
	}
	if row.status == 0 && row.fault != crmsim.ResetConnection && !errors.Is(seen.err, io.EOF) {
		t.Fatalf("client saw %v, want the end of the connection", seen.err)
	}
	if row.status != 0 && seen.err != nil {
		t.Fatal(seen.err)
	}
}

func (row faultOnCreate) checkJournal(t *testing.T, sim *crm) {
	t.Helper()
	requests := sim.Requests()
	if len(requests) != 1 {
		t.Fatalf("journal has %d requests, want 1: %+v", len(requests), requests)
	}
	outcome := crmsim.OutcomeAnswered
	if row.status == 0 {
		outcome = crmsim.OutcomeCut
	}
	if row.fault == crmsim.ResetConnection {
		outcome = crmsim.OutcomeReset
	}
	got := requests[0]
	want := crmsim.Request{
		Number: 1, At: got.At, Op: crmsim.Create, ExternalID: "e-1", Key: "e-1",
		Fault: row.fault, Outcome: outcome, Status: row.status,
	}
	if got != want {
		t.Fatalf("journal has %+v, want %+v", got, want)
	}
}

// afterRetry is how many leads one more create leaves: that the class dedups is its promise, that it
// does not is why a client must not retry.
func afterRetry(class crmsim.Class, row faultOnCreate) int {
	if class == crmsim.Lookup || class == crmsim.None || row.fault == crmsim.KeyIgnored {
		return row.effects + 1
	}
	return 1
}

func TestEveryFaultIsTested(t *testing.T) {
	var tested []crmsim.Fault
	for _, row := range slices.Concat(faultsOnCreate, faultsOfClass[crmsim.IdempotencyKey]) {
		tested = append(tested, row.fault)
	}
	for _, row := range faultsOnFind {
		tested = append(tested, row.fault)
	}
	for _, fault := range crmsim.Faults() {
		if !slices.Contains(tested, fault) {
			t.Errorf("fault %s has no row in a table", fault)
		}
	}
}
