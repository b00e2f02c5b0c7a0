package ingress_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/ingress"
)

func get(t *testing.T, h http.Handler, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

func TestHealth(t *testing.T) {
	h := ingress.Router(ingress.Config{Checks: []ingress.Check{{Name: "log", Probe: func(context.Context) error { return errors.New("down") }}}})
	if status, body := get(t, h, "GET", "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("status %d, %q: the process is alive whatever is down", status, body)
	}
}

func TestReadiness(t *testing.T) {
	var failing error
	h := ingress.Router(ingress.Config{Checks: []ingress.Check{
		{Name: "log", Probe: func(context.Context) error { return nil }},
		{Name: "projections", Probe: func(ctx context.Context) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("a probe has no deadline")
			}
			return failing
		}},
	}})
	type check struct {
		Name, Detail string
		OK           bool
	}
	for _, c := range []struct {
		failing error
		status  int
		last    check
	}{
		{nil, 200, check{"projections", "ok", true}},
		{errors.New("jobs is 3 minutes behind"), 503, check{"projections", "jobs is 3 minutes behind", false}},
	} {
		failing = c.failing
		status, body := get(t, h, "GET", "/readyz")
		var got struct {
			Ready  bool
			Checks []check
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if status != c.status || got.Ready != (c.status == 200) || len(got.Checks) != 2 ||
			got.Checks[0] != (check{"log", "ok", true}) || got.Checks[1] != c.last {
			t.Errorf("status %d, %s; want %d with %+v", status, body, c.status, c.last)
		}
	}
}

func TestCheckThatPanicsIsNotReady(t *testing.T) {
	h := ingress.Router(ingress.Config{Checks: []ingress.Check{{Name: "log", Probe: func(context.Context) error { panic("secret") }}}})
	if status, body := get(t, h, "GET", "/readyz"); status != 503 || strings.Contains(body, "secret") {
		t.Errorf("status %d, %q", status, body)
	}
	if status, _ := get(t, ingress.Router(ingress.Config{}), "GET", "/readyz"); status != 200 {
		t.Errorf("status %d without checks, want 200", status)
	}
}

func TestServesOnlyWhatIsConfigured(t *testing.T) {
	part := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.PathValue("bot")) })
	none, all := ingress.Router(ingress.Config{}), ingress.Router(ingress.Config{Telegram: part, Metrics: part})
	for _, c := range []struct {
		method, path string
		none, all    int
	}{
		{"POST", "/telegram/42", 404, 200},
		{"GET", "/metrics", 404, 200},
		{"POST", "/metrics", 404, 405},
		{"POST", "/healthz", 405, 405},
		{"GET", "/healthz/", 404, 404},
		{"GET", "/metrics/", 404, 404},
		{"GET", "/", 404, 404},
	} {
		if got, _ := get(t, none, c.method, c.path); got != c.none {
			t.Errorf("%s %s without parts: %d, want %d", c.method, c.path, got, c.none)
		}
		if got, _ := get(t, all, c.method, c.path); got != c.all {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.all)
		}
	}
	if _, body := get(t, all, "POST", "/telegram/42"); body != "42" {
		t.Errorf("the bot is %q, want 42", body)
	}
}

// People put tokens into paths.
func TestUnknownPathsAreNotLogged(t *testing.T) {
	var lines strings.Builder
	h := ingress.Router(ingress.Config{Logger: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if status, body := get(t, h, "POST", "/bot42:token/secret?token=secret"); status != 404 || strings.Contains(body, "token") {
		t.Errorf("status %d, %q", status, body)
	}
	if got := lines.String(); !strings.Contains(got, "no such path") || strings.Contains(got, "token") || strings.Contains(got, "secret") {
		t.Errorf("logged %q", got)
	}
}

func TestAbortedHandlerIsNotAnswered(t *testing.T) {
	h := ingress.Router(ingress.Config{Telegram: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })})
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("net/http does not learn of it")
		}
	}()
	get(t, h, "POST", "/telegram/42")
}
