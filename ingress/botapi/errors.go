package botapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// maxDescription is the length in bytes of what is kept of an error's text.
const maxDescription = 300

// Error is a call that did not succeed. It has no part of the token.
type Error struct {
	Method      string
	Status      int           // of HTTP; 0 when there was no answer
	Code        int           // error_code of the answer; 0 when it was none of the Bot API's
	Description string        // one line
	RetryAfter  time.Duration // how long the server asks to wait; 0 when it does not
	NotSent     bool          // no connection was there to send the request on: it did not leave
}

func (e *Error) Error() string {
	switch {
	case e.Code != 0:
		return fmt.Sprintf("%s: %d %s", e.Method, e.Code, e.Description)
	case e.Status != 0:
		return fmt.Sprintf("%s: HTTP %d, %s", e.Method, e.Status, e.Description)
	default:
		return e.Method + ": " + e.Description
	}
}

// Unauthorized reports whether the server does not know the token: it was revoked,
// or is not one.
func Unauthorized(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == http.StatusUnauthorized || e.Code == http.StatusNotFound)
}

// NotDone reports whether err proves that the call had no effect: it did not leave, or
// the Bot API itself refused it. Everything else may have had one: no answer, a
// server's error, an answer of something in between.
func NotDone(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	if e.NotSent {
		return true
	}
	switch e.Code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests:
		return e.Status == e.Code
	default:
		return false
	}
}

// Temporary reports whether a call that NotDone proves without effect may be made
// again: it did not leave, or it came too soon (then after RetryAfter).
func Temporary(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.NotSent || e.Code == http.StatusTooManyRequests)
}

// RetryAfter is how long the server asks to wait; 0 when it does not.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// Conflict is why updates cannot be fetched now.
type Conflict string

// The conflicts.
const (
	NoConflict    Conflict = ""
	WebhookSet    Conflict = "a webhook is set"
	OtherConsumer Conflict = "another program fetches this bot's updates"
)

// ConflictOf is the conflict that err tells of.
func ConflictOf(err error) Conflict {
	var e *Error
	switch {
	case !errors.As(err, &e) || e.Code != http.StatusConflict:
		return NoConflict
	case strings.Contains(strings.ToLower(e.Description), "webhook"):
		return WebhookSet
	default:
		return OtherConsumer
	}
}

var errTooLarge = errors.New("the answer is too large")

const notTheBotAPI = "no answer of the Bot API: the address is another server's, or something in between answers"

// decode reads an answer: its result, or what went wrong.
func decode(method string, status int, body []byte, result any) error {
	var answer struct {
		OK          *bool           `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Code        int             `json:"error_code"`
		Description string          `json:"description"`
		Parameters  struct {
			RetryAfter int64 `json:"retry_after"` // seconds
		} `json:"parameters"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.OK == nil {
		return &Error{Method: method, Status: status, Description: notTheBotAPI}
	}
	if !*answer.OK {
		wait := min(max(answer.Parameters.RetryAfter, 0), int64(maxWait/time.Second))
		code := answer.Code
		if code == 0 {
			code = status
		}
		return &Error{Method: method, Status: status, Code: code, Description: answer.Description, RetryAfter: time.Duration(wait) * time.Second}
	}
	if answer.Result == nil || string(answer.Result) == "null" || json.Unmarshal(answer.Result, result) != nil {
		return &Error{Method: method, Status: status, Description: "the result is not of the kind that the Bot API documents"}
	}
	return nil
}

// maxWait bounds a retry_after.
const maxWait = 24 * time.Hour

// describe puts a failed exchange in words of our own: the error's text has the
// URL, and in it the token.
func describe(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var network net.Error
	switch {
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("the answer has more than %d bytes", MaxAnswer)
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
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the answer broke off"
	case errors.Is(err, io.EOF):
		return "connection closed"
	case errors.As(err, &network) && network.Timeout():
		return "time-out"
	default:
		return "no HTTP answer"
	}
}
