package httponce_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
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

const late = "the deadline passed before the request could leave"

// dialing hooks the client's connections.
func dialing(beforeWrite func(write, bytes int) error) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &hooked{Conn: conn, beforeWrite: beforeWrite}, err
	}
}

// TestPausedBeforeTheWrite: a process that is stopped between the dial and the
// write, and wakes up behind its deadline, sends nothing.
func TestPausedBeforeTheWrite(t *testing.T) {
	for _, c := range []struct {
		protocol
		after int // this write of what comes before the request
	}{
		{plain, 0},
		{secure, 2}, // the last of the handshake
		{second, 2},
		{second, 3}, // the preface of HTTP/2
	} {
		web, client, whole := c.counted(t)
		clock := &wall{}
		client.Now = clock.Now
		dial := dialing(func(n, _ int) error {
			if n == c.after {
				clock.pause(time.Hour)
			}
			return nil
		})
		client.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if c.after == 0 {
				clock.pause(time.Hour)
			}
			return dial(ctx, network, address)
		}
		_, err := client.Send(t.Context(), post(t, web.URL, clock.Now().Add(time.Minute)))
		wantOutcome(t, err, crm.NotSent, late)
		if n := whole.Load(); n != 0 {
			t.Errorf("%s after write %d: %d requests arrived late", c.name, c.after, n)
		}
	}
}

// TestPausedInTheMiddle: what has left may have arrived, but it stays a fragment.
func TestPausedInTheMiddle(t *testing.T) {
	overEach(t, func(t *testing.T, p protocol) {
		web, client, whole := p.counted(t)
		clock := &wall{}
		client.Now = clock.Now
		client.Dial = dialing(func(_, bytes int) error {
			if bytes > 100<<10 {
				clock.pause(time.Hour)
			}
			return nil
		})
		r := post(t, web.URL, clock.Now().Add(time.Minute))
		r.Body = bytes.Repeat([]byte("x"), 900<<10)
		_, err := client.Send(t.Context(), r)
		wantOutcome(t, err, crm.Unknown, late)
		web.Close()
		if n := whole.Load(); n != 0 {
			t.Errorf("%d whole requests arrived", n)
		}
	})
}

// TestNoByteAfterTheDeadline: a request that waits for its answer is not even given up
// in the protocol's own words.
func TestNoByteAfterTheDeadline(t *testing.T) {
	overEach(t, func(t *testing.T, p protocol) {
		clock := &wall{}
		var passed atomic.Int64 // when the deadline did, by this machine's clock
		over := make(chan struct{})
		web, client := p.web(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			clock.pause(time.Hour)
			passed.Store(time.Now().UnixNano())
			<-over
		})
		defer close(over)
		client.Now = clock.Now
		client.Dial = dialing(func(n, _ int) error {
			// A write that was let through just before is not what is looked for.
			if at := passed.Load(); at > 0 && time.Since(time.Unix(0, at)) > 50*time.Millisecond {
				t.Errorf("write %d is behind the deadline", n)
			}
			return nil
		})
		_, err := client.Send(t.Context(), post(t, web.URL, clock.Now().Add(500*time.Millisecond)))
		wantOutcome(t, err, crm.Unknown, "")
	})
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
	identity, trusted := certificate(t)
	overEach(t, func(t *testing.T, p protocol) {
		ended := make(chan error, 1)
		address := listener(t, func(conn net.Conn) {
			peer, err := p.answerTo(conn, identity)
			if err == nil {
				err = peer.drain()
			}
			ended <- err
		})
		_, err := (&httponce.Client{TLS: trusted}).Send(t.Context(), post(t, p.url(address), time.Now().Add(300*time.Millisecond)))
		wantOutcome(t, err, crm.Unknown, "time-out")
		if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server saw %v, want a reset", err)
		}
	})
}

// TestNotSentNeverLies: whenever the call is cancelled, NotSent means that nothing of
// the request comes, also not a moment later.
func TestNotSentNeverLies(t *testing.T) {
	identity, trusted := certificate(t)
	overEach(t, func(t *testing.T, p protocol) {
		outcomes := map[crm.Outcome]int{}
		for i := range 150 {
			ctx, cancel := context.WithCancel(t.Context())
			var arrived atomic.Int64
			var reading sync.WaitGroup
			client := &httponce.Client{TLS: trusted, Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				reading.Go(func() {
					defer theirs.Close()
					if peer, err := p.answerTo(theirs, identity); err == nil {
						_ = peer.drain()
						arrived.Add(int64(peer.requests))
					}
				})
				reading.Go(func() {
					for range i * 40 * p.slowness { // a moment that differs from call to call
						_ = ctx.Err()
					}
					cancel()
				})
				if i%3 == 0 {
					cancel()
				}
				return ours, nil
			}}
			_, err := client.Send(ctx, post(t, p.url("crm.example"), time.Now().Add(10*time.Second)))
			cancel()
			reading.Wait()
			outcome := crm.Classify(err).Outcome
			outcomes[outcome]++
			if outcome == crm.NotSent && arrived.Load() > 0 {
				t.Fatalf("call %d: %v, but %d requests came", i, err, arrived.Load())
			}
		}
		t.Log(outcomes)
	})
}

// TestCutAtEachWrite: whichever write fails, NotSent means that no request came.
func TestCutAtEachWrite(t *testing.T) {
	identity, trusted := certificate(t)
	overEach(t, func(t *testing.T, p protocol) {
		var outcomes []crm.Outcome
		for cut := 1; cut <= 6; cut++ {
			arrived := make(chan int, 1)
			address := listener(t, func(conn net.Conn) {
				peer, err := p.answerTo(conn, identity)
				if err == nil {
					_ = peer.drain()
				}
				arrived <- peer.requests
			})
			client := &httponce.Client{TLS: trusted, Dial: dialing(func(n, _ int) error {
				if n >= cut {
					return net.ErrClosed
				}
				return nil
			})}
			r := post(t, p.url(address), time.Now().Add(300*time.Millisecond))
			r.Body = bytes.Repeat([]byte("x"), 60<<10)
			_, err := client.Send(t.Context(), r)
			outcome := crm.Classify(err).Outcome
			outcomes = append(outcomes, outcome)
			if n := <-arrived; n > 1 || n > 0 && outcome != crm.Unknown {
				t.Errorf("cut at write %d: %v, and %d requests came", cut, err, n)
			}
		}
		if p.secure && outcomes[0] != crm.NotSent || outcomes[5] != crm.Unknown {
			t.Errorf("the outcomes are %v", outcomes)
		}
		t.Log(outcomes)
	})
}

func (p protocol) url(address string) string {
	if p.secure {
		return "https://" + address
	}
	return "http://" + address
}
