package crmsim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
)

// weather is the faults that n creates and lookups in turn meet, without a network between.
func weather(t *testing.T, config crmsim.Config, n int) []crmsim.Fault {
	t.Helper()
	sim := newUnheard(t, config)
	for i := range n {
		sendUnheard(sim, config.Class, i)
	}
	var faults []crmsim.Fault
	for _, request := range sim.Requests() {
		faults = append(faults, request.Fault)
	}
	if err := sim.Close(); err != nil {
		t.Fatal(err)
	}
	return faults
}

// newUnheard is a CRM that waits for nothing.
func newUnheard(t *testing.T, config crmsim.Config) *crmsim.Server {
	t.Helper()
	ticking := newClock()
	ticking.open()
	config.Now, config.After = ticking.Now, ticking.After
	sim, err := crmsim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

func sendUnheard(sim *crmsim.Server, class crmsim.Class, i int) {
	defer func() {
		if cut := recover(); cut != nil && cut != http.ErrAbortHandler {
			panic(cut)
		}
	}()
	method, path := http.MethodPost, "/leads"
	if class == crmsim.Upsert {
		method, path = http.MethodPut, fmt.Sprintf("/leads/e-%d", i)
	}
	if class.CanFind() && i%2 == 1 {
		method, path = http.MethodGet, fmt.Sprintf("/leads?external_id=e-%d", i-1)
	}
	body := strings.NewReader(fmt.Sprintf(`{"external_id":"e-%d","fields":{}}`, i))
	sim.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, body))
}

func TestSameSeedIsTheSameWeather(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		config := crmsim.Config{Class: class, Faults: 0.5, Seed: 1}
		first, again := weather(t, config, 400), weather(t, config, 400)
		if !slices.Equal(first, again) {
			t.Fatal("one seed gave two weathers")
		}
		config.Seed = 2
		if slices.Equal(first, weather(t, config, 400)) {
			t.Fatal("two seeds gave one weather")
		}
	})
}

func TestRestartContinuesTheWeather(t *testing.T) {
	config := crmsim.Config{Class: crmsim.Lookup, Faults: 0.5, Seed: 7}
	whole := weather(t, config, 200)
	config.JournalPath = filepath.Join(t.TempDir(), "journal")
	weather(t, config, 120)
	if resumed := weather(t, config, 80); !slices.Equal(resumed, whole) {
		t.Fatal("a restart changed the faults of the requests after it")
	}
}

func TestFaultsComeAtTheirRate(t *testing.T) {
	const n = 5_000
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		counts := map[crmsim.Fault]int{}
		for _, fault := range weather(t, crmsim.Config{Class: class, Faults: 0.3, Seed: 1}, n) {
			counts[fault]++
		}
		if share := 1 - float64(counts[crmsim.NoFault])/n; share < 0.28 || share > 0.32 {
			t.Errorf("a share of %v met a fault, want 0.3", share)
		}
		spread := slices.Concat(crmsim.Spread(class, crmsim.Create), crmsim.Spread(class, crmsim.Find))
		for _, fault := range crmsim.Faults() {
			if fault != crmsim.NoFault && (counts[fault] > 0) != slices.Contains(spread, fault) {
				t.Errorf("fault %s came %d times; in the spread: %v", fault, counts[fault], slices.Contains(spread, fault))
			}
		}
	})
}

func TestRatesGoOutsideTheSpreadWhenAsked(t *testing.T) {
	rates := map[crmsim.Fault]float64{crmsim.KeyIgnored: 0.5, crmsim.LookupLags: 1}
	counts := map[crmsim.Fault]int{}
	for _, fault := range weather(t, crmsim.Config{Class: crmsim.IdempotencyKey, Rates: rates}, 2000) {
		counts[fault]++
	}
	if lies := counts[crmsim.KeyIgnored]; counts[crmsim.LookupLags] != 1000 || lies < 440 || lies > 560 {
		t.Fatalf("counts are %v, want every lookup to lag and half of 1000 creates to ignore the key", counts)
	}
}

