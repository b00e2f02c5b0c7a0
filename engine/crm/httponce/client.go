package httponce

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"golang.org/x/net/idna"

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
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: call.hear})
	request, err := r.withContext(ctx)
	if err != nil {
		return Answer{}, &crm.Error{Outcome: crm.NotSent, Reason: "no valid HTTP request"}
	}
	conn, err := c.connect(ctx, call, request.URL)
	if err != nil {
		return Answer{}, call.failure(err)
	}
	defer conn.Close()
	call.begin()
	// The connection, and no http.Transport or http.Client: they send again, follow
	// redirects and keep cookies.
	response, err := conn.RoundTrip(request)
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
	if request.URL.Hostname() == "" {
		return nil, errNoHost
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

// connect makes the connection of one request, and nothing of the request leaves
// meanwhile: it is not known there. Over TLS the server chooses HTTP/2 or HTTP/1.1.
func (c *Client) connect(ctx context.Context, call *call, target *url.URL) (*http.ClientConn, error) {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	transport := &http.Transport{
		Protocols:              &protocols,
		DisableKeepAlives:      true,
		DisableCompression:     true, // MaxBody is of what arrives
		MaxResponseHeaderBytes: maxHeader,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.dial(ctx, call, network, address)
		},
	}
	if c.TLS != nil {
		transport.TLSClientConfig = c.TLS.Clone()
		transport.TLSClientConfig.NextProtos = nil
	}
	host := target.Hostname()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	return transport.NewClientConn(ctx, target.Scheme, net.JoinHostPort(host, target.Port()))
}

func (c *Client) dial(ctx context.Context, call *call, network, address string) (net.Conn, error) {
	left := call.left()
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Control: dropUnacknowledged(left)}).DialContext
	}
	raw, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	guarded := &conn{Conn: raw, call: call}
	if err := raw.SetWriteDeadline(time.Now().Add(left)); err != nil {
		_ = guarded.Close()
		return nil, err
	}
	return guarded, nil
}
