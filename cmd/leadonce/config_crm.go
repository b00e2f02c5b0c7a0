package main

import (
	"net/url"

	"github.com/leadonce/leadonce/engine/crm"
)

func (c *config) checkCRM() error {
	if c.CRM.Connector != simulated {
		if _, err := describedCRM(c.CRM.Connector); err != nil {
			return mistake("%v", err)
		}
	}
	if _, err := crm.ParseClass(c.CRM.Class); err != nil {
		return mistake("crm.class: %v", err)
	}
	value, err := expand("crm.url", c.CRM.URL)
	if err != nil {
		return err
	}
	u, err := url.Parse(value)
	if value != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return mistake("crm.url: give an http or https address, such as http://127.0.0.1:9090")
	}
	c.CRM.URL = value
	if c.CRM.Settle < 0 {
		return mistake("crm.settle: %s, give more than the CRM's longest request and the lag of its search", c.CRM.Settle)
	}
	connector, err := newConnector(*c)
	if err != nil {
		return mistake("%v", err)
	}
	d := connector.Describe()
	c.CRM.Settle, c.CRM.KeyValidity = d.Settle, d.KeyValidity
	if d.Class == crm.IdempotencyKey && d.KeyValidity <= c.CallTimeout+d.Settle+c.ClockSkew {
		return mistake("crm.key_validity: %s, must exceed call_timeout + crm.settle + clock_skew, or no request can be repeated", d.KeyValidity)
	}
	return nil
}
