package restcrm

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// authorization says how a request proves who sends it. The zero value adds
// nothing.
type authorization struct {
	node   *node
	kind   string
	header string    // "Authorization" unless the file says otherwise
	value  *template // of the header

	user, password *template // basic
	login          *login    // session
	oauth          *oauth    // oauth2
}

var kinds = []string{"none", "header", "basic", "session", "oauth2"}

func (l *loader) authorization(n *node) authorization {
	a := authorization{node: n, header: "Authorization"}
	if kind := n.get("type"); kind != nil {
		a.kind = l.text(kind)
	}
	names := map[string][]string{"header": {}, "session": inSession, "oauth2": inToken}[a.kind]
	skip := func(*node) {}
	header := func(n *node) {
		if a.header = l.text(n); !isHeaderName(a.header) {
			l.fail(n, "this is no name of a header; give one such as X-Api-Token")
		}
	}
	value := func(n *node) { a.value = l.template(n, names) }
	switch a.kind {
	case "none":
		l.keys(n, map[string]func(*node){"type": skip})
	case "header":
		l.keys(n, map[string]func(*node){"type": skip, "header": header, "value": value})
	case "basic":
		l.keys(n, map[string]func(*node){
			"type": skip, "user": func(n *node) { a.user = l.setting(n) },
			"password": func(n *node) { a.password = l.setting(n); l.secret(a.password) },
		})
		if a.user == nil || a.password == nil {
			l.fail(n, "user and password are needed; give both")
		}
	case "session":
		l.keys(n, map[string]func(*node){
			"type": skip, "header": header, "value": value, "login": func(n *node) { a.login = l.login(n) },
		})
		if a.login == nil {
			l.fail(n, "login is missing; say which request opens a session")
		}
	case "oauth2":
		a.oauth = &oauth{}
		readers := l.oauthReaders(a.oauth)
		readers["type"], readers["header"], readers["value"] = skip, header, value
		l.keys(n, readers)
		l.checkOAuth(n, a.oauth)
		if a.value == nil {
			a.value = l.template(&node{line: n.line, key: n.key, scalar: "Bearer ${token}"}, names)
		}
	default:
		l.fail(n, "type is none that there is; give one of %s", strings.Join(kinds, ", "))
	}
	if (a.kind == "header" || a.kind == "session") && a.value == nil {
		l.fail(n, "value is missing; give the text of the header")
	}
	if a.kind == "header" && l.err == nil {
		if _, fixed := a.value.constant(); fixed {
			l.fail(a.value.node, "a secret does not belong in the file; put token: ${env:NAME} under vars, and write ${vars.token} here")
		}
	}
	return a
}

