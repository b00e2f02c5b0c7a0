package httponce_test

import (
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// trick is what a server of HTTP/2 does to a request. Behind it the connection ends
// when cut says so, and else when the client ends it.
type trick struct {
	name string
	do   func(*peer) error
	cut  bool
	want []crm.Outcome // empty: an answer
}

// unproven are the outcomes for what may be known as not sent.
var unproven = []crm.Outcome{crm.NotSent, crm.Unknown}

var unknown = []crm.Outcome{crm.Unknown}

// steps do one thing after the other.
func steps(all ...func(*peer) error) func(*peer) error {
	return func(p *peer) error {
		for _, step := range all {
			if err := step(p); err != nil {
				return err
			}
		}
		return nil
	}
}

func sends(kind, flags byte, stream uint32, payload ...byte) func(*peer) error {
	return func(p *peer) error { p.send(kind, flags, stream, payload...); return nil }
}

var (
	preface  = (*peer).preface
	settings = sends(frameSettings, 0, 0)
	headers  = func(p *peer) error { return p.await(false) } // the request's begin
	whole    = func(p *peer) error { return p.await(true) }  // and its end
	ok       = sends(frameHeaders, flagEndHeaders, 1, 0x88)  // :status 200
	hello    = steps(preface, settings)
)

func goesAway(last, code byte) func(*peer) error {
	return sends(frameGoAway, 0, 0, 0, 0, 0, last, 0, 0, 0, code)
}

func resets(code byte) func(*peer) error { return sends(frameReset, 0, 1, 0, 0, 0, code) }

var tricks = []trick{
	{"answers", steps(hello, whole, ok, sends(frameData, flagEndStream, 1, 'x')), false, nil},
	{"goes away at once", steps(hello, goesAway(0, noError)), false, unproven},
	{"fails at once", steps(hello, goesAway(0, protocolError)), false, unproven},
	{"allows no stream", steps(preface, sends(frameSettings, 0, 0, 0, 3, 0, 0, 0, 0)), false, unproven},
	{"refuses the stream", steps(hello, headers, resets(refusedStream)), false, unknown},
	{"takes the stream for a mistake", steps(hello, headers, resets(protocolError)), false, unknown},
	{"goes away without the stream", steps(hello, headers, goesAway(0, noError)), false, unknown},
	{"goes away with the stream", steps(hello, headers, goesAway(1, noError)), true, unknown},
	{"refuses the whole", steps(hello, whole, resets(refusedStream)), false, unknown},
	{"takes the whole for a mistake", steps(hello, whole, resets(protocolError)), false, unknown},
	{"goes away without the whole", steps(hello, whole, goesAway(0, noError)), false, unknown},
	{"fails within", steps(hello, whole, resets(internalError)), false, unknown},
	{"does not answer", steps(hello, whole), false, unknown},
	{"is cut at once", func(*peer) error { return nil }, true, unproven},
	{"is cut behind the preface", preface, true, unproven},
	{"is cut behind its settings", hello, true, unproven},
	{"is cut in the request", steps(hello, headers), true, unknown},
	{"is cut behind the request", steps(hello, whole), true, unknown},
	{"is cut behind the answer's header", steps(hello, whole, ok), true, unknown},
	{"is cut in the answer", steps(hello, whole, ok, sends(frameData, 0, 1, 'x')), true, unknown},
	{"resets in the answer", steps(hello, whole, ok, sends(frameData, 0, 1, 'x'), resets(refusedStream)), false, unknown},
	{"goes away in the answer", steps(hello, whole, ok, goesAway(0, noError)), true, unknown},
}

// TestHTTP2SendsOnce: whatever a server of HTTP/2 does, it gets one connection and on
// it at most one request. net/http sends again what RFC 9113, 8.7 says was not
// processed, when the request has no body or one that can be read again.
func TestHTTP2SendsOnce(t *testing.T) {
	for _, body := range []string{"", `{"external_id":"e-1"}`} {
		for _, trick := range tricks {
			t.Run(trick.name+"/body="+body, func(t *testing.T) {
				t.Parallel()
				trick.try(t, body)
			})
		}
	}
}

func (trick trick) try(t *testing.T, body string) {
	identity, trusted := certificate(t)
	var connections atomic.Int64
	ended := make(chan int, 1) // requests of the first connection that ends
	address := listener(t, func(conn net.Conn) {
		connections.Add(1)
		peer, err := second.answerTo(conn, identity)
		if err == nil {
			err = trick.do(peer)
		}
		for err == nil && !trick.cut {
			_, err = peer.frame()
		}
		select {
		case ended <- peer.requests:
		default:
		}
	})
	r := post(t, "https://"+address, time.Now().Add(2*time.Second))
	if r.Body = []byte(body); body == "" {
		r.Body = nil
	}
	answer, err := (&httponce.Client{TLS: trusted}).Send(t.Context(), r)
	requests := <-ended
	if n := connections.Load(); n != 1 || requests > 1 {
		t.Errorf("%d connections, and %d requests on one", n, requests)
	}
	if len(trick.want) == 0 {
		if err != nil || answer.Status != http.StatusOK || string(answer.Body) != "x" {
			t.Fatalf("%+v, %v", answer, err)
		}
		return
	}
	outcome := crm.Classify(err).Outcome
	if err == nil || !slices.Contains(trick.want, outcome) || requests > 0 && outcome != crm.Unknown {
		t.Errorf("%+v, %v after %d requests, want one of %v", answer, err, requests, trick.want)
	}
	t.Log(err)
}
