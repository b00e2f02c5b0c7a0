package restcrm_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

const sessioned = `
vars: {user: ann, password: '${env:PASSWORD}'}
auth:
  type: session
  header: X-Session
  login:
    path: /login
    body: {user: '${vars.user}', password: '${vars.password}'}
    granted: status == 200 && body.session != nil
  value: 'S ${b64(vars.user + ":" + body_session)}'
`

func sessionDocument() string {
	return plain(strings.Replace(sessioned, "body_session", "string(session.body.session)", 1))
}

func passwordOnly(name string) (string, bool) { return secret, name == "PASSWORD" }

// TestSessionIsRenewedForTheNextAttempt: a create that meets a session that is
// over is not sent again by itself; the next one logs in.
func TestSessionIsRenewedForTheNextAttempt(t *testing.T) {
	s := &scripted{answers: []any{
		answer(200, `{"session":1}`), done, done, answer(401, ""), answer(200, `{"session":2}`), done,
	}}
	clock := &wall{}
	c := open(t, sessionDocument(), restcrm.Config{Sender: s, Secrets: passwordOnly, Now: clock.Now, Sleep: clock.Sleep})
	create := func() error {
		_, err := c.Create(t.Context(), crm.Operation{ID: "op-1", Deadline: clock.in(1e10)})
		return err
	}
	for range 2 {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	e := wantOutcome(t, create(), crm.NotApplied, "HTTP 401 unauthorized")
	if n := s.count(); n != 4 || e.RetryAfter <= 0 {
		t.Fatalf("%d requests, want a login and three creates; come back after %s", n, e.RetryAfter)
	}
	clock.pass(e.RetryAfter)
	if err := create(); err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, r := range s.sent {
		values = append(values, r.URL.Path+" "+r.Header.Get("X-Session"))
	}
	if got, want := strings.Join(values, "|"), "/api/login |/api/leads/op-1 S YW5uOjE=|/api/leads/op-1 S YW5uOjE=|/api/leads/op-1 S YW5uOjE=|/api/login |/api/leads/op-1 S YW5uOjI="; got != want {
		t.Errorf("sent\n%s, want\n%s", got, want)
	}
}

// TestLoginThatFailsIsNotSent: whatever became of a login, the create has not
// left, and no password is in the error.
func TestLoginThatFailsIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		answer any
		reason string
	}{
		"refused":      {answer(401, secret), "the login was not granted: HTTP 401"},
		"200, no":      {answer(200, `{"error":"`+secret+`"}`), "the login was not granted: HTTP 200"},
		"html":         {answer(200, "<html>"), "the login was not granted: HTTP 200"},
		"a list":       {answer(200, `{"session":[]}`), "the login's answer has no session: HTTP 200"},
		"a header's":   {answer(200, `{"session":{}}`), "the login's answer has no session: HTTP 200"},
		"lost":         {&crm.Error{Outcome: crm.Unknown, Reason: "time-out"}, "login: time-out"},
		"unreachable":  {&crm.Error{Outcome: crm.NotSent, Reason: "connection refused"}, "connection refused"},
		"rate limited": {answer(429, "", "Retry-After", "7"), "the login was not granted: HTTP 429"},
	} {
		s := &scripted{answers: []any{c.answer}}
		connector := open(t, sessionDocument(), restcrm.Config{Sender: s, Secrets: passwordOnly})
		_, err := connector.Create(t.Context(), operation("op-1", nil))
		e := wantOutcome(t, err, crm.NotSent, c.reason)
		if s.count() != 1 || strings.Contains(e.Error(), secret) || name == "rate limited" && e.RetryAfter.Seconds() != 7 {
			t.Errorf("%s: %d requests, %v, come back after %s", name, s.count(), e, e.RetryAfter)
		}
	}
}

// TestOneLoginForAll: workers that begin together share one login, and a
// session that is over is given up once.
func TestOneLoginForAll(t *testing.T) {
	var logins atomic.Int64
	rec := record(t, func(w http.ResponseWriter, r request) {
		switch {
		case r.uri == "/login":
			logins.Add(1)
			says(200, `{"session":"`+strings.Repeat("x", int(logins.Load()))+`"}`)(w, r)
		case logins.Load() == 1:
			says(401, "")(w, r)
		default:
			says(201, `{"id":"L-1"}`)(w, r)
		}
	})
	c := open(t, sessionDocument(), restcrm.Config{BaseURL: rec.URL, Secrets: passwordOnly})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { _, _ = c.Create(t.Context(), operation("op-1", nil)) })
	}
	group.Wait()
	if n := logins.Load(); n > 2 {
		t.Errorf("%d logins", n)
	}
}

