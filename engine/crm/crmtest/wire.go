package crmtest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// wire is a proxy in front of the CRM: it counts the requests, and what they
// meet is the case's choice.
type wire struct {
	subject  Subject
	crm      *Upstream
	listener net.Listener
	server   *http.Server
	stopped  chan struct{} // closed when withheld answers must end
	served   sync.WaitGroup
	created  atomic.Int64
	answered atomic.Int64 // the status of the newest answer of the CRM; 0 once forgotten

	mu       sync.Mutex
	onCreate reaction
	onFind   reaction
}

// reaction answers one request.
type reaction func(w *wire, out http.ResponseWriter, in *http.Request)

func openWire(subject Subject) (*wire, error) {
	crm, err := NewUpstream(subject.Sandbox.URL(), subject.Patience)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{
		subject: subject, crm: crm, listener: listener,
		onCreate: pass, onFind: pass, stopped: make(chan struct{}),
	}
	w.server = &http.Server{
		Handler: w, ReadHeaderTimeout: subject.Patience, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, used{}, new(atomic.Int64))
		},
	}
	w.served.Go(func() { _ = w.server.Serve(listener) })
	return w, nil
}

// used is the key of a connection's count of requests.
type used struct{}

func (w *wire) url() string { return "http://" + w.listener.Addr().String() }

func (w *wire) close() {
	close(w.stopped)
	_ = w.server.Close()
	w.served.Wait()
}

// creates is how many requests came that can make a lead, whole or not.
func (w *wire) creates() int { return int(w.created.Load()) }

// react sets what creates, or finds, meet from now on.
func (w *wire) react(onCreate, onFind reaction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onCreate, w.onFind = onCreate, onFind
}

func (w *wire) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	w.served.Add(1)
	defer w.served.Done()
	w.mu.Lock()
	react := w.onFind
	if w.subject.IsCreate(in) {
		w.created.Add(1)
		react = w.onCreate
	}
	w.mu.Unlock()
	react(w, out, in)
}

// forward asks the CRM and returns its answer, read to the end.
func (w *wire) forward(in *http.Request) (status int, header http.Header, body []byte, err error) {
	sent, err := io.ReadAll(in.Body)
	if err != nil {
		return 0, nil, nil, err
	}
	status, header, body, err = w.crm.Forward(in, sent)
	if err == nil {
		w.answered.Store(int64(status))
	}
	return status, header, body, err
}

// pass lets the CRM answer.
func pass(w *wire, out http.ResponseWriter, in *http.Request) {
	status, header, body, err := w.forward(in)
	if err != nil {
		HangUp(out, false)
		return
	}
	Relay(out, status, header, body)
}

// raw sends bytes that net/http would not, and closes.
func raw(out http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(out).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}
