package restcrm

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm/httponce"
)

const (
	clientCredentials = "client_credentials"
	refreshToken      = "refresh_token"
)

// oauth describes how access tokens are got: RFC 6749, 4.4 and 6.
type oauth struct {
	grant    string
	client   string // where the client proves itself: body or basic
	tokenURL *template
	id       *template
	secret   *template
	refresh  *template // the first refresh token; the newer ones are in the store
	scope    *template
	form     map[string]*template // further parameters
}

func (l *loader) oauthReaders(o *oauth) map[string]func(*node) {
	hidden := func(into **template) func(*node) {
		return func(n *node) { *into = l.setting(n); l.secret(*into) }
	}
	plain := func(into **template) func(*node) {
		return func(n *node) { *into = l.setting(n) }
	}
	return map[string]func(*node){
		"grant":         func(n *node) { o.grant = l.text(n) },
		"client":        func(n *node) { o.client = l.text(n) },
		"token_url":     plain(&o.tokenURL),
		"client_id":     plain(&o.id),
		"client_secret": hidden(&o.secret),
		"refresh_token": hidden(&o.refresh),
		"scope":         plain(&o.scope),
		"form": func(n *node) {
			o.form = map[string]*template{}
			for _, m := range n.members {
				o.form[m.name] = l.setting(m.value)
			}
		},
	}
}

func (l *loader) checkOAuth(n *node, o *oauth) {
	if o.client == "" {
		o.client = "body"
	}
	switch {
	case o.grant != clientCredentials && o.grant != refreshToken:
		l.fail(n, "grant is none that there is; give %s or %s", clientCredentials, refreshToken)
	case o.tokenURL == nil || o.id == nil || o.secret == nil:
		l.fail(n, "token_url, client_id and client_secret are needed; give all three")
	case (o.refresh != nil) != (o.grant == refreshToken):
		l.fail(n, "refresh_token belongs to the grant %s and is needed there; leave it out, or give it", refreshToken)
	case o.client != "body" && o.client != "basic":
		l.fail(n, "client is none that there is; give body or basic")
	}
}

// granter gets tokens. It is used by one goroutine at a time: session sees to it.
type granter struct {
	*oauth
	authorization *authorization
	connector     *Connector
	store         Store
	url           *url.URL
	form          url.Values // without the refresh token
	basic         string
	first         string // the refresh token that the file names

	mu      sync.Mutex
	pending *tokens // granted and not yet stored; nothing may use them
}

