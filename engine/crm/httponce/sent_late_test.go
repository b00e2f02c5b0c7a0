package httponce_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wall is a clock that a paused process finds elsewhere when it wakes up.
type wall struct{ offset atomic.Int64 }

func (w *wall) Now() time.Time        { return time.Now().Add(time.Duration(w.offset.Load())) }
func (w *wall) pause(d time.Duration) { w.offset.Add(int64(d)) }

// hooked is a connection that calls back before it passes bytes on.
type hooked struct {
	net.Conn
	beforeWrite func(n int)
	writes      int
}

func (h *hooked) Write(p []byte) (int, error) {
	h.writes++
	if h.beforeWrite != nil {
		h.beforeWrite(h.writes)
	}
	return h.Conn.Write(p)
}

func parsed(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// post is a create with patience for everything that is not under test.
func post(t testing.TB, address string, deadline time.Time) httponce.Request {
	return httponce.Request{
		Method: http.MethodPost, URL: parsed(t, address), Deadline: deadline,
		Header: http.Header{"Idempotency-Key": {"e-1"}}, Body: []byte(`{"external_id":"e-1"}`),
	}
}

func wantOutcome(t testing.TB, err error, want crm.Outcome, reason string) {
	t.Helper()
	var e *crm.Error
	if !errors.As(err, &e) || e.Outcome != want || reason != "" && e.Reason != reason {
		t.Fatalf("%v, want %s: %s", err, want, reason)
	}
}

// counted is a server, and how many requests it got whole.
func counted(t testing.TB, secure bool) (*httptest.Server, *atomic.Int64) {
	var whole atomic.Int64
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			whole.Add(1)
		}
	})
	web := httptest.NewUnstartedServer(handler)
	web.Config.ErrorLog = silent
	if secure {
		web.StartTLS()
	} else {
		web.Start()
	}
	t.Cleanup(web.Close)
	return web, &whole
}

const late = "the deadline passed before the request could leave"

// TestPausedBeforeTheWrite: a process that is stopped between the dial and the
// write, and wakes up behind its deadline, sends nothing.
func TestPausedBeforeTheWrite(t *testing.T) {
	for _, secure := range []bool{false, true} {
		web, whole := counted(t, secure)
		clock := &wall{}
		client := &httponce.Client{Now: clock.Now, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if !secure {
				clock.pause(time.Hour)
			}
			// Above TLS, the pause comes with the last write of the handshake.
			return &hooked{Conn: conn, beforeWrite: func(n int) {
				if n == 2 {
					clock.pause(time.Hour)
				}
			}}, err
		}}
		if secure {
			client.TLS = web.Client().Transport.(*http.Transport).TLSClientConfig
		}
		_, err := client.Send(t.Context(), post(t, web.URL, clock.Now().Add(time.Minute)))
		wantOutcome(t, err, crm.NotSent, late)
		if n := whole.Load(); n != 0 {
			t.Errorf("%d requests arrived late (TLS: %t)", n, secure)
		}
	}
}

// TestPausedInTheMiddle: what has left may have arrived, but it stays a fragment.
func TestPausedInTheMiddle(t *testing.T) {
	web, whole := counted(t, false)
	clock := &wall{}
	client := &httponce.Client{Now: clock.Now, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &hooked{Conn: conn, beforeWrite: func(n int) {
			if n == 1 {
				clock.pause(time.Hour)
			}
		}}, err
	}}
	r := post(t, web.URL, clock.Now().Add(time.Minute))
	r.Body = bytes.Repeat([]byte("x"), 1<<20)
	_, err := client.Send(t.Context(), r)
	wantOutcome(t, err, crm.Unknown, late)
	web.Close()
	if n := whole.Load(); n != 0 {
		t.Errorf("%d whole requests arrived", n)
	}
}

func TestDeadlineIsOver(t *testing.T) {
	client := &httponce.Client{Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialed behind the deadline")
		return nil, net.ErrClosed
	}}
	for _, deadline := range []time.Time{{}, time.Now().Add(-time.Nanosecond)} {
		_, err := client.Send(t.Context(), post(t, "http://crm.example", deadline))
		wantOutcome(t, err, crm.NotSent, "the deadline was over")
	}
}

// TestGivenUpIsReset: after a time-out nothing that waits in the kernel may go
// out any more, so the connection is reset instead of being closed in order.
func TestGivenUpIsReset(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ended := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err = io.Copy(io.Discard, conn)
		ended <- err
	}()
	client := &httponce.Client{}
	_, err = client.Send(t.Context(), post(t, "http://"+listener.Addr().String(), time.Now().Add(50*time.Millisecond)))
	wantOutcome(t, err, crm.Unknown, "time-out")
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server saw %v, want a reset", err)
	}
}

// TestNotSentNeverLies: whenever the call is cancelled, NotSent means that not a
// byte comes, also not a moment later.
func TestNotSentNeverLies(t *testing.T) {
	outcomes := map[crm.Outcome]int{}
	for i := range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		var arrived atomic.Int64
		var reading sync.WaitGroup
		client := &httponce.Client{Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			reading.Go(func() {
				n, _ := io.Copy(io.Discard, theirs)
				arrived.Add(n)
			})
			reading.Go(func() {
				for range i * 20 { // a moment that differs from call to call
					_ = ctx.Err()
				}
				cancel()
			})
			return ours, nil
		}}
		_, err := client.Send(ctx, post(t, "http://crm.example", time.Now().Add(10*time.Second)))
		cancel()
		reading.Wait()
		outcome := crm.Classify(err).Outcome
		outcomes[outcome]++
		if outcome == crm.NotSent && arrived.Load() > 0 {
			t.Fatalf("call %d: %v, but %d bytes came", i, err, arrived.Load())
		}
	}
	t.Log(outcomes)
}
