package crmsim_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/crmsim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is the CRM's time: it moves when told, and whoever waits on it waits for open.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	gate chan time.Time
	open func()
}

func newClock() *clock {
	c := &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), gate: make(chan time.Time)}
	c.open = sync.OnceFunc(func() { close(c.gate) })
	return c
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) After(time.Duration) <-chan time.Time { return c.gate }

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// crm is a CRM behind a real socket, with a client that neither redirects nor repeats.
type crm struct {
	*crmsim.Server
	*clock
	t     *testing.T
	class crmsim.Class
	url   string
}

func newCRM(t *testing.T, config crmsim.Config) *crm {
	t.Helper()
	ticking := newClock()
	config.Now, config.After = ticking.Now, ticking.After
	server, err := crmsim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return &crm{Server: server, clock: ticking, t: t, class: config.Class, url: web.URL}
}

// answer is what the client saw; status 0 means nothing.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) code() string {
	var body struct {
		Error struct{ Code string }
	}
	_ = json.Unmarshal([]byte(a.body), &body)
	return body.Error.Code
}

var oneShot = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (c *crm) do(ctx context.Context, method, path, body string, header map[string]string) answer {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := oneShot.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, strings.TrimSpace(string(text)), err}
}

type fields = map[string]string

// create sends what a client of the class sends, with the external id as the key.
func (c *crm) create(ctx context.Context, externalID string, given fields, fault crmsim.Fault) answer {
	header := map[string]string{"X-Crmsim-Fault": string(fault), "Idempotency-Key": externalID}
	body, err := json.Marshal(map[string]any{"external_id": externalID, "fields": given})
	if err != nil {
		return answer{err: err}
	}
	if c.class == crmsim.Upsert {
		return c.do(ctx, http.MethodPut, "/leads/"+url.PathEscape(externalID), string(body), header)
	}
	return c.do(ctx, http.MethodPost, "/leads", string(body), header)
}

func (c *crm) find(externalID string, fault crmsim.Fault) answer {
	return c.do(c.t.Context(), http.MethodGet, "/leads?external_id="+url.QueryEscape(externalID), "",
		map[string]string{"X-Crmsim-Fault": string(fault)})
}

func (c *crm) startCreate(ctx context.Context, externalID string, fault crmsim.Fault) <-chan answer {
	seen := make(chan answer, 1)
	go func() { seen <- c.create(ctx, externalID, fields{"name": "Ada"}, fault) }()
	return seen
}

func (c *crm) awaitPending(n int) {
	c.t.Helper()
	if err := c.Wait(c.t.Context(), func(s crmsim.Stats) bool { return s.Pending == n }); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crm) wantEffects(n int) {
	c.t.Helper()
	if effects := c.Effects(); len(effects) != n {
		c.t.Fatalf("%d leads exist, want %d: %+v", len(effects), n, effects)
	}
}

func (a answer) want(t *testing.T, status int, code string) {
	t.Helper()
	if a.err != nil || a.status != status || a.code() != code {
		t.Fatalf("client saw %d %q (%v) %s, want %d %q", a.status, a.code(), a.err, a.body, status, code)
	}
}

func forEveryClass(t *testing.T, test func(t *testing.T, class crmsim.Class)) {
	for _, class := range crmsim.Classes() {
		t.Run(string(class), func(t *testing.T) { test(t, class) })
	}
}

func isTimeout(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