func (o *oauth) open(a *authorization, c *Connector, config Config) (*granter, error) {
	file := c.definition.file
	if o.grant == refreshToken && config.Store == nil {
		return nil, mistake(file, a.node, "the grant refresh_token needs a place to keep new tokens; give the connector a store")
	}
	g := &granter{oauth: o, authorization: a, connector: c, store: config.Store, form: url.Values{"grant_type": {o.grant}}}
	texts := map[string]*template{"client_id": o.id, "client_secret": o.secret, "scope": o.scope, "": o.tokenURL, refreshToken: o.refresh}
	for name, t := range o.form {
		texts[name] = t
	}
	values := map[string]string{}
	for name, t := range texts {
		if t == nil {
			continue
		}
		value, err := t.resolve(file, config.Secrets)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	var err error
	if g.url, err = tokenAddress(c.base, values[""]); err != nil {
		return nil, mistake(file, o.tokenURL.node, "token_url is no URL; give http[s]://host/path, or a path that begins with /")
	}
	g.first = values[refreshToken]
	for name, value := range values {
		if name != "" && name != refreshToken && (o.client == "body" || !strings.HasPrefix(name, "client_")) {
			g.form.Set(name, value)
		}
	}
	if o.client == "basic" {
		pair := url.QueryEscape(values["client_id"]) + ":" + url.QueryEscape(values["client_secret"])
		g.basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
	}
	return g, nil
}

func tokenAddress(base *url.URL, s string) (*url.URL, error) {
	if strings.HasPrefix(s, "/") {
		target := *base
		target.Path, target.RawPath, target.User = strings.TrimSuffix(base.Path, "/")+s, "", nil
		return &target, nil
	}
	return parseBase(s)
}

// tokens are what a grant gave, as the store keeps them.
type tokens struct {
	Refresh   string    `json:"refresh_token"`
	Access    string    `json:"access_token"`
	Expires   time.Time `json:"expires,omitzero"`
	BeganWith string    `json:"began_with"` // tells a chain by the token that the file names
}

// chain is a name for the first refresh token that does not tell it.
func chain(first string) string {
	sum := sha256.Sum256([]byte(first))
	return hex.EncodeToString(sum[:8])
}

// obtain gets an access token, and makes the header of it.
func (g *granter) obtain(ctx context.Context, deadline time.Time, former string) (string, time.Time, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, err := g.granted(ctx, deadline, former)
	if err != nil {
		return "", time.Time{}, beforehand("token", err)
	}
	value, err := g.header(t)
	if err != nil {
		return "", time.Time{}, err
	}
	return value, t.Expires, nil
}

func (g *granter) header(t tokens) (string, error) {
	value, _, err := g.authorization.value.fill(map[string]any{"vars": g.connector.vars, "token": t.Access})
	if err != nil || !isHeaderValue(value) {
		return "", notSent("the access token cannot stand in a header", 0)
	}
	return value, nil
}

func (g *granter) granted(ctx context.Context, deadline time.Time, former string) (tokens, error) {
	if g.grant == clientCredentials {
		return g.ask(ctx, deadline, "")
	}
	held, err := g.held()
	if err != nil {
		return tokens{}, err
	}
	if value, err := g.header(held); err == nil && held.Access != "" && value != former && g.connector.now().Before(held.Expires) {
		return held, nil // of another process, or of this one before it was restarted
	}
	fresh, err := g.ask(ctx, deadline, held.Refresh)
	if err != nil {
		// Another process may have used the token in between.
		if newer, unread := g.held(); unread == nil && newer.Refresh != held.Refresh {
			fresh, err = g.ask(ctx, deadline, newer.Refresh)
			held = newer
		}
	}
	if err != nil {
		return tokens{}, err
	}
	if fresh.Refresh == "" {
		fresh.Refresh = held.Refresh
	}
	fresh.BeganWith = chain(g.first)
	g.pending = &fresh
	if err := g.keep(); err != nil {
		return tokens{}, err
	}
	return fresh, nil
}

// held are the newest tokens. Those that could not be stored are stored first.
func (g *granter) held() (tokens, error) {
	if err := g.keep(); err != nil {
		return tokens{}, err
	}
	start := tokens{Refresh: g.first, BeganWith: chain(g.first)}
	text, err := g.store.Load(g.connector.definition.name)
	if err != nil {
		return tokens{}, notSent("the stored tokens cannot be read", 0)
	}
	var held tokens
	if text == nil {
		return start, nil
	}
	if json.Unmarshal(text, &held) != nil || held.Refresh == "" {
		return tokens{}, notSent("the stored tokens cannot be read", 0)
	}
	if held.BeganWith != start.BeganWith {
		return start, nil // a person authorized the client anew
	}
	return held, nil
}

// keep stores what was granted. A refresh token that is good for one use is lost
// with the process otherwise, so nothing is used before.
func (g *granter) keep() error {
	if g.pending == nil {
		return nil
	}
	text, err := json.Marshal(g.pending)
	if err == nil {
		err = g.store.Save(g.connector.definition.name, text)
	}
	if err != nil {
		return notSent("the new refresh token cannot be stored, so it is not used", 0)
	}
	g.pending = nil
	return nil
}

// ask sends the token request.
func (g *granter) ask(ctx context.Context, deadline time.Time, refresh string) (t tokens, err error) {
	form := url.Values{}
	for name, values := range g.form {
		form[name] = slices.Clone(values)
	}
	if refresh != "" {
		form.Set(refreshToken, refresh)
	}
	r := httponce.Request{
		Method: http.MethodPost, URL: g.url, Body: []byte(form.Encode()), Deadline: deadline,
		Header: http.Header{
			"User-Agent": {"leadonce"}, "Accept": {"application/json"}, "Content-Type": {"application/x-www-form-urlencoded"},
		},
	}
	if g.basic != "" {
		r.Header.Set("Authorization", g.basic)
	}
	now := g.connector.now
	err = g.connector.send(ctx, r, func(a httponce.Answer) (verdict, error) {
		v := verdict{rest: retryAfter(nil, nil, a, now())}
		body := parseJSON(a.Body)
		access, _ := step(body, "access_token").(string)
		if a.Status != http.StatusOK || access == "" {
			return v, notSent(fmt.Sprintf("no access token was granted: HTTP %d%s", a.Status, oauthCode(body)), v.rest)
		}
		t.Access = access
		t.Refresh, _ = step(body, refreshToken).(string)
		if seconds, err := toInt(step(body, "expires_in")); err == nil && seconds > 0 {
			life := time.Duration(min(seconds, 1<<30)) * time.Second
			t.Expires = now().Add(life - min(time.Minute, life/10))
		}
		v.healthy = true
		return v, nil
	})
	return t, err
}

// oauthCodes are those of RFC 6749, 5.2; any other is text from anywhere.
var oauthCodes = []string{
	"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
}

func oauthCode(body any) string {
	if code, _ := step(body, "error").(string); slices.Contains(oauthCodes, code) {
		return " " + code
	}
	return ""
}
