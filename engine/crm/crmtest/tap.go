package crmtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// tap is the wire of a certification: it stands in front of a CRM that has no other
// witness, and tells the requests that can make a lead by the key in them.
type tap struct {
	wire *wire

	mu      sync.Mutex
	key     string // of the create under way; "" while there is none
	literal bool   // creates bear the key as it is
	seen    []string
}

// elsewhere is a CRM that shows its leads to nobody.
type elsewhere string

func (e elsewhere) URL() string { return string(e) }

func (e elsewhere) Leads(context.Context, string) ([]string, error) {
	return nil, errors.New("nobody but the connector can see the leads")
}

func openTap(c Candidate) (*tap, error) {
	t := &tap{}
	subject := Subject{
		Sandbox: elsewhere(c.URL), IsCreate: t.isCreate, Patience: c.Patience, Fields: c.Fields,
	}
	var err error
	t.wire, err = openWire(subject)
	return t, err
}

func (t *tap) close() { t.wire.close() }

// begin and end stand around creates with one key.
func (t *tap) begin(key string, onCreate reaction) {
	t.mu.Lock()
	t.key, t.seen = key, nil
	t.mu.Unlock()
	t.wire.answered.Store(0)
	t.wire.react(onCreate, pass)
}

// status is that of the newest answer since begin; 0 while there is none.
func (t *tap) status() int { return int(t.wire.answered.Load()) }

func (t *tap) end() (requests []string) {
	t.wire.react(pass, pass)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.key = ""
	return t.seen
}

func (t *tap) bearsKey() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.literal
}

// isCreate reports whether the request comes from a create and is not its login: it
// bears the key. A connector whose creates do not, because they bear what is made
// of the key, is told by the method.
func (t *tap) isCreate(in *http.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.key == "" {
		return false
	}
	text := textOf(in)
	t.literal = t.literal || strings.Contains(text, t.key)
	if t.literal && !strings.Contains(text, t.key) || !t.literal && (in.Method == http.MethodGet || in.Method == http.MethodHead) {
		return false
	}
	t.seen = append(t.seen, text)
	return true
}

// textOf is what a request says, in an order that is always the same. The body is
// read, and put back.
func textOf(in *http.Request) string {
	body, err := io.ReadAll(in.Body)
	if err != nil { // the client is gone: forwarding fails too
		body = nil
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	var b strings.Builder
	query, _ := url.QueryUnescape(in.URL.RawQuery)
	b.WriteString(in.Method + " " + in.URL.Path + "?" + query + "\n")
	for _, name := range slices.Sorted(maps.Keys(in.Header)) {
		b.WriteString(name + ": " + strings.Join(in.Header[name], ", ") + "\n")
	}
	b.Write(body)
	return b.String()
}

// once lets the first request meet the reaction, and the others pass.
func once(r reaction) reaction {
	var first sync.Once
	return func(w *wire, out http.ResponseWriter, in *http.Request) {
		react := pass
		first.Do(func() { react = r })
		react(w, out, in)
	}
}

// kept is an answer of the CRM that was cut, and can be given late.
type kept struct {
	mu     sync.Mutex
	there  bool
	status int
	header http.Header
	body   []byte
}

// cut lets the CRM answer and drops the answer.
func (k *kept) cut(w *wire, out http.ResponseWriter, in *http.Request) {
	status, header, body, err := w.forward(in)
	if err == nil {
		k.mu.Lock()
		k.there, k.status, k.header, k.body = true, status, header, body
		k.mu.Unlock()
	}
	HangUp(out, false)
}

func (k *kept) isThere() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.there
}

// late gives the answer that was cut, and asks nobody.
func (k *kept) late(_ *wire, out http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	Relay(out, k.status, k.header, k.body)
}

// gathering holds requests back until so many are there, or no more come, and lets
// them go together.
type gathering struct {
	want    int
	release chan struct{}

	mu       sync.Mutex
	there    int
	together int // those that were let go together
	first    time.Time
	giveUp   *time.Timer
}

func newGathering(want int) *gathering {
	g := &gathering{want: want, release: make(chan struct{})}
	g.giveUp = time.AfterFunc(time.Hour, g.letGo) // the first that comes sets it
	return g
}

// A connector that keeps to a rate sends one at a time: the rest is waited for while
// they come, and not for so long that the first one's time is over.
const (
	nextWithin = 2 * time.Second
	allWithin  = 8 * time.Second
)

func (g *gathering) letGo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.together == 0 {
		g.together = g.there
		close(g.release)
	}
}

// arrive reports whether everybody is there.
func (g *gathering) arrive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.there++; g.there == 1 {
		g.first = time.Now()
	}
	g.giveUp.Reset(min(nextWithin, time.Until(g.first.Add(allWithin))))
	return g.there == g.want
}

// end returns how many went together.
func (g *gathering) end() int {
	g.giveUp.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.together
}

func (g *gathering) pass(w *wire, out http.ResponseWriter, in *http.Request) {
	if g.arrive() {
		g.letGo()
	}
	select {
	case <-g.release:
	case <-w.stopped:
	}
	pass(w, out, in)
}
