package crmsim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Config says which CRM is simulated and how badly. Only Class is required; a duration of zero
// takes its default.
type Config struct {
	Class Class

	// Faults is the share of requests, 0 to 1, that meet a fault, each of Spread alike.
	Faults float64
	// Rates gives single faults their own probability instead; it may go outside of Spread.
	Rates map[Fault]float64
	// Script is served before any probability is asked.
	Script Script
	// Seed decides, with the number of the request, which fault is drawn.
	Seed uint64

	// KeyValidity is how long a key is remembered, from the first request that bore it. Default 24 h.
	KeyValidity time.Duration
	// Hang is how late a late effect happens after its request. Default 20 s.
	Hang time.Duration
	// IndexLag is the age below which a lagging lookup misses a lead. Default 5 s.
	IndexLag time.Duration
	// RetryAfter is the wait a 429 asks for: whole seconds, or less than one. Default 1 s.
	RetryAfter time.Duration

	// OmitExistingID leaves the id out of the 409 of UniqueCreate.
	OmitExistingID bool
	// Poisoned, if set, chooses creates that are refused by validation. It must be pure.
	Poisoned func(externalID string, fields map[string]string) bool

	// JournalPath names a file of JSON lines that outlives the process; empty keeps memory only.
	// Two processes must not share it.
	JournalPath string
	// AllowRemote lets Serve listen on an address that is not loopback.
	AllowRemote bool

	// Now is the clock. Default time.Now.
	Now func() time.Time
	// After is what late effects and outages wait on. Default time.After.
	After func(time.Duration) <-chan time.Time
}

const (
	defaultKeyValidity = 24 * time.Hour
	defaultHang        = 20 * time.Second
	defaultIndexLag    = 5 * time.Second
	defaultRetryAfter  = time.Second
)

func (c Config) withDefaults() Config {
	durations := []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&c.KeyValidity, defaultKeyValidity},
		{&c.Hang, defaultHang},
		{&c.IndexLag, defaultIndexLag},
		{&c.RetryAfter, defaultRetryAfter},
	}
	for _, d := range durations {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.After == nil {
		c.After = time.After
	}
	return c
}

// Validate returns the first mistake as one line that names the field and the mend.
func (c Config) Validate() error {
	if _, err := ParseClass(string(c.Class)); err != nil {
		return err
	}
	if err := c.validateDurations(); err != nil {
		return err
	}
	if !(c.Faults >= 0 && c.Faults <= 1) {
		return fmt.Errorf("crmsim: Faults is %v: give a share from 0 to 1", c.Faults)
	}
	if c.Faults > 0 && len(c.Rates) > 0 {
		return fmt.Errorf("crmsim: Faults and Rates are both set: give one of them")
	}
	if err := c.validateRates(); err != nil {
		return err
	}
	if err := c.Script.validate(c.Class); err != nil {
		return fmt.Errorf("crmsim: Script: %w", err)
	}
	return nil
}

func (c Config) validateDurations() error {
	full := c.withDefaults()
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"KeyValidity", full.KeyValidity},
		{"Hang", full.Hang},
		{"IndexLag", full.IndexLag},
		{"RetryAfter", full.RetryAfter},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("crmsim: %s is %v: give at least 1ms, or 0 for the default", d.field, d.value)
		}
	}
	if full.RetryAfter > time.Second && full.RetryAfter%time.Second != 0 {
		return fmt.Errorf("crmsim: RetryAfter is %v: give whole seconds, or less than one", full.RetryAfter)
	}
	if c.Class == IdempotencyKey && full.Hang >= full.KeyValidity {
		return fmt.Errorf("crmsim: Hang is %v: give less than KeyValidity, which is %v", full.Hang, full.KeyValidity)
	}
	return nil
}

func (c Config) validateRates() error {
	sums := map[Op]float64{}
	for _, fault := range slices.Sorted(maps.Keys(c.Rates)) {
		rate := c.Rates[fault]
		if err := checkPossible(fault, c.Class, Create, Find); err != nil {
			return fmt.Errorf("crmsim: Rates: %w", err)
		}
		if !(rate >= 0 && rate <= 1) {
			return fmt.Errorf("crmsim: Rates[%s] is %v: give a probability from 0 to 1", fault, rate)
		}
		for _, op := range both {
			if checkPossible(fault, c.Class, op) == nil {
				sums[op] += rate
			}
		}
	}
	const rounding = 1e-9
	for _, op := range both {
		if sums[op] > 1+rounding {
			return fmt.Errorf("crmsim: Rates of a %s add up to %v: lower them to at most 1", op, sums[op])
		}
	}
	return nil
}
