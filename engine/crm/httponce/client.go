package httponce

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

const (
	// MaxBody is the size in bytes up to which an answer's body is read. A
	// larger one counts as no answer.
	MaxBody = 1 << 20

	maxHeader = 64 << 10 // bytes of an answer's header
)

// Client sends requests. The zero Client is ready for use.
type Client struct {
	// Dial opens a connection. Nil: TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is cloned for every request. Nil: the system's roots.
	TLS *tls.Config
	// Now is the clock that deadlines are told by. Nil: time.Now.
	Now func() time.Time
}

// Request is one request. The user and password in the URL, if any, are sent
// as basic authentication.
type Request struct {
	Method   string
	URL      *url.URL
	Header   http.Header
	Body     []byte    // nil for none
	Deadline time.Time // no byte leaves after it, and no answer is awaited
}

// Answer is what came back, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send sends the request. Its error is a *crm.Error: NotSent, or Unknown when
// part of the request may have left and no whole answer came.
func (c *Client) Send(ctx context.Context, r Request) (Answer, error) {
	call := &call{deadline: r.Deadline, now: c.now}
	defer call.seal()
	left := call.left()
	if left <= 0 {
		return Answer{}, &crm.Error{Outcome: crm.NotSent, Reason: "the deadline was over"}
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	request, err := r.withContext(ctx)
	if err != nil {
		return Answer{}, &crm.Error{Outcome: crm.NotSent, Reason: "no valid HTTP request"}
	}
	transport := c.transport(call)
	defer transport.CloseIdleConnections()
	// RoundTrip instead of a http.Client: it has no redirects and no cookies.
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Answer{}, call.failure(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBody+1))
	if err != nil {
		return Answer{}, unknown("HTTP %d, and the answer broke off: %s", response.StatusCode, describe(err))
	}
	if len(body) > MaxBody {
		return Answer{}, unknown("HTTP %d with more than %d bytes", response.StatusCode, MaxBody)
	}
	return Answer{response.StatusCode, response.Header, body}, nil
}

func unknown(format string, args ...any) *crm.Error {
	return &crm.Error{Outcome: crm.Unknown, Reason: fmt.Sprintf(format, args...)}
}

func (c *Client) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (r Request) withContext(ctx context.Context) (*http.Request, error) {
	target := *r.URL
	user := target.User
	target.User = nil
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, target.String(), body)
	if err != nil {
		return nil, err
	}
	request.GetBody = nil // nothing may send the body again
	if r.Header != nil {
		request.Header = r.Header.Clone()
	}
	if user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	return request, nil
}

// transport serves one request. A connection of another request cannot be
// reused, because there is none.
func (c *Client) transport(call *call) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              &protocols,
		DisableKeepAlives:      true,
		DisableCompression:     true, // MaxBody is of what arrives
		MaxResponseHeaderBytes: maxHeader,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.dial(ctx, call, network, address, true)
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.dialTLS(ctx, call, network, address)
		},
	}
}

func (c *Client) dial(ctx context.Context, call *call, network, address string, carries bool) (net.Conn, error) {
	left := call.left()
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Control: dropUnacknowledged(left)}).DialContext
	}
	raw, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	guarded := &conn{Conn: raw, call: call, carries: carries}
	if err := raw.SetWriteDeadline(time.Now().Add(left)); err != nil {
		_ = guarded.Close()
		return nil, err
	}
	return guarded, nil
}

// dialTLS guards both sides of the encryption: below it every byte, above it
// those that are the request's.
func (c *Client) dialTLS(ctx context.Context, call *call, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	raw, err := c.dial(ctx, call, network, address, false)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{}
	if c.TLS != nil {
		config = c.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	config.NextProtos = []string{"http/1.1"}
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return &conn{Conn: secured, call: call, carries: true}, nil
}
