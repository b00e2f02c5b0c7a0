package properties

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/properties/sim"
)

// wire is a proxy before the sandbox. What a request meets is decided by the call
// of the connector that is under way; outside of one nothing passes.
type wire struct {
	subject  crmtest.Subject
	sandbox  *crmtest.Upstream
	listener net.Listener
	server   *http.Server
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
	*http.Request
	body []byte
}

func openWire(subject crmtest.Subject) (*wire, error) {
	sandbox, err := crmtest.NewUpstream(subject.Sandbox.URL(), subject.Patience)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{subject: subject, sandbox: sandbox, listener: listener}
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
		crmtest.HangUp(out, false)
		return
	}
	defer t.busy.Done()
	f := t.meets(w.subject.IsCreate(in))
	body, err := io.ReadAll(in.Body)
	if err != nil {
		crmtest.HangUp(out, false)
		return
	}
	w.suffer(t, f, out, letter{in, body})
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

// suffer lets the request have the effect, and the connector the answer, that the
// fault wants.
func (w *wire) suffer(t *permit, f fault, out http.ResponseWriter, l letter) {
	var status int
	var header http.Header
	var body []byte
	err := error(nil)
	for range f.effect.arrivals() {
		if status, header, body, err = w.sandbox.Forward(l.Request, l.body); err != nil {
			crmtest.HangUp(out, false) // the sandbox did not answer
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
		crmtest.Relay(out, status, header, body)
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
		crmtest.HangUp(out, false)
	default:
		crmtest.HangUp(out, false)
	}
}
