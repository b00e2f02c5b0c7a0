package crmsim_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
)

func TestConfigMistakeNamesTheFieldAndTheMend(t *testing.T) {
	key, lookup := crmsim.IdempotencyKey, crmsim.Lookup
	for _, row := range []struct {
		config      crmsim.Config
		field, mend string
	}{
		{crmsim.Config{}, "Class", "use one of idempotency_key"},
		{crmsim.Config{Class: "magic"}, "Class", "use one of"},
		{crmsim.Config{Class: lookup, Faults: 1.1}, "Faults", "share from 0 to 1"},
		{crmsim.Config{Class: lookup, Faults: math.NaN()}, "Faults", "share from 0 to 1"},
		{crmsim.Config{Class: lookup, KeyValidity: -1}, "KeyValidity", "at least 1ms"},
		{crmsim.Config{Class: lookup, Hang: -1}, "Hang", "at least 1ms"},
		{crmsim.Config{Class: lookup, IndexLag: time.Microsecond}, "IndexLag", "at least 1ms"},
		{crmsim.Config{Class: lookup, RetryAfter: -1}, "RetryAfter", "at least 1ms"},
		{crmsim.Config{Class: lookup, RetryAfter: 1500 * time.Millisecond}, "RetryAfter", "whole seconds"},
		{crmsim.Config{Class: key, KeyValidity: time.Second, Hang: time.Second}, "Hang", "less than KeyValidity"},
		{crmsim.Config{Class: key, KeyValidity: time.Second}, "Hang", "less than KeyValidity"},
		{crmsim.Config{Class: lookup, Rates: rates("nonsense", 1)}, "Rates", "use one of"},
		{crmsim.Config{Class: lookup, Rates: rates(crmsim.KeyIgnored, 1)}, "Rates", "leave it out"},
		{crmsim.Config{Class: lookup, Rates: rates(crmsim.CutAfter, -1)}, "Rates[cut_after]", "from 0 to 1"},
		{crmsim.Config{Class: lookup, Rates: map[crmsim.Fault]float64{
			crmsim.CutAfter: 0.6, crmsim.ErrorAfter: 0.6}}, "Rates of a create", "at most 1"},
		{crmsim.Config{Class: lookup, Rates: rates(crmsim.CutAfter, 1), Faults: 0.1}, "Faults and Rates", "one of them"},
		{crmsim.Config{Class: lookup, Script: crmsim.Script{Finds: []crmsim.Fault{crmsim.CutAfter}}}, "Script", "leave it out"},
	} {
		err := row.config.Validate()
		if err == nil {
			t.Errorf("%+v is accepted", row.config)
			continue
		}
		line := err.Error()
		if !strings.Contains(line, row.field) || !strings.Contains(line, row.mend) || strings.Contains(line, "\n") {
			t.Errorf("error is %q, want one line with %q and %q", line, row.field, row.mend)
		}
		if _, err := crmsim.New(row.config); err == nil {
			t.Errorf("a CRM started with %+v", row.config)
		}
	}
}

func rates(fault crmsim.Fault, rate float64) map[crmsim.Fault]float64 {
	return map[crmsim.Fault]float64{fault: rate}
}

func TestEveryClassIsReadByItsName(t *testing.T) {
	for _, class := range crmsim.Classes() {
		if got, err := crmsim.ParseClass(string(class)); got != class || err != nil {
			t.Errorf("ParseClass(%q) is %q, %v", class, got, err)
		}
		if err := (crmsim.Config{Class: class, Faults: 1}).Validate(); err != nil {
			t.Error(err)
		}
	}
}
