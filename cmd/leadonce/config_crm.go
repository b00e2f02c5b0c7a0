package main

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/leadonce/leadonce/engine/crm"
)

const giveAddress = "give an http or https address, such as http://127.0.0.1:9090"

func (c *config) checkCRM() error { return c.sources.place(c.verifyCRM()) }

func (c *config) verifyCRM() error {
	if err := c.resolveCRM(); err != nil {
		return err
	}
	connector, err := newConnector(*c)
	if err != nil {
		return asMistake(err)
	}
	d := connector.Describe()
	c.CRM.Settle, c.CRM.KeyValidity = d.Settle, d.KeyValidity
	return c.checkValidity(connector)
}

// resolveCRM fills in the environment's values, and finds what is wrong without the
// connector.
func (c *config) resolveCRM() error {
	if err := c.checkDescribed(); err != nil {
		return err
	}
	if err := c.expandVars(); err != nil {
		return err
	}
	value, err := expand("crm.url", c.CRM.URL)
	if err != nil {
		return err
	}
	u, err := url.Parse(value)
	switch {
	case value == "":
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return wrong("crm.url", giveAddress)
	case u.RawQuery != "" || u.Fragment != "":
		return wrong("crm.url", "it must have no query and no fragment; leave them out")
	}
	c.CRM.URL = value
	if c.CRM.Settle < 0 || c.CRM.Settle == 0 && c.sources.has("crm.settle") {
		return wrong("crm.settle", "%s, give more than the CRM's longest request and the lag of its search; or leave it out, for the description's", c.CRM.Settle)
	}
	if c.CRM.KeyValidity < 0 {
		return wrong("crm.key_validity", "%s, give how long the CRM remembers an idempotency key", c.CRM.KeyValidity)
	}
	return nil
}

// checkDescribed is for what the configuration picks from a description.
func (c *config) checkDescribed() error {
	d, err := describedCRM(c.CRM.Connector)
	if err != nil {
		return asMistake(err)
	}
	classes, vars := d.Classes(), d.Vars()
	if _, err := crm.ParseClass(c.CRM.Class); err != nil {
		return wrong("crm.class", "%q is unknown, give one of %s", c.CRM.Class, classList(classes))
	}
	if class := crm.Class(c.CRM.Class); !slices.Contains(classes, class) {
		return wrong("crm.class", "%s has no class %s, give one of %s", c.CRM.Connector, class, classList(classes))
	}
	for _, name := range slices.Sorted(maps.Keys(c.CRM.Vars)) {
		if slices.Contains(vars, name) {
			continue
		}
		if len(vars) == 0 {
			return wrong("crm.vars", "%s has none; leave them out", c.CRM.Connector)
		}
		return wrong("crm.vars", "%s has no %.40q, give one of %s", c.CRM.Connector, name, strings.Join(vars, ", "))
	}
	return nil
}

// expandVars fills in the environment's values.
func (c *config) expandVars() error {
	vars := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.CRM.Vars)) {
		value, err := expand("crm.vars."+name, c.CRM.Vars[name])
		if err != nil {
			return err
		}
		vars[name] = value
	}
	c.CRM.Vars = vars
	return nil
}

// checkValidity refuses a key that is forgotten before a request can be repeated.
func (c *config) checkValidity(connector crm.Connector) error {
	for _, step := range crm.StepsOf(connector) {
		d := step.Connector.Describe()
		if d.Class != crm.IdempotencyKey || d.KeyValidity > c.CallTimeout+d.Settle+c.ClockSkew {
			continue
		}
		const mend = "give more than call_timeout + settle + clock_skew, or no request can be repeated"
		if step.Name != "" && step.Name != crm.LeadStep {
			return wrong("crm.connector", "the key_validity of %s is %s; %s", d.Name, d.KeyValidity, mend)
		}
		return wrong("crm.key_validity", "%s, %s", d.KeyValidity, mend)
	}
	return nil
}

// asMistake is of an error that names its place, or a key.
func asMistake(err error) error {
	var m *configError
	if errors.As(err, &m) {
		return err
	}
	return mistake("%v", err)
}

func classList(classes []crm.Class) string {
	var names []string
	for _, class := range classes {
		names = append(names, string(class))
	}
	return strings.Join(names, ", ")
}
