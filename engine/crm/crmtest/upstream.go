package crmtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Upstream is the CRM as a proxy sees it: whatever the proxy does to a request, this
// is how it reaches the CRM. It is safe for concurrent use.
type Upstream struct {
	target   *url.URL
	patience time.Duration
	client   *http.Client
}

// NewUpstream is the CRM at the URL, whose answers are waited for up to patience.
func NewUpstream(rawURL string, patience time.Duration) (*Upstream, error) {
	target, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("the sandbox's URL cannot be parsed") // it may hold a password
	}
	return &Upstream{target, patience, &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Forward sends the request on, with its own body, and returns the CRM's answer, read
// to the end. It does not end with the request's context: a connector that is gone has
// sent all the same.
func (u *Upstream) Forward(in *http.Request, body []byte) (status int, header http.Header, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(in.Context()), u.patience)
	defer cancel()
	target := *u.target.JoinPath(in.URL.EscapedPath())
	target.RawQuery, target.User = in.URL.RawQuery, nil
	request, err := http.NewRequestWithContext(ctx, in.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header, request.GetBody = in.Header.Clone(), nil
	response, err := u.client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, response.Header, answer, err
}

// Relay answers as the CRM did.
func Relay(out http.ResponseWriter, status int, header http.Header, body []byte) {
	for name, values := range header {
		out.Header()[name] = values
	}
	out.Header().Del("Connection") // of the CRM's hop: the proxy keeps its own alive
	out.Header().Del("Content-Length")
	out.WriteHeader(status)
	_, _ = out.Write(body)
}

// HangUp closes the connection without an answer, by a reset or in order.
func HangUp(out http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(out).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
