package restcrm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// gated is a connector on a clock and a scripted CRM.
type gated struct {
	*restcrm.Connector
	*wall
	*scripted
}

func newGated(t *testing.T, more string, answers ...any) gated {
	g := gated{wall: &wall{}, scripted: &scripted{answers: answers}}
	g.Connector = open(t, plain(more), restcrm.Config{Sender: g.scripted, Now: g.Now, Sleep: g.Sleep})
	return g
}

func (g gated) create(t *testing.T) error {
	_, err := g.Create(t.Context(), crm.Operation{ID: "op-1", Deadline: g.in(10 * time.Second)})
	return err
}

func (g gated) wantHeld(t *testing.T, reason string, wait time.Duration) {
	t.Helper()
	sent := g.count()
	e := wantOutcome(t, g.create(t), crm.NotSent, reason)
	if e.RetryAfter != wait || g.count() != sent {
		t.Fatalf("come back after %s, want %s; %d requests left", e.RetryAfter, wait, g.count()-sent)
	}
}

// TestRest: what one answer asks for counts for the connector as a whole, and a
// date far ahead does not stop it.
func TestRest(t *testing.T) {
	for after, want := range map[string]time.Duration{"17": 17 * time.Second, "31536000": 5 * time.Minute, "Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second} {
		g := newGated(t, "", answer(429, "", "Retry-After", after), done)
		if e := wantOutcome(t, g.create(t), crm.NotApplied, "HTTP 429 not applied"); e.RetryAfter < want {
			t.Fatalf("%s: %s", after, e.RetryAfter)
		}
		g.wantHeld(t, "the CRM asked to be left alone", want)
		g.pass(want - time.Nanosecond)
		g.wantHeld(t, "the CRM asked to be left alone", time.Nanosecond)
		g.pass(time.Nanosecond)
		if err := g.create(t); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCircuit: failures in a row open it, one request tries it, and what a rule
// of the file knows closes it.
func TestCircuit(t *testing.T) {
	lost := &crm.Error{Outcome: crm.Unknown, Reason: "time-out"}
	bad := answer(500, "<html>")
	g := newGated(t, "limits: {break_after: 3, break_for: 40s}", lost, bad, lost, bad, done, lost, lost, answer(422, ""), lost, lost, done)
	for range 3 {
		if e := crm.Classify(g.create(t)); e.Outcome != crm.Unknown {
			t.Fatal(e)
		}
	}
	g.wantHeld(t, "the circuit is open after 3 failures in a row", 40*time.Second)
	g.pass(40 * time.Second)
	wantOutcome(t, g.create(t), crm.Unknown, "HTTP 500 meets no rule") // the try
	g.wantHeld(t, "the circuit is open after 4 failures in a row", 40*time.Second)
	g.pass(40 * time.Second)
	if err := g.create(t); err != nil {
		t.Fatal(err)
	}
	for _, want := range []crm.Outcome{crm.Unknown, crm.Unknown, crm.Refused, crm.Unknown, crm.Unknown} {
		if e := crm.Classify(g.create(t)); e.Outcome != want {
			t.Fatalf("%v, want %s", e, want)
		}
	}
	if err := g.create(t); err != nil {
		t.Fatalf("a refusal did not close the circuit: %v", err)
	}
}

// TestRateLimit: a request waits for its turn within half of its time; beyond
// that nothing leaves and no turn is used up.
func TestRateLimit(t *testing.T) {
	g := newGated(t, "limits: {per_second: 0.5, burst: 2}", done)
	for range 2 {
		if err := g.create(t); err != nil || g.slept.Load() != 0 {
			t.Fatalf("%v after %s", err, time.Duration(g.slept.Load()))
		}
	}
	if err := g.create(t); err != nil || time.Duration(g.slept.Load()) != 2*time.Second {
		t.Fatalf("%v after %s", err, time.Duration(g.slept.Load()))
	}
	for range 3 {
		sent := g.count()
		_, err := g.Create(t.Context(), crm.Operation{ID: "op-1", Deadline: g.in(3 * time.Second)})
		if e := wantOutcome(t, err, crm.NotSent, "the rate limit of the file is used up"); e.RetryAfter != 2*time.Second || g.count() != sent {
			t.Fatalf("come back after %s, %d left", e.RetryAfter, g.count()-sent)
		}
	}
}

// TestTimeout: a request has the file's time, and never more than the deadline's.
func TestTimeout(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, time.Hour: 7 * time.Second} {
		g := newGated(t, "timeout: 7s", done)
		if _, err := g.Create(t.Context(), crm.Operation{ID: "op-1", Deadline: g.in(within)}); err != nil {
			t.Fatal(err)
		}
		if got := g.sent[0].Deadline.Sub(noon); got != want {
			t.Errorf("within %s: %s", within, got)
		}
	}
}

// TestSenderErrorsPass: what httponce proves is what the create proves.
func TestSenderErrorsPass(t *testing.T) {
	for _, outcome := range []crm.Outcome{crm.NotSent, crm.Unknown} {
		g := newGated(t, "", &crm.Error{Outcome: outcome, Reason: "connection refused"})
		wantOutcome(t, g.create(t), outcome, "connection refused")
	}
	g := newGated(t, "", errors.New("bare"))
	if e := crm.Classify(g.create(t)); e.Outcome != crm.Unknown {
		t.Error(e)
	}
}

// TestAConditionThatFailsProvesNothing, whatever the rules after it say.
func TestAConditionThatFailsProvesNothing(t *testing.T) {
	document := plain("")
	document = document[:len(document)-len("    - {when: status == 422, is: refused}\n")] +
		"    - {when: 'body.code contains \"x\"', is: unknown}\n    - {when: status == 422, is: refused}\n"
	for body, want := range map[string]crm.Outcome{`{"code":"y"}`: crm.Refused, `{"code":7}`: crm.Unknown, `{}`: crm.Refused, `<html>`: crm.Refused} {
		c := open(t, document, restcrm.Config{Sender: &scripted{answers: []any{httponce.Answer{Status: 422, Body: []byte(body)}}}})
		_, err := c.Create(t.Context(), operation("op-1", nil))
		if e := crm.Classify(err); e.Outcome != want {
			t.Errorf("%s: %v, want %s", body, e, want)
		}
	}
}

// blocking is a CRM that answers when it is told to.
type blocking struct {
	arrived chan struct{}
	answers chan httponce.Answer
}

func (b *blocking) Send(context.Context, httponce.Request) (httponce.Answer, error) {
	select {
	case b.arrived <- struct{}{}:
	default: // a request too many, which the test sees by its outcome
	}
	select {
	case a := <-b.answers:
		return a, nil
	case <-time.After(5 * time.Second):
		return httponce.Answer{}, errors.New("nobody answers")
	}
}

// TestOneRequestTriesTheCircuit: while it is under way, the others are held.
func TestOneRequestTriesTheCircuit(t *testing.T) {
	clock := &wall{}
	b := &blocking{arrived: make(chan struct{}, 1), answers: make(chan httponce.Answer, 1)}
	c := open(t, plain("limits: {break_after: 1, break_for: 40s}"), restcrm.Config{Sender: b, Now: clock.Now, Sleep: clock.Sleep})
	create := func() error {
		_, err := c.Create(t.Context(), crm.Operation{ID: "op-1", Deadline: clock.in(10 * time.Second)})
		return err
	}
	b.answers <- answer(500, "")
	wantOutcome(t, create(), crm.Unknown, "HTTP 500 meets no rule")
	<-b.arrived
	clock.pass(40 * time.Second)
	tried := make(chan error, 1)
	go func() { tried <- create() }()
	<-b.arrived
	if e := wantOutcome(t, create(), crm.NotSent, "the circuit is open, and one request tries it"); e.RetryAfter != time.Second {
		t.Errorf("come back after %s", e.RetryAfter)
	}
	b.answers <- done
	if err := <-tried; err != nil {
		t.Fatal(err)
	}
	b.answers <- done
	if err := create(); err != nil {
		t.Fatal(err)
	}
}
