package httponce

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

var (
	errLate   = errors.New("the deadline has passed")
	errSealed = errors.New("the call has ended")
	errNoHost = errors.New("the URL has no host")
)

// call is what is known of one request while it is on its way.
type call struct {
	deadline time.Time
	now      func() time.Time

	mu     sync.Mutex
	sealed bool // Send has judged: nothing may leave any more
	begun  bool // the connection is made: what is written may be the request's
	wrote  bool // a byte of the request may have left
	heard  bool // a byte of an answer has come
}

// left is how long the deadline is away by the wall clock or the monotonic one,
// whichever is nearer: the first does not stand still while a machine sleeps,
// the second is not set back by hand.
func (c *call) left() time.Duration {
	now := c.now()
	return min(c.deadline.Sub(now), c.deadline.Round(0).Sub(now.Round(0)))
}

// begin is called between making the connection and handing the request to it. What
// is written from then on counts as the request's, although over TLS and HTTP/2 some of
// it is not.
func (c *call) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
}

// permit is asked before every write.
func (c *call) permit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed {
		return errSealed
	}
	if c.left() <= 0 {
		return errLate
	}
	c.wrote = c.wrote || c.begun
	return nil
}

// seal ends all writing and reports whether a byte of the request may have
// left. Without it, a write that is about to happen in another goroutine would
// make a liar of NotSent.
func (c *call) seal() (wrote bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	return c.wrote
}

func (c *call) hear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = true
}

func (c *call) wasHeard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// failure is what the error of a call without an answer proves.
func (c *call) failure(err error) *crm.Error {
	outcome := crm.NotSent
	if c.seal() {
		outcome = crm.Unknown
	}
	return &crm.Error{Outcome: outcome, Reason: describe(err)}
}

// describe puts an error in words that hold no secret: the error's own text
// can have the URL or what the peer sent.
func describe(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var network net.Error
	switch {
	case errors.Is(err, errLate):
		return "the deadline passed before the request could leave"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "time-out"
	case errors.As(err, &dns):
		return "host name not resolved"
	case errors.As(err, &certificate):
		return "certificate not trusted"
	case errors.As(err, &record), errors.As(err, &alert):
		return "TLS failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	case errors.As(err, &network) && network.Timeout():
		return "time-out"
	default:
		return "no HTTP answer"
	}
}

// conn asks the call before it writes. It is below TLS, so it sees every byte.
type conn struct {
	net.Conn
	call *call
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.call.permit(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close drops what the kernel has not sent yet, unless the peer has answered.
func (c *conn) Close() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok && !c.call.wasHeard() {
		_ = tcp.SetLinger(0)
	}
	return c.Conn.Close()
}
