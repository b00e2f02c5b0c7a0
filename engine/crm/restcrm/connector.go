package restcrm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// Config is what a definition leaves open.
type Config struct {
	// BaseURL is used instead of the definition's. It may hold a password.
	BaseURL string
	// Class is used instead of the declared one; one of Definition.Classes. With
	// steps, it and the two below are about the lead's alone.
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

// Connector speaks to one CRM. It is safe for concurrent use. Those of the steps
// share the gate and the session.
type Connector struct {
	definition  *Definition
	stage       *stage
	steps       []crm.Step // of the lead's; nil when the file has none
	base        *url.URL
	description crm.Description
	vars        map[string]any
	gate        *gate
	session     *session // nil when nothing is added to requests
	now         func() time.Time
	sender      Sender
}

var _ crm.Stepped = (*Connector)(nil)

// afterUnauthorized is how long the CRM is left alone after it refused a
// session, so that every worker's next attempt has the new one.
const afterUnauthorized = time.Second

// New is a connector. It sends nothing. Its error names the file, the line and
// the key to mend, and no value.
func New(d *Definition, c Config) (*Connector, error) {
	c = c.withDefaults()
	connector := &Connector{
		definition: d, stage: d.lead(), now: c.Now, sender: c.Sender, gate: newGate(d.limits, c.Now, c.Sleep), vars: map[string]any{},
	}
	if err := connector.describe(c); err != nil {
		return nil, err
	}
	if err := connector.resolve(c); err != nil {
		return nil, err
	}
	var err error
	if connector.session, err = d.auth.open(connector, c); err != nil {
		return nil, err
	}
	if d.stepped {
		connector.steps = connector.eachStep()
	}
	return connector, nil
}

// eachStep is a connector for every step.
func (c *Connector) eachStep() (steps []crm.Step) {
	for _, s := range c.definition.stages {
		step := *c
		if s != c.stage {
			step.stage = s
			step.promise(s.classes[0], s.settle, s.keyValidity)
		}
		steps = append(steps, crm.Step{Name: s.name, Connector: &step})
	}
	return steps
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

// describe settles what the connector promises of the lead.
func (c *Connector) describe(config Config) error {
	file, s := c.definition.file, c.stage
	class := cmp.Or(config.Class, s.classes[0])
	switch {
	case !slices.Contains(s.classes, class):
		return fmt.Errorf("%s: the file has no class %s; give one of %s", file, class, join(s.classes))
	case config.Settle < 0 || config.KeyValidity < 0:
		return fmt.Errorf("%s: settle or key_validity is negative; give a duration above 0, or leave it out", file)
	}
	c.promise(class, cmp.Or(config.Settle, s.settle), cmp.Or(config.KeyValidity, s.keyValidity))
	return nil
}

// promise makes the description of the connector's stage.
func (c *Connector) promise(class crm.Class, settle, keyValidity time.Duration) {
	name := c.definition.name
	if c.definition.stepped {
		name += "/" + c.stage.name
	}
	if class != crm.IdempotencyKey {
		keyValidity = 0
	}
	c.description = crm.Description{
		Name: name, Class: class, Settle: settle, KeyValidity: keyValidity,
		CanFind: c.stage.lookup != nil && class != crm.None,
	}
}

// resolve reads the base URL and the variables.
func (c *Connector) resolve(config Config) error {
	if err := c.resolveBase(config); err != nil {
		return err
	}
	d := c.definition
	for _, name := range slices.Sorted(maps.Keys(config.Vars)) {
		if !slices.Contains(d.Vars(), name) {
			return fmt.Errorf("%s: vars has no %q; give one of %s", d.file, shown(name), strings.Join(d.Vars(), ", "))
		}
	}
	for _, name := range d.Vars() {
		setting := d.vars[name]
		value, given := config.Vars[name]
		switch {
		case given:
		case setting == nil:
			return mistake(d.file, d.varNodes[name], "it has no value; give one here, or under vars of the configuration")
		default:
			var err error
			if value, err = setting.resolve(d.file, config.Secrets); err != nil {
				return err
			}
		}
		c.vars[name] = value
	}
	return nil
}

func (c *Connector) resolveBase(config Config) (err error) {
	d := c.definition
	address, from := config.BaseURL, &node{key: "base_url"}
	if address == "" {
		if from = d.baseNode; d.baseURL == nil {
			return mistake(d.file, from, "it has no value; give the URL of your CRM here, or in the configuration")
		}
		if address, err = d.baseURL.resolve(d.file, config.Secrets); err != nil {
			return err
		}
	}
	if c.base, err = parseBase(address); err != nil {
		return mistake(d.file, from, "%v", err)
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

// Steps are the effects that a lead takes, as the file lists them; nil when it has
// no steps.
func (c *Connector) Steps() []crm.Step { return slices.Clone(c.steps) }

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
