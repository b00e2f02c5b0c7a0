package crmsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// Defaults of Config, those of the CRM itself.
const (
	DefaultKeyValidity = 24 * time.Hour
	DefaultSettle      = 30 * time.Second
)

// Config says where the CRM is and what it promises.
type Config struct {
	URL   string // of the CRM; http or https, the path a prefix. It may hold a password.
	Class crm.Class

	// KeyValidity is how long the CRM remembers an idempotency key; used for
	// that class only. Default 24 h.
	KeyValidity time.Duration
	// Settle is how long after a request's deadline its effect can become
	// visible: Hang + IndexLag of the CRM, or more. Default 30 s.
	Settle time.Duration

	// Dial opens a connection. Default TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Sender carries the requests, instead of HTTP over Dial. It keeps the
	// promises of httponce.Client.Send.
	Sender Sender
	// Now is the clock that deadlines are told by. Default time.Now.
	Now func() time.Time
}

// Sender sends a request at most once; *httponce.Client is one.
type Sender interface {
	Send(ctx context.Context, r httponce.Request) (httponce.Answer, error)
}

// Connector speaks to one simulated CRM. It is safe for concurrent use.
type Connector struct {
	base        *url.URL
	description crm.Description
	now         func() time.Time
	client      Sender
}

var _ crm.Connector = (*Connector)(nil)

// New is a connector. It sends nothing. Its error names the key to mend.
func New(c Config) (*Connector, error) {
	base, err := parseBase(c.URL)
	if err != nil {
		return nil, err
	}
	if _, err := crm.ParseClass(string(c.Class)); err != nil {
		return nil, fmt.Errorf("crm.class: %w", err)
	}
	if c.KeyValidity < 0 || c.Settle < 0 {
		return nil, fmt.Errorf("crm.key_validity is %s and crm.settle is %s: neither may be negative", c.KeyValidity, c.Settle)
	}
	if c.Settle == 0 {
		c.Settle = DefaultSettle
	}
	if c.KeyValidity == 0 {
		c.KeyValidity = DefaultKeyValidity
	}
	if c.Class != crm.IdempotencyKey {
		c.KeyValidity = 0
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sender == nil {
		c.Sender = &httponce.Client{Dial: c.Dial, Now: c.Now}
	}
	return &Connector{
		base: base,
		description: crm.Description{
			Name: "crmsim", Class: c.Class, KeyValidity: c.KeyValidity,
			CanFind: c.Class != crm.None, Settle: c.Settle,
		},
		now: c.Now, client: c.Sender,
	}, nil
}

// parseBase keeps the URL out of its errors: it may hold a password.
func parseBase(s string) (*url.URL, error) {
	base, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("crm.url cannot be parsed")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, errors.New("crm.url must be of the form http[s]://host[:port][/path]")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("crm.url must have no query and no fragment")
	}
	return base, nil
}

// Describe says what the configuration promises of the CRM.
func (c *Connector) Describe() crm.Description { return c.description }

// header is what every request bears.
func header() http.Header {
	return http.Header{"User-Agent": {"leadonce"}, "Accept": {"application/json"}}
}

// isExternalID reports whether the CRM keeps the id as it is, in a path too.
func isExternalID(id string) bool {
	for i := range len(id) {
		switch b := id[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= 200
}

var errExternalID = &crm.Error{Outcome: crm.Refused, Reason: "the operation id is not 1 to 200 of A-Z a-z 0-9 _ -"}