// open makes what keeps the session; nil when there is nothing to add.
func (a *authorization) open(c *Connector, config Config) (*session, error) {
	s := &session{header: a.header, now: c.now, turn: make(chan struct{}, 1)}
	file := c.definition.file
	fixed := func(value string) (*session, error) {
		if !isHeaderValue(value) {
			return nil, mistake(file, a.node, "the header's value is empty or has a control character; mend what it is made of")
		}
		s.obtain = func(context.Context, time.Time, string) (string, time.Time, error) { return value, time.Time{}, nil }
		return s, nil
	}
	switch a.kind {
	case "header":
		value, _, err := a.value.fill(map[string]any{"vars": c.vars})
		if err != nil {
			return nil, mistake(file, a.node, "the header's value cannot be made; mend the expression")
		}
		return fixed(value)
	case "basic":
		user, err := a.user.resolve(file, config.Secrets)
		if err != nil {
			return nil, err
		}
		password, err := a.password.resolve(file, config.Secrets)
		if err != nil {
			return nil, err
		}
		return fixed("Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	case "session":
		s.obtain = func(ctx context.Context, deadline time.Time, _ string) (string, time.Time, error) {
			return a.logIn(ctx, c, deadline)
		}
		return s, nil
	case "oauth2":
		granter, err := a.oauth.open(a, c, config)
		if err != nil {
			return nil, err
		}
		s.obtain = granter.obtain
		return s, nil
	}
	return nil, nil
}

// login describes the request that opens a session.
type login struct {
	request  message
	granted  *expression
	lifetime time.Duration // 0: until the CRM says that it is over
}

func (l *loader) login(n *node) *login {
	in := &login{}
	readers := l.readers(&in.request, nil)
	readers["granted"] = func(n *node) { in.granted = l.expression(n, l.text(n), inAnswer, true) }
	readers["lifetime"] = func(n *node) { in.lifetime = l.duration(n) }
	l.keys(n, readers)
	l.complete(n, &in.request, http.MethodPost)
	if in.granted == nil && l.err == nil {
		l.fail(n, "granted is missing; say which answers open a session")
	}
	return in
}

// logIn opens a session. It makes no lead, so whatever fails here, the create
// was not sent.
func (a *authorization) logIn(ctx context.Context, c *Connector, deadline time.Time) (value string, until time.Time, err error) {
	env := map[string]any{"vars": c.vars}
	r, err := a.login.request.build(c.base, env, deadline)
	if err != nil {
		return "", until, notSent("the login cannot be built: "+err.Error(), 0)
	}
	err = c.send(ctx, r, func(answer httponce.Answer) (verdict, error) {
		answered := withAnswer(env, answer)
		v := verdict{rest: retryAfter(nil, answered, answer, c.now())}
		ok, failed := a.login.granted.truth(answered)
		if failed != nil || !ok {
			return v, notSent(fmt.Sprintf("the login was not granted: HTTP %d", answer.Status), v.rest)
		}
		value, _, failed = a.value.fill(map[string]any{"vars": c.vars, "session": answered})
		if failed != nil || !isHeaderValue(value) {
			return v, notSent(fmt.Sprintf("the login's answer has no session: HTTP %d", answer.Status), v.rest)
		}
		v.healthy = true
		return v, nil
	})
	if a.login.lifetime > 0 {
		until = c.now().Add(a.login.lifetime)
	}
	return value, until, beforehand("login", err)
}

func notSent(reason string, rest time.Duration) error {
	return &crm.Error{Outcome: crm.NotSent, Reason: reason, RetryAfter: rest}
}

// beforehand is the error of a create whose login failed: nothing of the create
// itself has left.
func beforehand(what string, err error) error {
	if err == nil {
		return nil
	}
	failure := crm.Classify(err)
	reason := failure.Reason
	if failure.Outcome != crm.NotSent {
		reason = what + ": " + reason
	}
	return notSent(reason, failure.RetryAfter)
}

// session keeps the header that proves who sends.
type session struct {
	header string
	// obtain makes a value and says until when it is good; zero: until the CRM
	// refuses it. former is the value that was refused, if any.
	obtain func(ctx context.Context, deadline time.Time, former string) (value string, until time.Time, err error)
	now    func() time.Time

	turn   chan struct{} // held by whoever reads or makes the value
	value  string
	former string
	until  time.Time
	number int
}

// authorize adds the header, and makes its value first when there is none. The
// number is that of the session, for end.
func (s *session) authorize(ctx context.Context, r *httponce.Request) (number int, err error) {
	if s == nil {
		return 0, nil
	}
	waiting, cancel := context.WithTimeout(ctx, r.Deadline.Sub(s.now()))
	defer cancel()
	select {
	case s.turn <- struct{}{}:
	case <-waiting.Done():
		return 0, notSent("another request's login took too long", 0)
	}
	defer func() { <-s.turn }()
	if s.value == "" || !s.until.IsZero() && !s.now().Before(s.until) {
		value, until, err := s.obtain(ctx, r.Deadline, s.former)
		if err != nil {
			return 0, err
		}
		s.value, s.until, s.former = value, until, ""
		s.number++
	}
	r.Header.Set(s.header, s.value)
	return s.number, nil
}

// end gives a session up that the CRM refused, unless there is a newer one. A
// fixed header stays what it is.
func (s *session) end(number int) {
	if s == nil {
		return
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.number == number {
		s.value, s.former = "", s.value
	}
}
