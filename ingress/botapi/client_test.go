package botapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "424242:canary-token_of-the-bot"

func newAPI(t *testing.T, o botapitest.Options) (*botapitest.Server, *botapi.Client) {
	t.Helper()
	api, err := botapitest.New(token, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	return api, newClient(t, botapi.Config{BaseURL: api.URL})
}

func newClient(t *testing.T, c botapi.Config) *botapi.Client {
	t.Helper()
	c.Token = token
	client, err := botapi.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Whatever goes wrong, and whatever the server says: the token is in no error, and
// an error is one line.
func TestNoErrorHasTheToken(t *testing.T) {
	api, client := newAPI(t, botapitest.Options{})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	told := fmt.Sprintf(`{"ok":false,"error_code":400,"description":"Bad Request: /bot%s/getMe\nis %s"}`, token, strings.Repeat(token, 100))
	for name, fault := range map[string]botapitest.Fault{
		"dropped":         {Drop: true},
		"cut":             {Cut: true},
		"redirect":        {Status: 302},
		"a page":          {Status: 502, Body: "<html>" + token},
		"told":            {Status: 400, Body: told},
		"later":           {RetryAfter: 5},
		"hangs":           {Hang: true},
		"no result":       {Status: 200, Body: `{"ok":true}`},
		"another result":  {Status: 200, Body: `{"ok":true,"result":"` + token + `"}`},
		"null":            {Status: 200, Body: `{"ok":true,"result":null}`},
		"too large":       {Status: 200, Body: strings.Repeat(" ", botapi.MaxAnswer+1)},
		"no JSON at all":  {Status: 200},
		"another service": {Status: 404, Body: `{"message":"Not Found"}`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			api.Fail("getMe", fault)
			_, err := client.GetMe(ctx)
			wantClean(t, err)
			if botapi.Unauthorized(err) {
				t.Errorf("%v is taken for a refused token", err)
			}
		})
	}
	_, err = newClient(t, botapi.Config{BaseURL: "http://" + closed.Addr().String()}).GetMe(t.Context())
	wantClean(t, err)
	_, err = newClient(t, botapi.Config{BaseURL: "https://nowhere.invalid"}).GetMe(t.Context())
	wantClean(t, err)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.GetMe(cancelled)
	wantClean(t, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not the end of the context", err)
	}
}

func wantClean(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	var text strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).Error("x", "error", err)
	for _, s := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, err), text.String()} {
		if strings.Contains(s, "canary") || len(s) > 3000 {
			t.Errorf("the error is %q", s)
		}
	}
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
		t.Errorf("the error is %q, want one short line", err)
	}
}

// A redirect is not followed: the place that it names would get the token.
func TestNoRedirectIsFollowed(t *testing.T) {
	visited := make(chan string, 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { visited <- r.URL.Path }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	_, err := newClient(t, botapi.Config{BaseURL: server.URL}).GetMe(t.Context())
	wantClean(t, err)
	select {
	case path := <-visited:
		t.Errorf("the redirect was followed with %s", path)
	default:
	}
}

func TestTooManyRequests(t *testing.T) {
	api, _ := newAPI(t, botapitest.Options{})
	var slept []time.Duration
	client := newClient(t, botapi.Config{BaseURL: api.URL, Patience: 10 * time.Second, Sleep: func(_ context.Context, d time.Duration) error {
		slept = append(slept, d)
		return nil
	}})
	api.Fail("getMe", botapitest.Fault{RetryAfter: 3}, botapitest.Fault{RetryAfter: 7})
	if me, err := client.GetMe(t.Context()); err != nil || me.ID != 424242 {
		t.Fatalf("%+v, %v", me, err)
	}
	if !slices.Equal(slept, []time.Duration{3 * time.Second, 7 * time.Second}) {
		t.Errorf("slept %v", slept)
	}
	api.Fail("getMe", botapitest.Fault{RetryAfter: 3}, botapitest.Fault{RetryAfter: 8})
	_, err := client.GetMe(t.Context())
	var refused *botapi.Error
	if !errors.As(err, &refused) || refused.Code != 429 || refused.RetryAfter != 8*time.Second {
		t.Errorf("beyond its patience: %v", err)
	}
}

func TestConflicts(t *testing.T) {
	api, client := newAPI(t, botapitest.Options{})
	other := newClient(t, botapi.Config{BaseURL: api.URL})
	ended := make(chan error, 1)
	go func() {
		_, err := other.GetUpdates(t.Context(), 0, 1, 50*time.Second)
		for err == nil { // it had nothing to take: a later one is waiting when the client comes
			_, err = other.GetUpdates(t.Context(), 0, 1, 50*time.Second)
		}
		ended <- err
	}()
	for open := true; open; {
		_, err := client.GetUpdates(t.Context(), 0, 1, time.Second)
		if err != nil && botapi.ConflictOf(err) != botapi.OtherConsumer {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			open = false
			if botapi.ConflictOf(err) != botapi.OtherConsumer {
				t.Errorf("the first ended with %v", err)
			}
		default:
		}
	}
	if err := client.SetWebhook(t.Context(), botapi.Webhook{URL: "http://127.0.0.1:1", AllowedUpdates: botapi.AllowedUpdates()}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetUpdates(t.Context(), 0, 1, 0); botapi.ConflictOf(err) != botapi.WebhookSet {
		t.Errorf("with a webhook: %v", err)
	}
	if botapi.ConflictOf(io.EOF) != botapi.NoConflict {
		t.Error("any error is a conflict")
	}
}

// The list has what the Bot API names and nothing else, each once.
func TestAllowedUpdatesAreAllKinds(t *testing.T) {
	kinds := botapi.AllowedUpdates()
	for _, kind := range kinds {
		if !job.KnownKind(kind) {
			t.Errorf("%s is no kind", kind)
		}
	}
	if slices.Sort(kinds); len(slices.Compact(kinds)) != 25 {
		t.Errorf("%d kinds, Bot API 10.1 has 25", len(kinds))
	}
	full := botapi.WebhookInfo{AllowedUpdates: kinds}
	if len(full.Missing()) != 0 || !slices.Equal(botapi.WebhookInfo{}.Missing(), []string{"chat_member", "message_reaction", "message_reaction_count"}) {
		t.Errorf("missing are %v and %v", full.Missing(), botapi.WebhookInfo{}.Missing())
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, bad := range []string{"", "canary", "424242", ":canary", "0:canary", "-1:canary", "424242:can ary", "424242:canary\n", "424242:can/ary", "99999999999999999999:canary"} {
		if _, err := botapi.New(botapi.Config{Token: bad}); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("token %q: %v", bad, err)
		}
	}
	for base, ok := range map[string]bool{
		"": true, "https://api.telegram.org": true, "https://bots.example.com/api/": true, "http://127.0.0.1:8081": true, "http://[::1]:8081": true,
		"http://10.0.0.7:8081": true, "http://localhost:8081": true, "http://telegram-bot-api:8081": true,
		"http://api.telegram.org": false, "http://8.8.8.8": false, "api.telegram.org": false, "ftp://127.0.0.1": false,
		"https://user:canary@bots.example.com": false, "https://bots.example.com?x=canary": false, "https://": false,
	} {
		_, err := botapi.New(botapi.Config{Token: token, BaseURL: base})
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("address %q: %v", base, err)
		}
	}
}
