package tiny

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 6, 11, 12, 0, 0, 0, time.UTC)

func TestSell(t *testing.T) {
	for zone, good := range []bool{false, true, true, true, false} {
		p, err := Sell(zone, noon)
		if good != (err == nil) || good && !p.Valid(zone, noon) {
			t.Errorf("zone %d: %+v, %v", zone, p, err)
		}
	}
}

func TestATicketEnds(t *testing.T) {
	p, _ := Sell(2, noon)
	if p.Valid(2, noon.Add(time.Hour+1)) || p.Valid(3, noon) || !p.Valid(1, noon) {
		t.Error("good for too much, or for too little")
	}
}

func TestCountdown(t *testing.T) {
	if n := Countdown(3); n != 3 {
		t.Errorf("%d steps", n)
	}
}

func TestBroken(t *testing.T) { t.Error("this one fails as it is") }
