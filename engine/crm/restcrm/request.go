package restcrm

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// maxRequest is the size in bytes of the largest body that is sent.
const maxRequest = 1 << 20

// message describes a request.
type message struct {
	methods   []string // that it may have
	method    *template
	path      *template
	query     []parameter
	headers   []parameter
	keyHeader *parameter // sent in class idempotency_key only
	body      value      // of JSON; nil for none
	form      []parameter
}

// parameter is a name and its value.
type parameter struct {
	name  string
	value *template
}

func (m *message) uses(name string) bool {
	all := slices.Concat(m.query, m.headers, m.form)
	if m.keyHeader != nil {
		all = append(all, *m.keyHeader)
	}
	return m.path.uses(name) || m.body != nil && m.body.uses(name) ||
		slices.ContainsFunc(all, func(p parameter) bool { return p.value.uses(name) })
}

// readers are the keys of a request whose expressions use these names.
func (l *loader) readers(m *message, has []string) map[string]func(*node) {
	if m.methods == nil {
		m.methods = methods
	}
	return map[string]func(*node){
		"method":  func(n *node) { m.method = l.method(n, m.methods, has) },
		"path":    func(n *node) { m.path = l.path(n, has) },
		"query":   func(n *node) { m.query = l.parameters(n, has) },
		"headers": func(n *node) { m.headers = l.headers(n, has) },
		"body":    func(n *node) { m.body = l.value(n, has) },
		"form":    func(n *node) { m.form = l.parameters(n, has) },
	}
}

// complete fills in what the request does not say.
func (l *loader) complete(n *node, m *message, method string) {
	if m.method == nil {
		m.method = &template{node: n, parts: []part{{text: method}}}
	}
	if m.path == nil {
		l.fail(n, "the path is missing; give one that begins with /")
		m.path = &template{node: n}
	}
	if m.body != nil && m.form != nil {
		l.fail(n, "body and form exclude each other; keep one")
	}
}

// methods are those of a create, a lookup or a login.
var methods = []string{"GET", "POST", "PUT", "PATCH"}

func (l *loader) method(n *node, methods, has []string) *template {
	t := l.template(n, has)
	if s, ok := t.constant(); ok && !slices.Contains(methods, s) {
		l.fail(n, "give one of %s", strings.Join(methods, ", "))
	}
	return t
}

// path refuses what a fixed text may not have; the values of holes are escaped.
func (l *loader) path(n *node, has []string) *template {
	t := l.template(n, has)
	for i, p := range t.parts {
		if p.hole == nil && strings.ContainsAny(p.text, "?#% \\") || i == 0 && !strings.HasPrefix(p.text, "/") {
			l.fail(n, "give a path that begins with / and has no ?, #, %% or space; parameters belong under query")
			break
		}
	}
	return t
}

func (l *loader) parameters(n *node, has []string) []parameter {
	if n.kind != mappingKind {
		l.fail(n, "give a mapping of names and texts")
	}
	list := []parameter{}
	for _, m := range n.members {
		if m.value.kind == mappingKind || m.value.kind == listKind {
			l.fail(m.value, "give a text")
			continue
		}
		list = append(list, parameter{m.name, l.template(m.value, has)})
	}
	return list
}

// reserved are headers that are not the file's to set.
var reserved = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Expect", "Cookie"}

func (l *loader) headers(n *node, has []string) []parameter {
	list := l.parameters(n, has)
	for _, p := range list {
		name := http.CanonicalHeaderKey(p.name)
		switch {
		case !isHeaderName(p.name):
			l.fail(p.value.node, "this is no name of a header; give one such as X-Api-Token")
		case strings.Contains(name, "Idempotency"):
			l.fail(p.value.node, "an idempotency key does not belong here; put it under key_header, which class idempotency_key alone has")
		case name == "Authorization":
			l.fail(p.value.node, "this is how one logs in; use auth")
		case slices.Contains(reserved, name):
			l.fail(p.value.node, "the header is not the file's to set; leave it out")
		}
	}
	return list
}

// keyHeader reads {name: Idempotency-Key, value: "${key}"}, or the name alone.
func (l *loader) keyHeader(n *node) *parameter {
	p := &parameter{value: &template{node: n, parts: []part{{hole: l.expression(n, "key", inRequest, false)}}}}
	if n.kind == scalarKind {
		p.name = l.text(n)
	} else {
		l.keys(n, map[string]func(*node){
			"name":  func(n *node) { p.name = l.text(n) },
			"value": func(n *node) { p.value = l.template(n, inRequest) },
		})
	}
	if !isHeaderName(p.name) {
		l.fail(n, "give the name of a header, such as Idempotency-Key")
	}
	if !p.value.uses("key") {
		l.fail(n, "the value does not come from key, and two operations would share it; write ${key} in it")
	}
	return p
}

