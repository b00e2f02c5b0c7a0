package botapitest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "424242:token"

// target is a webhook that answers as it is told, and notes what came and when.
type target struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	times  []time.Time
	answer func(n int, body string, w http.ResponseWriter) // n deliveries came before
}

func newTarget(t *testing.T, answer func(int, string, http.ResponseWriter)) *target {
	t.Helper()
	g := &target{answer: answer}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		g.mu.Lock()
		defer g.mu.Unlock()
		n := len(g.bodies)
		g.bodies, g.times = append(g.bodies, string(body)), append(g.times, time.Now())
		if r.Header.Get("X-Telegram-Bot-Api-Secret-Token") != "good" {
			w.WriteHeader(401)
			return
		}
		g.answer(n, string(body), w)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *target) came() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.bodies)
}

func start(t *testing.T, o botapitest.Options, url string) (*botapitest.Server, *botapi.Client) {
	t.Helper()
	api, err := botapitest.New(token, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	client, err := botapi.New(botapi.Config{Token: token, BaseURL: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if url != "" {
		must(t, client.SetWebhook(t.Context(), botapi.Webhook{URL: url, SecretToken: "good", AllowedUpdates: botapi.AllowedUpdates()}))
	}
	return api, client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// An update that is refused holds back its chat and no other, and comes again at
// growing intervals.
func TestRefusedUpdatesHoldBackTheirChat(t *testing.T) {
	const fails = 5
	var refusals int
	g := newTarget(t, func(_ int, body string, w http.ResponseWriter) {
		if strings.Contains(body, "stubborn") && refusals < fails {
			refusals++
			w.WriteHeader(503)
		}
	})
	api, client := start(t, botapitest.Options{Second: 4 * time.Millisecond}, g.URL)
	api.Push("message", 1, `"stubborn"`)
	api.Push("message", 1, `"behind"`)
	api.Push("message", 2, `"other"`)
	await(t, "all are taken", func() bool { return len(api.Pending()) == 0 })
	var first []time.Time // of the stubborn one
	order := map[string]int{}
	for i, body := range g.came() {
		for _, name := range []string{"stubborn", "behind", "other"} {
			if strings.Contains(body, name) {
				order[name] = i // the last one
			}
		}
		if strings.Contains(body, "stubborn") {
			first = append(first, g.times[i])
		}
	}
	if order["behind"] < order["stubborn"] || order["other"] > order["stubborn"] {
		t.Errorf("the last deliveries are %v", order)
	}
	for i, seconds := range []time.Duration{0, 2, 4, 8, 16} {
		if waited := first[i+1].Sub(first[i]); waited < seconds*4*time.Millisecond {
			t.Errorf("delivery %d came after %s, want %d of its seconds", i+2, waited, seconds)
		}
	}
	info, err := client.GetWebhookInfo(t.Context())
	if must(t, err); info.LastErrorMessage != "Wrong response from the webhook: 503 Service Unavailable" {
		t.Errorf("the last error is %q", info.LastErrorMessage)
	}
}

// A callback query is dropped after its 150 seconds; Retry-After is obeyed.
func TestUpdatesExpire(t *testing.T) {
	g := newTarget(t, func(_ int, _ string, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "40")
		w.WriteHeader(503)
	})
	api, _ := start(t, botapitest.Options{}, g.URL)
	api.Push("callback_query", 1, `{"id":"1"}`)
	await(t, "it is dropped", func() bool { return len(api.Pending()) == 0 })
	if n := len(g.came()); n < 2 || n > 5 {
		t.Errorf("it came %d times in 150 s, at intervals of 40 s", n)
	}
}

func TestAnswersCallMethods(t *testing.T) {
	g := newTarget(t, func(_ int, _ string, w http.ResponseWriter) {
		fmt.Fprint(w, `{"method":"answerCallbackQuery","callback_query_id":"88"}`)
	})
	api, _ := start(t, botapitest.Options{}, g.URL)
	api.Push("callback_query", 1, `{"id":"88"}`)
	await(t, "the button is answered", func() bool { return slices.Equal(api.AnsweredButtons(), []string{"88"}) })
}

// What waits is kept over setting and deleting, and lost only when told.
func TestPendingUpdates(t *testing.T) {
	api, client := start(t, botapitest.Options{}, "")
	if api.Push("message_reaction", 1, `{}`) != 0 {
		t.Error("a kind that was not asked for is queued")
	}
	id := api.Push("message", 1, `{}`)
	hook := botapi.Webhook{URL: "http://203.0.113.7/", SecretToken: "good", AllowedUpdates: botapi.AllowedUpdates()}
	must(t, client.SetWebhook(t.Context(), hook))
	await(t, "an error of delivery", func() bool {
		info, err := client.GetWebhookInfo(t.Context())
		return err == nil && info.LastErrorMessage != ""
	})
	must(t, client.DeleteWebhook(t.Context(), false))
	if got := api.Pending(); !slices.Equal(got, []int64{id}) {
		t.Errorf("waiting are %v", got)
	}
	if api.Push("message_reaction", 1, `{}`) == 0 {
		t.Error("a kind that was asked for is not queued")
	}
	hook.DropPendingUpdates = true
	must(t, client.SetWebhook(t.Context(), hook))
	if got := api.Pending(); len(got) > 0 {
		t.Errorf("waiting are %v", got)
	}
}

// getUpdates forgets what is below its offset, and takes one far ahead for none.
func TestOffsets(t *testing.T) {
	api, client := start(t, botapitest.Options{FirstID: 500}, "")
	for range 4 {
		api.Push("message", 1, `{}`)
	}
	for _, c := range []struct {
		offset int64
		left   int
	}{{0, 4}, {501, 3}, {100, 3}, {9000, 3}, {504, 0}} {
		got, err := client.GetUpdates(t.Context(), c.offset, 100, 0)
		if must(t, err); len(got) > c.left || len(api.Pending()) != c.left {
			t.Errorf("offset %d brings %d updates and leaves %v, want %d", c.offset, len(got), api.Pending(), c.left)
		}
	}
	if _, err := client.GetUpdates(t.Context(), -1, 1, 0); err == nil {
		t.Error("a negative offset was sent")
	}
}
