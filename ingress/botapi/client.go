package botapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Official is the address of Telegram's own servers.
const Official = "https://api.telegram.org"

const (
	// MaxAnswer is the size in bytes above which an answer is refused. Telegram
	// stops filling an answer with updates at 4 MiB.
	MaxAnswer = 8 << 20

	maxHeader   = 64 << 10         // bytes of an answer's header
	callTimeout = 30 * time.Second // of a call that does not wait for updates
)

// Config is what a Client is made of. Token must be set.
type Config struct {
	Token   string
	BaseURL string // of a local Bot API server; default Official

	// Patience bounds the time that one call waits in all when the server asks it
	// to come back later (429). Default: none, the caller is told at once.
	Patience time.Duration

	// Sleep waits. Default: on a timer.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Client calls the Bot API for one bot. It is safe for concurrent use.
type Client struct {
	base     string // without a slash at its end
	token    string
	bot      int64
	patience time.Duration
	sleep    func(context.Context, time.Duration) error
	http     *http.Client
}

var tokenForm = regexp.MustCompile(`^([1-9][0-9]{0,18}):[A-Za-z0-9_-]{1,256}$`)

// New is a Client that has called nothing yet. Its errors are one line that names
// the mend and not the token.
func New(c Config) (*Client, error) {
	form := tokenForm.FindStringSubmatch(c.Token)
	if form == nil {
		return nil, errors.New("the bot's token is not <number>:<letters and digits>: give it as @BotFather did")
	}
	bot, err := strconv.ParseInt(form[1], 10, 64)
	if err != nil {
		return nil, errors.New("the number in front of the token's colon is none of 64 bits: give the token as @BotFather did")
	}
	if c.BaseURL == "" {
		c.BaseURL = Official
	}
	if err := checkBase(c.BaseURL); err != nil {
		return nil, err
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	return &Client{
		base: strings.TrimRight(c.BaseURL, "/"), token: c.Token, bot: bot, patience: c.Patience, sleep: c.Sleep,
		http: &http.Client{
			// The address of a redirect would be asked with the token in its path.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
				TLSHandshakeTimeout:    10 * time.Second,
				IdleConnTimeout:        90 * time.Second,
				MaxResponseHeaderBytes: maxHeader,
				DisableCompression:     true, // MaxAnswer is of what arrives
			},
		},
	}, nil
}

// checkBase refuses an address over which the token would go in clear text, but
// for a server of one's own.
func checkBase(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the Bot API's address is no plain http or https address: give one such as " + Official + " or http://127.0.0.1:8081")
	}
	if u.Scheme == "http" && !nearby(u.Hostname()) {
		return fmt.Errorf("the Bot API's address is http at %s: the token would travel unencrypted, give an https address", u.Hostname())
	}
	return nil
}

// nearby reports whether a host is this machine or of a private network: names
// without a dot are of a container's network.
func nearby(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate()
	}
	return !strings.Contains(host, ".")
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Bot is the number in front of the token's colon.
func (c *Client) Bot() int64 { return c.bot }

// Local reports whether another server than Telegram's own is asked. Such a one
// may deliver to plain http and to any port.
func (c *Client) Local() bool { return c.base != Official }

// Close closes the connections that wait for the next call.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call calls a method whose result is to be decoded into result, and waits for it
// for at most timeout, and for Patience more when it is told to come later.
func (c *Client) call(ctx context.Context, method string, arguments, result any, timeout time.Duration) error {
	body, err := json.Marshal(arguments)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	for left := c.patience; ; {
		err := c.once(ctx, method, body, result, timeout)
		var refused *Error
		if !errors.As(err, &refused) || refused.RetryAfter <= 0 || refused.RetryAfter > left {
			return err
		}
		left -= refused.RetryAfter
		if err := c.sleep(ctx, refused.RetryAfter); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
	}
}

func (c *Client) once(ctx context.Context, method string, body []byte, result any, timeout time.Duration) error {
	calling, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connected := false
	calling = httptrace.WithClientTrace(calling, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	status, answer, err := c.send(calling, method, body)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", method, ctx.Err())
		}
		return &Error{Method: method, Status: status, Description: describe(err), NotSent: !connected}
	}
	err = decode(method, status, answer, result)
	var refused *Error
	if errors.As(err, &refused) {
		refused.Description = c.describe(refused.Description)
	}
	return err
}

// send posts the arguments and reads the answer to its end. Its error may hold the
// token.
func (c *Client) send(ctx context.Context, method string, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/bot"+c.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	if err == nil && len(answer) > MaxAnswer {
		err = errTooLarge
	}
	return response.StatusCode, answer, err
}

// Hide puts asterisks for the token in s.
func (c *Client) Hide(s string) string {
	_, secret, _ := strings.Cut(c.token, ":")
	return strings.ReplaceAll(s, secret, "***")
}

// describe makes one line without the token of what a server says.
func (c *Client) describe(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(c.Hide(s), "?"))
	if len(s) > maxDescription {
		s = strings.ToValidUTF8(s[:maxDescription], "") + "…"
	}
	return s
}
