package httponce_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// protocol is one that a server may choose.
type protocol struct {
	name     string
	secure   bool
	major    int
	slowness int // about how much longer than the plain one a call takes
}

var (
	plain     = protocol{"HTTP1", false, 1, 1}
	secure    = protocol{"HTTP1 over TLS", true, 1, 40}
	second    = protocol{"HTTP2", true, 2, 60}
	protocols = []protocol{plain, secure, second}
)

func overEach(t *testing.T, test func(*testing.T, protocol)) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

var silent = log.New(io.Discard, "", 0)

// web is a server that speaks the protocol, and a client that trusts it.
func (p protocol) web(t testing.TB, handler http.HandlerFunc) (*httptest.Server, *httponce.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != p.major {
			t.Errorf("a request over %s", r.Proto)
		}
		handler(w, r)
	}))
	server.Config.ErrorLog = silent
	server.EnableHTTP2 = p.major == 2
	client := &httponce.Client{}
	if p.secure {
		server.StartTLS()
		client.TLS = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server, client
}

// counted is a server, and how many requests it got whole.
func (p protocol) counted(t testing.TB) (*httptest.Server, *httponce.Client, *atomic.Int64) {
	var whole atomic.Int64
	server, client := p.web(t, func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			whole.Add(1)
		}
	})
	return server, client, &whole
}

// certificate is the one of httptest's servers, and what trusts it.
func certificate(t testing.TB) (tls.Certificate, *tls.Config) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return server.TLS.Certificates[0], &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

// peer is the other end of a connection, which does what a test says and counts what
// comes of requests.
type peer struct {
	net.Conn
	protocol protocol
	requests int // that began: a byte of HTTP/1.1, or a frame HEADERS
}

// answerTo takes the connection, with the handshake of TLS.
func (p protocol) answerTo(conn net.Conn, c tls.Certificate) (*peer, error) {
	if !p.secure {
		return &peer{Conn: conn, protocol: p}, nil
	}
	config := &tls.Config{Certificates: []tls.Certificate{c}}
	if p.major == 2 {
		config.NextProtos = []string{"h2"}
	}
	secured := tls.Server(conn, config)
	return &peer{Conn: secured, protocol: p}, secured.Handshake()
}

// drain reads on until the connection ends.
func (p *peer) drain() error {
	if p.protocol.major == 1 {
		n, err := io.Copy(io.Discard, p)
		p.requests += int(min(n, 1))
		return err
	}
	if err := p.preface(); err != nil {
		return err
	}
	for {
		if _, err := p.frame(); err != nil {
			return err
		}
	}
}

// Frames of HTTP/2, RFC 9113, 6.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7

	flagEndStream, flagEndHeaders = 1, 4

	noError, protocolError, internalError, refusedStream = 0, 1, 2, 7
)

type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

var prefaceText = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

func (p *peer) preface() error {
	got := make([]byte, len(prefaceText))
	if _, err := io.ReadFull(p, got); err != nil {
		return err
	}
	if !bytes.Equal(got, prefaceText) {
		return errors.New("no preface of HTTP/2")
	}
	return nil
}

func (p *peer) frame() (frame, error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(p, head); err != nil {
		return frame{}, err
	}
	f := frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
	f.payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if f.kind == frameHeaders {
		p.requests++
	}
	_, err := io.ReadFull(p, f.payload)
	return f, err
}

// send writes a frame; a client that is gone does not matter.
func (p *peer) send(kind, flags byte, stream uint32, payload ...byte) {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	_, _ = p.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// await reads until a frame HEADERS, or until the request's last one.
func (p *peer) await(last bool) error {
	for {
		f, err := p.frame()
		if err != nil || f.kind == frameHeaders && !last || f.flags&flagEndStream != 0 && f.kind <= frameHeaders {
			return err
		}
	}
}

// hooked is a connection that calls back before it passes bytes on.
type hooked struct {
	net.Conn
	beforeWrite func(write, bytes int) error // both with those to come
	write       int
	bytes       int
}

func (h *hooked) Write(p []byte) (int, error) {
	h.write++
	h.bytes += len(p)
	if err := h.beforeWrite(h.write, h.bytes); err != nil {
		return 0, err
	}
	return h.Conn.Write(p)
}

// wall is a clock that a paused process finds elsewhere when it wakes up.
type wall struct{ offset atomic.Int64 }

func (w *wall) Now() time.Time        { return time.Now().Add(time.Duration(w.offset.Load())) }
func (w *wall) pause(d time.Duration) { w.offset.Add(int64(d)) }

// listener accepts connections, each served by its own goroutine, until the test ends.
func listener(t testing.TB, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}
