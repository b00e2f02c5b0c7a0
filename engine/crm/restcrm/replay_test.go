package restcrm_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// trap is a CRM on a bare socket. It answers the first request of a connection
// and keeps it alive; the second one it applies, and closes the connection. That
// is what an idle time-out at the CRM looks like to a client.
type trap struct {
	listener net.Listener
	conns    sync.WaitGroup
	posts    atomic.Int64 // POST requests that came whole
	kept     atomic.Int64 // those that came on a used connection
	keepable atomic.Int64 // those that let the connection live on
}

const made = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"id\":\"L-000001\"}"

func newTrap(t *testing.T) *trap {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &trap{listener: listener}
	tr.conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tr.conns.Go(func() { tr.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); tr.conns.Wait() })
	return tr
}

func (tr *trap) url() string { return "http://" + tr.listener.Addr().String() }

func (tr *trap) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for n := 0; ; n++ {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		tr.posts.Add(1)
		if !request.Close {
			tr.keepable.Add(1)
		}
		if n > 0 {
			tr.kept.Add(1)
			return
		}
		if _, err := io.WriteString(conn, made); err != nil || request.Close {
			return
		}
	}
}

// TestT73_DefaultClientReplays: the trap is real. net/http's own client sends a
// create twice for one call, because it bears an Idempotency-Key.
func TestT73_DefaultClientReplays(t *testing.T) {
	tr := newTrap(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	const calls = 2
	for range calls {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tr.url()+"/leads", strings.NewReader(`{"external_id":"e-1"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", "e-1")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	if posts := tr.posts.Load(); posts != calls+1 || tr.kept.Load() != 1 {
		t.Fatalf("%d requests for %d calls, %d on a used connection: the trap is not there", posts, calls, tr.kept.Load())
	}
}

// TestT73_ConnectorSendsOnce: ours sends one request a call, on a connection of
// its own, in every class.
func TestT73_ConnectorSendsOnce(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		tr := newTrap(t)
		connector, err := shipped(t, "crmsim", restcrm.Config{BaseURL: tr.url(), Class: class})
		if err != nil {
			t.Fatal(err)
		}
		const calls = 5
		for range calls {
			op := crm.Operation{ID: "e-1", Deadline: time.Now().Add(10 * time.Second)}
			if r, err := connector.Create(t.Context(), op); err != nil || r.CRMID != "L-000001" {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		if posts := tr.posts.Load(); posts != calls || tr.kept.Load() != 0 || tr.keepable.Load() != 0 {
			t.Fatalf("%d requests for %d calls, %d on a used connection, %d would keep theirs", posts, calls, tr.kept.Load(), tr.keepable.Load())
		}
	})
}

// TestT73_ClosedAsTheCreateGoesOut: through the engine, with a front of the CRM
// that lets every create have its effect and then closes the connection, as
// often as the case allows. At most one request a claim, one lead.
func TestT73_ClosedAsTheCreateGoesOut(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		var whole atomic.Int64
		w := newWorld(t, setup{class: class, serve: func(t testing.TB, handler http.Handler) string {
			target, err := url.Parse(overTCP(t, handler))
			if err != nil {
				t.Fatal(err)
			}
			front := httputil.NewSingleHostReverseProxy(target)
			back := &http.Transport{DisableKeepAlives: true}
			front.Transport = back
			front.ModifyResponse = func(r *http.Response) error {
				if r.Request.Method != http.MethodGet && whole.Add(1) <= 2 {
					return context.Canceled // lose the answer
				}
				return nil
			}
			front.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
			return overTCP(t, front)
		}})
		key, _ := w.deliver(1)
		w.run()
		w.wantOne(class, key)
		claims := 0
		for _, e := range w.events(key) {
			if e == "JobClaimed" {
				claims++
			}
		}
		if n := w.creates(key); n != claims {
			t.Fatalf("%d requests for %d claims", n, claims)
		}
	})
}
