package restcrm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/engine/crm/restcrm/trytontest"
)

// TestTrytonCertified certifies Tryton: with the module that makes the key unique,
// without it, without it in the class of the other, and with the other's description.
func TestTrytonCertified(t *testing.T) {
	stock, err := restcrm.Document("tryton-stock")
	if err != nil {
		t.Fatal(err)
	}
	unique, err := restcrm.Document("tryton")
	if err != nil {
		t.Fatal(err)
	}
	overstated := strings.Replace(string(stock), "class: lookup", "class: unique_create", 1)
	postgres := trytontest.Open(t)
	for _, v := range []struct {
		trytontest.Variant
		cases []trytonClaim
	}{
		{trytontest.Unique, []trytonClaim{{string(unique), crm.UniqueCreate, crmtest.Held}}},
		{trytontest.Stock, []trytonClaim{
			{string(stock), crm.Lookup, crmtest.Held},
			{overstated, crm.UniqueCreate, crmtest.Broken},
			{string(unique), crm.UniqueCreate, crmtest.NotShown},
		}},
	} {
		t.Run(v.Connector, func(t *testing.T) {
			t.Parallel()
			box := postgres.Start(t, v.Variant)
			for _, c := range v.cases {
				c.judge(t, box.URL())
			}
		})
	}
}

// trytonClaim is a description of Tryton, and what a certification has to say of it.
type trytonClaim struct {
	document string
	class    crm.Class
	want     crmtest.Verdict
}

func (c trytonClaim) judge(t *testing.T, url string) {
	t.Helper()
	certificate, err := crmtest.Certify(t.Context(), crmtest.Candidate{
		Connect: func(url string, class crm.Class) (crm.Connector, error) {
			return restcrm.New(load(t, c.document), restcrm.Config{
				BaseURL: url, Class: class, Settle: 2 * time.Second,
				Secrets: func(name string) (string, bool) { return trytontest.Password, name == "TRYTON_PASSWORD" },
			})
		},
		URL: url, Classes: []crm.Class{c.class},
	})
	if err != nil || certificate.Of(c.class) != c.want {
		t.Errorf("%s: %s, want %s: %+v, %v", c.class, certificate.Of(c.class), c.want, certificate, err)
	}
	for _, r := range certificate.Results {
		t.Logf("%s: %s %s", r.Class, r.Verdict, r.Why)
		for _, l := range r.Leads {
			if !l.Removed && l.CRMID != "" {
				t.Errorf("%s is left", l.CRMID)
			}
		}
	}
}