var (
	errNoRequest = errors.New("a value cannot stand where the request has it")
	errTooLarge  = errors.New("the request is larger than 1 MiB")
)

// build fills the request. Its error is errNoRequest, errTooLarge or
// errExpression: none has a value in it.
func (m *message) build(base *url.URL, env map[string]any, deadline time.Time) (httponce.Request, error) {
	none := httponce.Request{}
	method, _, err := m.method.fill(env)
	if err != nil || !slices.Contains(m.methods, method) {
		return none, errNoRequest
	}
	target, err := m.address(base, env)
	if err != nil {
		return none, err
	}
	header := http.Header{"User-Agent": {"leadonce"}, "Accept": {"application/json"}}
	body, err := m.content(env, header)
	if err != nil {
		return none, err
	}
	for _, p := range m.headers {
		if err := p.setHeader(header, env); err != nil {
			return none, err
		}
	}
	return httponce.Request{Method: method, URL: target, Header: header, Body: body, Deadline: deadline}, nil
}

func (p parameter) setHeader(header http.Header, env map[string]any) error {
	s, present, err := p.value.fill(env)
	switch {
	case err != nil:
		return err
	case present && !isHeaderValue(s):
		return errNoRequest
	case present:
		header.Set(p.name, s)
	}
	return nil
}

// content is the body, and sets its type.
func (m *message) content(env map[string]any, header http.Header) ([]byte, error) {
	var content []byte
	switch {
	case m.body != nil:
		v, err := m.body.eval(env)
		if err != nil {
			return nil, err
		}
		if content, err = encode(v); err != nil {
			return nil, errNoRequest
		}
		header.Set("Content-Type", "application/json")
	case m.form != nil:
		values, err := fillAll(m.form, env)
		if err != nil {
			return nil, err
		}
		content = []byte(values.Encode())
		header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if len(content) > maxRequest {
		return nil, errTooLarge
	}
	return content, nil
}

func fillAll(list []parameter, env map[string]any) (url.Values, error) {
	values := url.Values{}
	for _, p := range list {
		s, present, err := p.value.fill(env)
		if err != nil {
			return nil, err
		}
		if present {
			values.Add(p.name, s)
		}
	}
	return values, nil
}

// address is the URL. What fills a hole of the path stays within its segment.
func (m *message) address(base *url.URL, env map[string]any) (*url.URL, error) {
	escaped, err := m.path.fillPath(env)
	if err != nil {
		return nil, err
	}
	path, err := url.PathUnescape(escaped)
	if err != nil || slices.ContainsFunc(strings.Split(escaped[1:], "/"), isDots) {
		return nil, errNoRequest
	}
	target := *base
	prefix := strings.TrimSuffix(base.EscapedPath(), "/")
	target.Path, target.RawPath = strings.TrimSuffix(base.Path, "/")+path, prefix+escaped
	values, err := fillAll(m.query, env)
	if err != nil {
		return nil, err
	}
	target.RawQuery = values.Encode()
	return &target, nil
}

// fillPath is fill for a path: a segment that is absent is left out with the
// slash before it.
func (t *template) fillPath(env map[string]any) (string, error) {
	const left = "\x00" // which no value has, for it is escaped
	var out strings.Builder
	for _, p := range t.parts {
		if p.hole == nil {
			out.WriteString(p.text)
			continue
		}
		value, err := p.hole.eval(env)
		if err != nil {
			return "", err
		}
		if _, ok := value.(absence); ok {
			out.WriteString(left)
			continue
		}
		text, err := toText(value)
		if err != nil || text == "" {
			return "", errNoRequest
		}
		out.WriteString(url.PathEscape(text))
	}
	path := strings.ReplaceAll(out.String(), "/"+left, "")
	if strings.Contains(path, left) {
		return "", errNoRequest
	}
	return path, nil
}

// isDots reports whether servers would read the segment as a step.
func isDots(segment string) bool { return segment == "." || segment == ".." }

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$") // RFC 9110, 5.6.2

func isHeaderName(s string) bool { return headerName.MatchString(s) }

// isHeaderValue reports whether a header can say the text: no control character
// may be in it, or it would end the header.
func isHeaderValue(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