func TestScriptIsServedInOrderBeforeProbability(t *testing.T) {
	sim := newCRM(t, crmsim.Config{
		Class:  crmsim.Lookup,
		Rates:  map[crmsim.Fault]float64{crmsim.NotExecuted: 1},
		Script: crmsim.Script{Creates: []crmsim.Fault{crmsim.NoFault}},
	})
	ctx := t.Context()
	sim.create(ctx, "e-1", nil, "").want(t, 201, "")
	sim.create(ctx, "e-1", nil, "").want(t, 503, "not_executed")
	sim.do(ctx, "POST", "/control/script", `{"creates":["error_after","none"],"finds":["lookup_lags"]}`, nil).want(t, 204, "")
	sim.create(ctx, "e-2", nil, crmsim.BadRequestAfter).want(t, 400, "bad_request")
	sim.create(ctx, "e-3", nil, "").want(t, 500, "internal")
	if a := sim.find("e-1", ""); a.body != miss {
		t.Fatalf("client saw %s", a.body)
	}
	sim.create(ctx, "e-4", nil, "").want(t, 201, "")
	sim.create(ctx, "e-5", nil, "").want(t, 503, "not_executed")
	sim.find("e-1", "").want(t, 503, "not_executed")
	sim.wantEffects(4)
}

func TestScriptThatCannotActIsRefused(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.None, Script: crmsim.Script{Creates: []crmsim.Fault{crmsim.ErrorBefore}}})
	for _, script := range []string{
		`{"creates":["lookup_lags"]}`, `{"finds":["none"]}`, `{"creates":["key_ignored"]}`, `{"creates":["nonsense"]}`,
	} {
		sim.do(t.Context(), "POST", "/control/script", script, nil).want(t, 400, "unknown_fault")
	}
	sim.do(t.Context(), "POST", "/control/script", `{"create":[]}`, nil).want(t, 400, "malformed")
	sim.create(t.Context(), "e-1", nil, "").want(t, 500, "internal")
}

func TestRetryAfterInEveryForm(t *testing.T) {
	for _, row := range []struct {
		fault      crmsim.Fault
		retryAfter time.Duration
		header, ms string
	}{
		{crmsim.RateLimited, 2 * time.Second, "2", ""},
		{crmsim.RateLimited, 300 * time.Millisecond, "0", "300"},
		{crmsim.RateLimitedAbsent, 2 * time.Second, "", ""},
		{crmsim.RateLimitedDate, 2 * time.Second, "Sun, 01 Mar 2026 12:00:02 GMT", ""},
		{crmsim.RateLimitedPast, 2 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT", ""},
		{crmsim.RateLimitedFar, 2 * time.Second, "Mon, 01 Mar 2027 12:00:00 GMT", ""},
	} {
		sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup, RetryAfter: row.retryAfter})
		seen := sim.create(t.Context(), "e-1", nil, row.fault)
		header, ms := seen.header.Get("Retry-After"), seen.header.Get("Retry-After-Ms")
		if header != row.header || ms != row.ms {
			t.Errorf("%s of %v: client saw %q and %q ms, want %q and %q",
				row.fault, row.retryAfter, header, ms, row.header, row.ms)
		}
	}
}

func TestFollowedLoginRedirectIsCounted(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	seen := sim.create(t.Context(), "e-1", nil, crmsim.LoginRedirect)
	if seen.header.Get("Location") != "/login" || sim.Stats().LoginVisits != 0 {
		t.Fatalf("client saw %v; stats %+v", seen.header, sim.Stats())
	}
	if a := sim.do(t.Context(), "GET", "/login", "", nil); a.status != 200 || !strings.HasPrefix(a.body, html) {
		t.Fatalf("client saw %d %s", a.status, a.body)
	}
	if visits := sim.Stats().LoginVisits; visits != 1 {
		t.Fatalf("%d visits to the login page are counted, want 1", visits)
	}
}
