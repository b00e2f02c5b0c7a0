package restcrm

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// Config is what a definition leaves open.
type Config struct {
	// BaseURL is used instead of the definition's. It may hold a password.
	BaseURL string
	// Class is used instead of the declared one; one of Definition.Classes.
	Class crm.Class
	// Settle and KeyValidity are used instead of the definition's; 0: those.
	Settle, KeyValidity time.Duration
	// Vars are used instead of the definition's.
	Vars map[string]string

	// Secrets answers a name of the environment. Default os.LookupEnv.
	Secrets func(name string) (string, bool)
	// Store keeps refresh tokens. Needed by the grant refresh_token alone.
	Store Store
	// Sender carries the requests. Default a *httponce.Client.
	Sender Sender
	// Now is the clock that deadlines are told by. Default time.Now.
	Now func() time.Time
	// Sleep waits, or returns the context's error. Default a timer.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Sender sends a request at most once and keeps the promises of
// httponce.Client.Send; *httponce.Client is one.
type Sender interface {
	Send(ctx context.Context, r httponce.Request) (httponce.Answer, error)
}

// Connector speaks to one CRM. It is safe for concurrent use.
type Connector struct {
	definition  *Definition
	base        *url.URL
	description crm.Description
	vars        map[string]any
	gate        *gate
	session     *session // nil when nothing is added to requests
	now         func() time.Time
	sender      Sender
}

var _ crm.Connector = (*Connector)(nil)

// afterUnauthorized is how long the CRM is left alone after it refused a
// session, so that every worker's next attempt has the new one.
const afterUnauthorized = time.Second

// New is a connector. It sends nothing. Its error names the file, the line and
// the key to mend, and no value.
func New(d *Definition, c Config) (*Connector, error) {
	c = c.withDefaults()
	connector := &Connector{
		definition: d, now: c.Now, sender: c.Sender, gate: newGate(d.limits, c.Now, c.Sleep), vars: map[string]any{},
		description: crm.Description{Name: d.name, Class: d.classes[0], KeyValidity: d.keyValidity, Settle: d.settle},
	}
	if err := connector.describe(c); err != nil {
		return nil, err
	}
	if err := connector.resolve(c); err != nil {
		return nil, err
	}
	var err error
	connector.session, err = d.auth.open(connector, c)
	return connector, err
}

func (c Config) withDefaults() Config {
	if c.Secrets == nil {
		c.Secrets = os.LookupEnv
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sender == nil {
		c.Sender = &httponce.Client{Now: c.Now}
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// describe settles what the connector promises.
func (c *Connector) describe(config Config) error {
	d, said := c.definition, &c.description
	if config.Class != "" {
		if !slices.Contains(d.classes, config.Class) {
			return fmt.Errorf("%s: class %s is not one that the file has; give one of %s", d.file, config.Class, join(d.classes))
		}
		said.Class = config.Class
	}
	if config.Settle < 0 || config.KeyValidity < 0 {
		return fmt.Errorf("%s: settle and key_validity must not be negative", d.file)
	}
	if config.Settle > 0 {
		said.Settle = config.Settle
	}
	if config.KeyValidity > 0 {
		said.KeyValidity = config.KeyValidity
	}
	if said.Class != crm.IdempotencyKey {
		said.KeyValidity = 0
	}
	said.CanFind = d.lookup() != nil && said.Class != crm.None
	return nil
}

// resolve reads the base URL and the variables.
func (c *Connector) resolve(config Config) error {
	d := c.definition
	address := config.BaseURL
	if address == "" {
		if d.baseURL == nil {
			return fmt.Errorf("%s: base_url has no value; give the URL of your CRM", d.file)
		}
		var err error
		if address, err = d.baseURL.resolve(d.file, config.Secrets); err != nil {
			return err
		}
	}
	var err error
	if c.base, err = parseBase(address); err != nil {
		return fmt.Errorf("%s: base_url: %w", d.file, err)
	}
	vars := map[string]string{}
	for name := range config.Vars {
		if _, ok := d.vars[name]; !ok {
			return fmt.Errorf("%s: vars has no %q; the names are in the file", d.file, name)
		}
	}
	for name, setting := range d.vars {
		value, given := config.Vars[name]
		switch {
		case given:
		case setting == nil:
			return mistake(d.file, d.varNodes[name], "it has no value; give one")
		default:
			if value, err = setting.resolve(d.file, config.Secrets); err != nil {
				return err
			}
		}
		vars[name] = value
	}
	for name, value := range vars {
		c.vars[name] = value
	}
	return nil
}

// parseBase keeps the URL out of its errors: it may hold a password.
func parseBase(s string) (*url.URL, error) {
	base, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("it cannot be parsed; give http[s]://host[:port][/path]")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, errors.New("give http[s]://host[:port][/path]")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("it must have no query and no fragment; leave them out")
	}
	return base, nil
}

// Describe says what the definition promises of the CRM.
func (c *Connector) Describe() crm.Description { return c.description }

// environment is what the expressions about an operation can use.
func (c *Connector) environment(key string) map[string]any {
	return map[string]any{"vars": c.vars, "key": key, "class": string(c.description.Class), "absent": absence{}}
}

// within is the deadline of one request.
func (c *Connector) within(deadline time.Time) time.Time {
	if own := c.now().Add(c.definition.timeout); own.Before(deadline) {
		return own
	}
	return deadline
}

// verdict is what an answer means for the requests after it.
type verdict struct {
	healthy      bool // the CRM answered in a way that the file knows
	unauthorized bool // the session is over
	rest         time.Duration
}

// exchange sends one request, with a session, if the gate lets it, and judges
// the answer. Before the request itself leaves, every failure is NotSent.
func (c *Connector) exchange(ctx context.Context, r httponce.Request, judge func(httponce.Answer) (verdict, error)) error {
	number, err := c.session.authorize(ctx, &r)
	if err != nil {
		return err
	}
	return c.send(ctx, r, func(a httponce.Answer) (verdict, error) {
		v, err := judge(a)
		if v.unauthorized {
			c.session.end(number)
		}
		return v, err
	})
}

// send is exchange without a session.
func (c *Connector) send(ctx context.Context, r httponce.Request, judge func(httponce.Answer) (verdict, error)) error {
	if err := c.gate.enter(ctx, r.Deadline); err != nil {
		return err
	}
	answer, err := c.sender.Send(ctx, r)
	if err != nil {
		c.gate.leave(verdict{}, ctx.Err() != nil)
		return err
	}
	v, err := judge(answer)
	c.gate.leave(v, false)
	return err
}
