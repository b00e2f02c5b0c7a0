package properties

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/properties/sim"
)

// wire is a proxy before the sandbox. What a request meets is decided by the call
// of the connector that is under way; outside of one nothing passes.
type wire struct {
	subject  crmtest.Subject
	target   *url.URL
	listener net.Listener
	server   *http.Server
	client   *http.Client
	served   sync.WaitGroup

	calls, beset int // of the connector; those that met a fault

	mu      sync.Mutex
	current *permit
}

// permit is the permission of one call, and what the wire saw of it.
type permit struct {
	lookup bool
	fault  fault         // of the first request of the call's own kind
	over   chan struct{} // closed when the call is
	seen   chan struct{} // closed by the first request
	busy   sync.WaitGroup

	mu       sync.Mutex
	met      bool
	requests int
	creates  int
	held     []letter
}

// letter is a request that has left the connector.
type letter struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
}

func openWire(subject crmtest.Subject) (*wire, error) {
	target, err := url.Parse(subject.Sandbox.URL())
	if err != nil {
		return nil, fmt.Errorf("the sandbox's URL cannot be parsed")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{
		subject: subject, target: target, listener: listener,
		client: &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: subject.Patience, ErrorLog: log.New(io.Discard, "", 0)}
	w.served.Go(func() { _ = w.server.Serve(listener) })
	return w, nil
}

func (w *wire) url() string { return "http://" + w.listener.Addr().String() }

func (w *wire) close() {
	_ = w.server.Close()
	w.served.Wait()
}

func (w *wire) count(call sim.Call) {
	w.calls++
	if call.Fault != sim.None {
		w.beset++
	}
}

// during lets the call use the wire, and returns when all that it sent has come to
// its end.
func (w *wire) during(t *permit, call func()) {
	t.over, t.seen = make(chan struct{}), make(chan struct{})
	w.mu.Lock()
	w.current = t
	w.mu.Unlock()
	call()
	w.mu.Lock()
	w.current = nil
	w.mu.Unlock()
	close(t.over)
	t.busy.Wait()
}

func (w *wire) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	t := w.current
	if t != nil {
		t.busy.Add(1)
	}
	w.mu.Unlock()
	if t == nil {
		hangUp(out)
		return
	}
	defer t.busy.Done()
	f := t.meets(w.subject.IsCreate(in))
	body, err := io.ReadAll(in.Body)
	if err != nil {
		hangUp(out)
		return
	}
	w.suffer(t, f, out, letter{in.Method, in.URL, in.Header.Clone(), body})
}

// meets counts a request, and says which fault it meets.
func (t *permit) meets(create bool) fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests++; t.requests == 1 {
		close(t.seen)
	}
	if create {
		t.creates++
	}
	if t.met || create == t.lookup {
		return fault{effect: once, answer: truth}
	}
	t.met = true
	return t.fault
}

// forward asks the sandbox, and returns its answer, read to the end.
func (w *wire) forward(l letter) (status int, header http.Header, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), w.subject.Patience)
	defer cancel()
	target := *w.target
	target.Path, target.RawPath = w.target.JoinPath(l.url.Path).Path, ""
	target.RawQuery, target.User = l.url.RawQuery, nil
	request, err := http.NewRequestWithContext(ctx, l.method, target.String(), bytes.NewReader(l.body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header, request.GetBody = l.header.Clone(), nil
	response, err := w.client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, response.Header, body, err
}

// suffer lets the request have the effect, and the connector the answer, that the
// fault wants.
func (w *wire) suffer(t *permit, f fault, out http.ResponseWriter, l letter) {
	var status int
	var header http.Header
	var body []byte
	err := error(nil)
	for range f.effect.arrivals() {
		if status, header, body, err = w.forward(l); err != nil {
			hangUp(out) // the sandbox did not answer
			return
		}
	}
	if f.effect == later || f.effect == onceAndLater {
		t.mu.Lock()
		t.held = append(t.held, l)
		t.mu.Unlock()
	}
	switch f.answer {
	case truth:
		pass(out, status, header, body)
	case forged:
		for name, value := range f.header {
			out.Header().Set(name, value)
		}
		out.WriteHeader(f.status)
		_, _ = io.WriteString(out, f.body)
	case silence:
		select {
		case <-t.over:
		case <-time.After(w.subject.Short + 2*w.subject.Patience): // whoever waits so long does not look at the time
		}
		hangUp(out)
	default:
		hangUp(out)
	}
}

func pass(out http.ResponseWriter, status int, header http.Header, body []byte) {
	for name, values := range header {
		out.Header()[name] = values
	}
	out.Header().Del("Connection") // of the CRM's hop
	out.Header().Del("Content-Length")
	out.WriteHeader(status)
	_, _ = out.Write(body)
}

// hangUp closes the connection without an answer.
func hangUp(out http.ResponseWriter) {
	conn, _, err := http.NewResponseController(out).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close()
}
