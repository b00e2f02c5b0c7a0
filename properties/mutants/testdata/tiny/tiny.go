// Package tiny has mutants that its tests notice, and some that they do not.
package tiny

import (
	"errors"
	"fmt"
	"time"
)

// Pass is a ticket.
type Pass struct {
	Zone  int
	Until time.Time
	Note  string
}

// Sell makes a ticket, if the zone is one.
func Sell(zone int, now time.Time) (Pass, error) {
	if zone < 1 || zone > 3 {
		return Pass{}, fmt.Errorf("zone %d is none", zone)
	}
	return Pass{Zone: zone, Until: now.Add(time.Hour), Note: note(zone)}, nil
}

// Valid reports whether the ticket is good for the zone now.
func (p Pass) Valid(zone int, now time.Time) bool {
	return p.Zone >= zone && now.Before(p.Until)
}

// Countdown takes n to 0, and counts the steps.
func Countdown(n int) (steps int) {
	for n > 0 {
		n--
		steps++
	}
	return steps
}

// note is never looked at by the tests.
func note(zone int) string {
	switch zone {
	case 1:
		return "city"
	default:
		return "country"
	}
}

// Forgotten is never called.
func Forgotten(a, b int) (int, error) {
	if a == b {
		return 0, errors.New("the same")
	}
	return a + b, nil
}
