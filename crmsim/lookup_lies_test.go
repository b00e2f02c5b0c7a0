package crmsim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
)

const (
	hit  = `{"leads":[{"id":"L-000001","external_id":"e-1"}]}`
	miss = `{"leads":[]}`
)

var faultsOnFind = []struct {
	fault  crmsim.Fault
	status int // 0: no answer
	body   string
}{
	{crmsim.NoFault, 200, hit},
	{crmsim.ResetConnection, 0, ""},
	{crmsim.CutBefore, 0, ""},
	{crmsim.RateLimited, 429, limited},
	{crmsim.RateLimitedDate, 429, limited},
	{crmsim.RateLimitedAbsent, 429, limited},
	{crmsim.RateLimitedPast, 429, limited},
	{crmsim.RateLimitedFar, 429, limited},
	{crmsim.ErrorBefore, 500, internal},
	{crmsim.NotExecuted, 503, `{"error":{"code":"not_executed"}}`},
	{crmsim.UnavailableBefore, 503, ""},
	{crmsim.OKWithErrorBefore, 200, internal},
	{crmsim.OKHTMLBefore, 200, html},
	{crmsim.LoginRedirect, 302, ""},
	{crmsim.LookupLags, 200, miss},
}

func TestLookupOfAnExistingLeadIsNotAlwaysAHit(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		if !class.CanFind() {
			t.Skip("cannot look up")
		}
		sim := newCRM(t, crmsim.Config{Class: class})
		sim.create(t.Context(), "e-1", nil, crmsim.NoFault)
		for _, row := range faultsOnFind {
			seen := sim.find("e-1", row.fault)
			if seen.status != row.status || !strings.HasPrefix(seen.body, row.body) || row.body == "" && seen.body != "" {
				t.Errorf("%s: client saw %d %q (%v), want %d %q",
					row.fault, seen.status, seen.body, seen.err, row.status, row.body)
			}
		}
		sim.wantEffects(1)
	})
}

func TestLaggingLookupFindsTheLeadOnceItIsOldEnough(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup, IndexLag: 3 * time.Second})
	sim.create(t.Context(), "e-1", nil, crmsim.NoFault)
	sim.advance(3*time.Second - time.Nanosecond)
	if seen := sim.find("e-1", crmsim.LookupLags); seen.body != miss {
		t.Fatalf("a lead younger than the lag: client saw %s", seen.body)
	}
	sim.advance(time.Nanosecond)
	if seen := sim.find("e-1", crmsim.LookupLags); seen.body != hit {
		t.Fatalf("a lead as old as the lag: client saw %s", seen.body)
	}
}

func TestHangingLookupSeesWhatHappenedMeanwhile(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	seen := make(chan answer, 1)
	go func() { seen <- sim.find("e-1", crmsim.HangThenApply) }()
	err := sim.Wait(t.Context(), func(s crmsim.Stats) bool { return s.Requests == 1 })
	if err != nil {
		t.Fatal(err)
	}
	sim.create(t.Context(), "e-1", nil, crmsim.NoFault)
	sim.open()
	if a := <-seen; a.body != hit {
		t.Fatalf("client saw %d %s (%v), want the lead", a.status, a.body, a.err)
	}
}

func TestLookupOfADoubledLeadShowsBoth(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	sim.create(t.Context(), "e-1", nil, crmsim.Duplicated)
	want := `{"leads":[{"id":"L-000001","external_id":"e-1"},{"id":"L-000002","external_id":"e-1"}]}`
	if seen := sim.find("e-1", crmsim.NoFault); seen.body != want {
		t.Fatalf("client saw %s, want %s", seen.body, want)
	}
}

func TestClassNoneCannotLookUp(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.None})
	sim.find("e-1", "").want(t, 405, "not_supported")
}
