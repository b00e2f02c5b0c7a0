package crmsim_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leadonce/leadonce/crmsim"
)

func TestOracleShowsEveryLeadOfOneExternalID(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.None})
	if a := sim.do(t.Context(), "GET", "/oracle/effects", "", nil); a.body != "[]" {
		t.Fatalf("an empty CRM shows %s", a.body)
	}
	sim.create(t.Context(), "e-1", fields{"name": "Ada"}, crmsim.CutAfter)
	sim.create(t.Context(), "e-1", nil, crmsim.NoFault)
	want := `[{"external_id":"e-1","crm_id":"L-000001","at":"2026-03-01T12:00:00Z","fields":{"name":"Ada"}},` +
		`{"external_id":"e-1","crm_id":"L-000002","at":"2026-03-01T12:00:00Z","fields":{}}]`
	if a := sim.do(t.Context(), "GET", "/oracle/effects", "", nil); a.body != want {
		t.Fatalf("oracle shows %s, want %s", a.body, want)
	}
}

func TestOracleCountsTheSecondRequest(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	sim.create(t.Context(), "e-1", nil, crmsim.ResetConnection)
	sim.create(t.Context(), "e-2", nil, crmsim.NoFault)
	sim.create(t.Context(), "e-1", nil, crmsim.ErrorAfter)
	sim.find("e-1", crmsim.LookupLags)
	line := func(number int, op, id, rest string) string {
		return fmt.Sprintf(`{"number":%d,"at":"2026-03-01T12:00:00Z","op":%q,"external_id":%q,%s}`, number, op, id, rest)
	}
	first := line(1, "create", "e-1", `"idempotency_key":"e-1","fault":"reset_connection","outcome":"reset","status":0`)
	third := line(3, "create", "e-1", `"idempotency_key":"e-1","fault":"error_after","outcome":"answered","status":500`)
	fourth := line(4, "find", "e-1", `"fault":"lookup_lags","outcome":"answered","status":200`)
	for query, want := range map[string]string{
		"?limit=2": `{"requests":[` + third + "," + fourth + `],"totals":{"e-1":{"creates":2,"finds":1},"e-2":{"creates":1,"finds":0}}}`,
		"?limit=0": `{"requests":[],"totals":{"e-1":{"creates":2,"finds":1},"e-2":{"creates":1,"finds":0}}}`,
		"?external_id=e-1": `{"requests":[` + first + "," + third + "," + fourth +
			`],"totals":{"e-1":{"creates":2,"finds":1}}}`,
		"?external_id=e-9": `{"requests":[],"totals":{}}`,
	} {
		if a := sim.do(t.Context(), "GET", "/oracle/requests"+query, "", nil); a.body != want {
			t.Errorf("%s shows %s, want %s", query, a.body, want)
		}
	}
	sim.do(t.Context(), "GET", "/oracle/requests?limit=few", "", nil).want(t, 400, "limit")
}

func TestStatsCountFaultsAndLateEffects(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	sim.create(t.Context(), "e-1", nil, crmsim.CutAfter)
	sim.create(t.Context(), "e-2", nil, crmsim.AcceptedLater)
	if err := sim.Remove("L-000001"); err != nil {
		t.Fatal(err)
	}
	want := `{"requests":2,"answered":1,"created":1,"updated":0,"removed":1,"leads":0,` +
		`"faults":{"accepted_later":1,"cut_after":1},"pending":1,"login_visits":0}`
	if a := sim.do(t.Context(), "GET", "/oracle/stats", "", nil); a.body != want {
		t.Fatalf("oracle shows %s, want %s", a.body, want)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	waited := make(chan error, 1)
	go func() {
		waited <- sim.Wait(ctx, func(crmsim.Stats) bool { close(asked); return false })
	}()
	<-asked
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Fatalf("Wait returned %v", err)
	}
}
