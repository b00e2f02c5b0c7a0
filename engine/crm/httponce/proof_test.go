package httponce_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

var silent = log.New(io.Discard, "", 0)

func soon() time.Time { return time.Now().Add(10 * time.Second) }

func TestNotSent(t *testing.T) {
	secure, _ := counted(t, true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for url, reason := range map[string]string{
		"http://" + listener.Addr().String(): "connection refused",
		secure.URL:                           "certificate not trusted",
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

func TestOverTLS(t *testing.T) {
	web, whole := counted(t, true)
	client := &httponce.Client{TLS: web.Client().Transport.(*http.Transport).TLSClientConfig}
	answer, err := client.Send(t.Context(), post(t, web.URL, soon()))
	if err != nil || answer.Status != http.StatusOK || whole.Load() != 1 {
		t.Fatalf("%+v, %v, %d requests", answer, err, whole.Load())
	}
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
	size := httponce.MaxBody
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, size))
	}))
	defer web.Close()
	answer, err := (&httponce.Client{}).Send(t.Context(), post(t, web.URL, soon()))
	if err != nil || len(answer.Body) != size {
		t.Fatalf("%d bytes, %v", len(answer.Body), err)
	}
	size++
	_, err = (&httponce.Client{}).Send(t.Context(), post(t, web.URL, soon()))
	wantOutcome(t, err, crm.Unknown, "HTTP 200 with more than 1048576 bytes")
}

// TestSlowBody: the deadline bounds the answer's body too.
func TestSlowBody(t *testing.T) {
	done := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_ = http.NewResponseController(w).Flush()
		<-done
	}))
	defer web.Close()
	defer close(done)
	_, err := (&httponce.Client{}).Send(t.Context(), post(t, web.URL, time.Now().Add(time.Second)))
	wantOutcome(t, err, crm.Unknown, "HTTP 201, and the answer broke off: time-out")
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