// TestBasicAndFixedHeaders are sent, and appear in no error.
func TestBasicAndFixedHeaders(t *testing.T) {
	for auth, want := range map[string]string{
		"auth: {type: basic, user: ann, password: '${env:PASSWORD}'}":                                   "Authorization: Basic YW5uOmh1bnRlcjItb2YtdGhlLXZlbmRvcg==",
		"vars: {token: '${env:PASSWORD}'}\nauth: {type: header, value: 'Bearer ${vars.token}'}":         "Authorization: Bearer " + secret,
		"vars: {token: '${env:PASSWORD}'}\nauth: {type: header, header: X-Key, value: '${vars.token}'}": "X-Key: " + secret,
	} {
		s := &scripted{answers: []any{answer(418, secret)}}
		c := open(t, plain(auth), restcrm.Config{Sender: s, Secrets: passwordOnly})
		_, err := c.Create(t.Context(), operation("op-1", nil))
		wantOutcome(t, err, crm.Unknown, "HTTP 418 meets no rule")
		name, value, _ := strings.Cut(want, ": ")
		if got := s.sent[0].Header.Get(name); got != value {
			t.Errorf("%s: %q", auth, got)
		}
	}
	d := load(t, plain("vars: {token: '${env:PASSWORD}'}\nauth: {type: header, value: 'Bearer ${vars.token}'}"))
	_, err := restcrm.New(d, restcrm.Config{Secrets: func(string) (string, bool) { return secret + "\n", true }})
	if err == nil || strings.Contains(err.Error(), secret) || !strings.HasPrefix(err.Error(), "acme.yaml:5: auth: ") {
		t.Errorf("%v", err)
	}
}

// TestLoginOfAnotherEndsWithTheDeadline: whoever waits for it does not wait
// longer than its own request may take.
func TestLoginOfAnotherEndsWithTheDeadline(t *testing.T) {
	b := &blocking{arrived: make(chan struct{}, 1), answers: make(chan httponce.Answer, 2)}
	c := open(t, sessionDocument(), restcrm.Config{Sender: b, Secrets: passwordOnly})
	first := make(chan error, 1)
	go func() {
		_, err := c.Create(t.Context(), operation("op-1", nil))
		first <- err
	}()
	<-b.arrived
	_, err := c.Create(t.Context(), crm.Operation{ID: "op-2", Deadline: time.Now().Add(50 * time.Millisecond)})
	wantOutcome(t, err, crm.NotSent, "another request's login took too long")
	b.answers <- answer(200, `{"session":1}`)
	<-b.arrived
	b.answers <- done
	if err := <-first; err != nil {
		t.Fatal(err)
	}
}

// inFlight hands every request to the test, which answers it when it likes.
type inFlight chan pending

type pending struct {
	httponce.Request
	answer chan httponce.Answer
}

func (f inFlight) Send(_ context.Context, r httponce.Request) (httponce.Answer, error) {
	p := pending{r, make(chan httponce.Answer, 1)}
	f <- p
	return <-p.answer, nil
}

// TestALateRefusalDoesNotEndTheNewSession: a create that left with the session
// before, and is refused after the next login.
func TestALateRefusalDoesNotEndTheNewSession(t *testing.T) {
	wire, clock := make(inFlight, 8), &wall{}
	c := open(t, sessionDocument(), restcrm.Config{Sender: wire, Secrets: passwordOnly, Now: clock.Now, Sleep: clock.Sleep})
	over := make(chan error, 8)
	create := func() pending {
		go func() {
			_, err := c.Create(t.Context(), crm.Operation{ID: "op-1", Deadline: clock.in(10 * time.Second)})
			over <- err
		}()
		return <-wire
	}
	create().answer <- answer(200, `{"session":1}`)
	early, late := <-wire, create()
	early.answer <- answer(401, "")
	<-over
	clock.pass(time.Second)
	create().answer <- answer(200, `{"session":2}`)
	(<-wire).answer <- done
	<-over
	late.answer <- answer(401, "")
	<-over
	clock.pass(time.Second)
	next := create()
	if next.URL.Path != "/api/leads/op-1" {
		t.Errorf("the next request is for %s: the new session was given up", next.URL.Path)
	}
	next.answer <- done
	if next.URL.Path == "/api/leads/op-1" {
		<-over
	}
}
