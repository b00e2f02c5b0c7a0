package httponce_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

func soon() time.Time { return time.Now().Add(10 * time.Second) }

func TestNotSent(t *testing.T) {
	untrusted, _, _ := second.counted(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for url, reason := range map[string]string{
		"http://" + listener.Addr().String():             "connection refused",
		untrusted.URL:                                    "certificate not trusted",
		strings.Replace(plain.URL, "http:", "https:", 1): "TLS failed",
		"http://leadonce.invalid":                        "host name not resolved",
	} {
		_, err := (&httponce.Client{}).Send(t.Context(), post(t, url, soon()))
		wantOutcome(t, err, crm.NotSent, reason)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = (&httponce.Client{}).Send(ctx, post(t, plain.URL, soon()))
	wantOutcome(t, err, crm.NotSent, "cancelled")
}

// TestTheServerChoosesTheProtocol, and in each the request is whole and alone.
func TestTheServerChoosesTheProtocol(t *testing.T) {
	overEach(t, func(t *testing.T, p protocol) {
		web, client := p.web(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Key", r.Header.Get("Idempotency-Key"))
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
		})
		r := post(t, web.URL, soon())
		answer, err := client.Send(t.Context(), r)
		if err != nil || answer.Status != http.StatusCreated || answer.Header.Get("X-Key") != "e-1" || string(answer.Body) != string(r.Body) {
			t.Fatalf("%+v, %v", answer, err)
		}
	})
}

// TestSecretsStayInside: the password goes to the server and nowhere else.
func TestSecretsStayInside(t *testing.T) {
	const password = "hunter2"
	seen := make(chan string, 2)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, got, _ := r.BasicAuth()
		seen <- got
		panic(http.ErrAbortHandler) // which net/http does not log
	}))
	defer web.Close()
	address := strings.Replace(web.URL, "http://", "http://ann:"+password+"@", 1)
	_, err := (&httponce.Client{}).Send(t.Context(), post(t, address, soon()))
	wantOutcome(t, err, crm.Unknown, "connection closed")
	if got := <-seen; got != password {
		t.Errorf("the server got the password %q", got)
	}
	for _, url := range []string{address, "http://ann:" + password + "@leadonce.invalid", "ftp://ann:" + password + "@crm.example"} {
		_, err := (&httponce.Client{}).Send(t.Context(), post(t, url, soon()))
		if err == nil || strings.Contains(fmt.Sprintf("%+v", err), password) || strings.Contains(err.Error(), "ann") {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	overEach(t, func(t *testing.T, p protocol) {
		size := httponce.MaxBody
		web, client := p.web(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
		answer, err := client.Send(t.Context(), post(t, web.URL, soon()))
		if err != nil || len(answer.Body) != size {
			t.Fatalf("%d bytes, %v", len(answer.Body), err)
		}
		size++
		_, err = client.Send(t.Context(), post(t, web.URL, soon()))
		wantOutcome(t, err, crm.Unknown, "HTTP 200 with more than 1048576 bytes")
	})
}

func TestHeaderLimit(t *testing.T) {
	overEach(t, func(t *testing.T, p protocol) {
		web, client := p.web(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 65<<10))
		})
		_, err := client.Send(t.Context(), post(t, web.URL, soon()))
		wantOutcome(t, err, crm.Unknown, "")
	})
}

// TestSlowBody: the deadline bounds the answer's body too.
func TestSlowBody(t *testing.T) {
	overEach(t, func(t *testing.T, p protocol) {
		done := make(chan struct{})
		web, client := p.web(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_ = http.NewResponseController(w).Flush()
			<-done
		})
		defer close(done)
		_, err := client.Send(t.Context(), post(t, web.URL, time.Now().Add(500*time.Millisecond)))
		wantOutcome(t, err, crm.Unknown, "HTTP 201, and the answer broke off: time-out")
	})
}

// TestRedirectIsAnAnswer: nothing follows it.
func TestRedirectIsAnAnswer(t *testing.T) {
	overEach(t, func(t *testing.T, p protocol) {
		var requests atomic.Int64
		web, client := p.web(t, func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		})
		answer, err := client.Send(t.Context(), post(t, web.URL, soon()))
		if err != nil || answer.Status != http.StatusTemporaryRedirect || requests.Load() != 1 {
			t.Errorf("%d requests, HTTP %d, %v", requests.Load(), answer.Status, err)
		}
	})
}

// TestHostNameInItsOwnLetters is dialed by the name that DNS has.
func TestHostNameInItsOwnLetters(t *testing.T) {
	var dialed string
	client := &httponce.Client{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		dialed = address
		return nil, net.ErrClosed
	}}
	for url, want := range map[string]string{
		"https://crm.bücher.example": "crm.xn--bcher-kva.example:443", "http://my_crm:8069": "my_crm:8069", "http://[::1]": "[::1]:80",
	} {
		_, err := client.Send(t.Context(), post(t, url, soon()))
		wantOutcome(t, err, crm.NotSent, "")
		if dialed != want {
			t.Errorf("%s: dialed %s, want %s", url, dialed, want)
		}
	}
	dialed = ""
	if _, err := client.Send(t.Context(), post(t, "http://", soon())); dialed != "" || err == nil {
		t.Errorf("without a host: dialed %q, %v", dialed, err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after, ms string
		want      time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{"0", "", 0},
		{"0", "250", 250 * time.Millisecond},
		{"-1", "", 0},
		{"1.5", "", 0},
		{"soon", "", 0},
		{"31536000", "", 365 * 24 * time.Hour},
		{"9223372036854775807", "", math.MaxInt64},
		{"99999999999999999999999", "", math.MaxInt64},
		{"-99999999999999999999999", "", 0},
		{"7", "never", 7 * time.Second},
		{"Sun, 01 Mar 2026 12:00:09 GMT", "", 9 * time.Second},
		{"Sun, 01 Mar 2026 11:00:00 GMT", "", 0},
		{"Mon, 01 Mar 2027 12:00:00 GMT", "", 365 * 24 * time.Hour},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.after)
		h.Set("Retry-After-Ms", c.ms)
		if got := httponce.RetryAfter(h, now); got != c.want {
			t.Errorf("Retry-After %q, -Ms %q: %s, want %s", c.after, c.ms, got, c.want)
		}
	}
}
