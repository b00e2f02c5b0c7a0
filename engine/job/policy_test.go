package job

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// patient is a policy whose durations are all different.
var patient = Policy{
	MaxAttempts: 3, RetryFirst: 2 * time.Second, RetryMax: 5 * time.Minute,
	Lease: 60 * time.Second, CallTimeout: 20 * time.Second, ClockSkew: time.Second,
}

func TestAPolicySaysWhatIsWrongWithIt(t *testing.T) {
	tests := map[string]struct {
		change func(*Policy)
		want   string // in the error; empty for none
	}{
		"sound":                      {func(*Policy) {}, ""},
		"one attempt":                {func(p *Policy) { p.MaxAttempts = 1 }, ""},
		"no attempts":                {func(p *Policy) { p.MaxAttempts = 0 }, "retry.attempts is 0"},
		"no first wait":              {func(p *Policy) { p.RetryFirst = 0 }, "retry.first is 0s"},
		"negative wait":              {func(p *Policy) { p.RetryFirst = -1 }, "retry.first is -1ns"},
		"first equals max":           {func(p *Policy) { p.RetryMax = p.RetryFirst }, ""},
		"first beyond max":           {func(p *Policy) { p.RetryMax = p.RetryFirst - 1 }, "retry.max is 1.999999999s"},
		"no call time-out":           {func(p *Policy) { p.CallTimeout = 0 }, "call_timeout is 0s"},
		"clocks agree":               {func(p *Policy) { p.ClockSkew = 0 }, ""},
		"clocks negative":            {func(p *Policy) { p.ClockSkew = -time.Second }, "clock_skew is -1s"},
		"lease as long as it has to": {func(p *Policy) { p.Lease = 25 * time.Second }, ""},
		"lease too short":            {func(p *Policy) { p.Lease = 25*time.Second - 1 }, "lease is 24.999999999s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := patient
			test.change(&p)
			err := p.Check()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("Check says %v, want %q", err, test.want)
			}
		})
	}
}

func TestARequestEndsWellBeforeItsLease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := patient
		p.CallTimeout, p.Lease = drawDuration(t, "call")+1, drawDuration(t, "lease")
		if p.Check() != nil {
			return
		}
		claim := State{}.ClaimBy("w", Plan{}, "", epoch, p)
		renewed := Renew(epoch, p)
		if claim.Deadline != renewed.Deadline || claim.LeaseUntil != renewed.LeaseUntil {
			t.Fatalf("claim %+v and renewal %+v differ", claim, renewed)
		}
		if claim.Deadline.Sub(epoch) != p.CallTimeout || claim.LeaseUntil.Sub(claim.Deadline) < p.CallTimeout/4 {
			t.Fatalf("a request until %s leaves no time to record it in a lease until %s", claim.Deadline, claim.LeaseUntil)
		}
	})
}

func TestBackoffStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := patient
		p.RetryFirst = time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "first"))
		p.RetryMax = time.Duration(rapid.Int64Range(int64(p.RetryFirst), math.MaxInt64).Draw(t, "max"))
		n := rapid.OneOf(rapid.IntRange(-2, 70), rapid.Int()).Draw(t, "n")
		if got := p.Backoff(n, 0); got != 0 {
			t.Fatalf("the shortest wait is %s", got)
		}
		wait, sooner := p.Backoff(n, 0.999), p.Backoff(n-1, 0.999)
		if wait < 0 || wait > p.RetryMax || n > math.MinInt && sooner > wait {
			t.Fatalf("the waits before tries %d and %d are %s and %s, at most %s", n, n+1, sooner, wait, p.RetryMax)
		}
		if n <= 1 && wait > p.RetryFirst {
			t.Fatalf("the first wait is %s, at most %s", wait, p.RetryFirst)
		}
		if n >= 64 && wait < p.RetryMax/2 {
			t.Fatalf("the wait before try %d is %s, near %s", n, wait, p.RetryMax)
		}
	})
}

func TestBackoffDoubles(t *testing.T) {
	tests := []struct {
		n     int
		share float64
		want  time.Duration
	}{
		{-1, 0.5, time.Second}, {0, 0.5, time.Second}, {1, 0.5, time.Second}, {2, 0.5, 2 * time.Second}, {3, 0.5, 4 * time.Second},
		{8, 0.5, 128 * time.Second}, {9, 0.5, 150 * time.Second}, {31, 0.5, 150 * time.Second}, {60, 0.5, 150 * time.Second},
		{65, 0.5, 150 * time.Second}, {math.MaxInt, 0.5, 150 * time.Second}, {60, 0, 0}, {60, 0.999, 299700 * time.Millisecond},
	}
	for _, test := range tests {
		if got := patient.Backoff(test.n, test.share); got != test.want {
			t.Errorf("Backoff(%d, %g) is %s, want %s", test.n, test.share, got, test.want)
		}
	}
}

func TestAKeyIsUsedOnlyWhileItIsCertainToBeKnown(t *testing.T) {
	c := Capability{Repeatable: true, Validity: time.Hour, Settle: 10 * time.Second}
	last := epoch.Add(time.Hour - c.Settle - patient.ClockSkew)
	tests := map[string]struct {
		capability Capability
		deadline   time.Time
		want       bool
	}{
		"just in time":   {c, last.Add(-1), true},
		"just too late":  {c, last, false},
		"later":          {c, last.Add(time.Hour), false},
		"for ever":       {Capability{Repeatable: true}, epoch.AddDate(9, 0, 0), true},
		"not repeatable": {Capability{Validity: time.Hour}, epoch, false},
		"nothing":        {Capability{}, epoch, false},
	}
	for name, test := range tests {
		if got := test.capability.repeatableAt(epoch, test.deadline, patient); got != test.want {
			t.Errorf("%s: repeatable is %t", name, got)
		}
	}
	if got := c.SettledAt(epoch, patient); !got.Equal(epoch.Add(11 * time.Second)) {
		t.Errorf("a request until %s has settled at %s", epoch, got)
	}
}
