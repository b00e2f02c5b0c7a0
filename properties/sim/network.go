package sim

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// network carries a process's requests to the CRM, as httponce.Client does: no
// byte leaves after the deadline, by the process's own clock.
type network struct{ p *process }

func (n *network) Send(ctx context.Context, r httponce.Request) (httponce.Answer, error) {
	if r.Method == http.MethodGet {
		return n.find(ctx, r)
	}
	w := n.p.w
	o := w.crm.op(operationIn(r))
	f := w.await(point{creating, o.step})
	if err := n.unsent(ctx, r, f); err != nil {
		return httponce.Answer{}, err
	}
	n.leaves()
	w.requested(o, r.Deadline.Add(-n.p.skew))
	number := len(o.requests) - 1
	answer, proof := w.crm.create(o, f, o.requests[number].deadline, r.Header.Get("Idempotency-Key"))
	o.requests[number].proof = proof
	o.refusals = o.refusals || answer.Status == http.StatusUnprocessableEntity
	if w.await(point{port: created}) == AnswerLost || ctx.Err() != nil {
		w.unanswered(o, number)
		return httponce.Answer{}, n.lost(ctx, "time-out")
	}
	if answer.Status == 0 {
		return httponce.Answer{}, n.lost(ctx, "connection closed")
	}
	n.heed(answer, behaviours[f].truth || proof)
	if n.p.now().After(r.Deadline) {
		w.cover.hit(lateAnswer)
	}
	return answer, nil
}

// heed notes how the CRM is, and that it asks to be left alone.
func (n *network) heed(a httponce.Answer, known bool) {
	if known {
		n.answered()
	} else {
		n.failed()
	}
	if a.Header == nil {
		return
	}
	if wait := httponce.RetryAfter(a.Header, n.p.now()); wait > 0 {
		n.p.w.current.asked = n.p.w.now.Add(min(wait, retryMax))
	}
}

// unsent says why the request does not leave.
func (n *network) unsent(ctx context.Context, r httponce.Request, f Fault) error {
	notSent := func(why string) error { return &crm.Error{Outcome: crm.NotSent, Reason: why} }
	switch {
	case ctx.Err() != nil:
		return notSent("cancelled")
	case !n.p.now().Before(r.Deadline):
		return notSent("the deadline was over")
	case f == NotConnected:
		n.failed()
		return notSent("connection refused")
	default:
		return nil
	}
}

// lost is the error of a request without an answer. When the process was told to end,
// that says nothing of the CRM.
func (n *network) lost(ctx context.Context, why string) error {
	if ctx.Err() == nil {
		n.failed()
	}
	return &crm.Error{Outcome: crm.Unknown, Reason: why}
}

func (n *network) find(ctx context.Context, r httponce.Request) (httponce.Answer, error) {
	w := n.p.w
	_, operation, _ := strings.Cut(r.URL.RawQuery, "external_id=")
	f := w.await(point{finding, w.crm.op(operation).step})
	if err := n.unsent(ctx, r, f); err != nil {
		return httponce.Answer{}, err
	}
	n.leaves()
	w.looked(operation)
	answer := w.crm.find(operation, f)
	if w.await(point{port: found}) == AnswerLost || ctx.Err() != nil {
		return httponce.Answer{}, n.lost(ctx, "time-out")
	}
	if answer.Status == 0 {
		return httponce.Answer{}, n.lost(ctx, "connection closed")
	}
	n.heed(answer, f == None || f == LookupLags || answer.Status == http.StatusTooManyRequests)
	w.heard(operation, answer.Body, f)
	return answer, nil
}

// operationIn is the operation_id that a create bears.
func operationIn(r httponce.Request) string {
	if r.Method == http.MethodPut {
		return r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	}
	_, rest, _ := strings.Cut(string(r.Body), `"external_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// witnessed is the connector, and the judge beside it.
type witnessed struct {
	crm.Connector
	w *world
}

func (c *witnessed) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	c.w.judgeContent(op)
	c.w.enters()
	r, err := c.Connector.Create(ctx, op)
	c.w.held(err)
	if err == nil && r.CRMID != "" {
		c.w.told(op.ID, r.CRMID)
	}
	return r, err
}

func (c *witnessed) Find(ctx context.Context, operation string, deadline time.Time) ([]crm.Receipt, error) {
	c.w.enters()
	receipts, err := c.Connector.Find(ctx, operation, deadline)
	c.w.held(err)
	return receipts, err
}

// timing is when a fault lets the effect happen.
type timing uint8

const (
	never timing = iota
	atOnce
	later
	twice
	twiceLater
)

// behaviour is what a fault does to a create, and what the client sees instead of
// the truth. A status of 0 is a connection that closes.
type behaviour struct {
	effect timing
	truth  bool
	status int
	body   string
	proof  bool // what is seen proves that nothing was made
}

const (
	failed   = `{"error":{"code":"internal"}}`
	limited  = `{"error":{"code":"rate_limited"}}`
	aPage    = "<!doctype html><title>Sign in</title><p>Please sign in to continue.</p>\n"
	anOK     = `{"status":"ok"}`
	notDone  = `{"error":{"code":"not_executed"}}`
	invalid  = `{"error":{"code":"validation"}}`
	anError  = `{"error":{"code":"bad_request"}}`
	accepted = `{"status":"accepted"}`
)

var behaviours = [faults]behaviour{
	None:              {effect: atOnce, truth: true},
	CutBefore:         {},
	CutAfter:          {effect: atOnce},
	EffectLate:        {effect: later},
	RateLimited:       {status: 429, body: limited, proof: true},
	RateLimitedDate:   {status: 429, body: limited, proof: true},
	RateLimitedAbsent: {status: 429, body: limited, proof: true},
	RateLimitedPast:   {status: 429, body: limited, proof: true},
	RateLimitedFar:    {status: 429, body: limited, proof: true},
	ErrorBefore:       {status: 500, body: failed},
	ErrorAfter:        {effect: atOnce, status: 500, body: failed},
	NotExecuted:       {status: 503, body: notDone, proof: true},
	UnavailableBefore: {status: 503},
	UnavailableAfter:  {effect: atOnce, status: 503},
	WithoutID:         {effect: atOnce, status: 200, body: anOK},
	ErrorInside:       {status: 200, body: failed},
	ErrorInsideAfter:  {effect: atOnce, status: 200, body: failed},
	HTMLBefore:        {status: 200, body: aPage},
	HTMLAfter:         {effect: atOnce, status: 200, body: aPage},
	BadRequestAfter:   {effect: atOnce, status: 400, body: anError},
	AcceptedLater:     {effect: later, status: 202, body: accepted},
	LoginRedirect:     {status: 302},
	RefusedNow:        {status: 422, body: invalid, proof: true},
	Duplicated:        {effect: twice, truth: true},
	DuplicatedLate:    {effect: twiceLater, truth: true},
}

// create lets the request take effect as the fault wants it. proof says that the
// answer proves that there was none.
func (c *simulatedCRM) create(o *operated, f Fault, deadline time.Time, key string) (answer httponce.Answer, proof bool) {
	b := behaviours[f]
	if b.effect == never {
		return c.dressed(f, httponce.Answer{Status: b.status, Body: []byte(b.body)}), b.proof
	}
	truth := c.carryOut(o, b.effect, deadline, key)
	if b.truth {
		return truth.answer(), truth.code == "validation"
	}
	return httponce.Answer{Status: b.status, Body: []byte(b.body)}, false
}

func (c *simulatedCRM) carryOut(o *operated, effect timing, deadline time.Time, key string) reply {
	if c.refused[o.id] {
		return reply{422, "", "validation"}
	}
	arrivesBy := deadline.Add(settle - indexLag)
	known, settled := c.reserve(o, key)
	switch {
	case settled:
		return known
	case effect == later:
		c.late = append(c.late, lateEffect{o.id, arrivesBy})
		return reply{202, "", ""}
	}
	first := c.apply(o)
	switch {
	case effect == twice && o.class == crm.IdempotencyKey:
		return reply{201, first.id, "replayed"} // the answer to the second one
	case effect == twice:
		return c.apply(o)
	case effect == twiceLater && o.class != crm.IdempotencyKey: // a key settles the second one
		c.late = append(c.late, lateEffect{o.id, arrivesBy})
	}
	return first
}

// dressed is the answer with the header that the fault adds.
func (c *simulatedCRM) dressed(f Fault, a httponce.Answer) httponce.Answer {
	var value string
	switch f {
	case RateLimited:
		value = "5"
	case RateLimitedDate:
		value = c.w.now.Add(5 * time.Second).UTC().Format(http.TimeFormat)
	case RateLimitedPast:
		value = c.w.now.Add(-time.Hour).UTC().Format(http.TimeFormat)
	case RateLimitedFar:
		value = c.w.now.Add(365 * 24 * time.Hour).UTC().Format(http.TimeFormat)
	default:
		return a
	}
	a.Header = http.Header{"Retry-After": {value}}
	return a
}

var replayed = http.Header{"Idempotency-Replayed": {"true"}}

func (r reply) answer() httponce.Answer {
	switch {
	case r.code == "replayed":
		return httponce.Answer{Status: r.status, Header: replayed, Body: []byte(`{"id":"` + r.id + `"}`)}
	case r.code != "":
		a := `{"error":{"code":"` + r.code + `"}`
		if r.id != "" {
			a += `,"id":"` + r.id + `"`
		}
		return httponce.Answer{Status: r.status, Body: []byte(a + "}")}
	default:
		return httponce.Answer{Status: r.status, Body: []byte(`{"id":"` + r.id + `"}`)}
	}
}

// find answers a lookup.
func (c *simulatedCRM) find(operation string, f Fault) httponce.Answer {
	if f != None && f != LookupLags {
		b := behaviours[f]
		return c.dressed(f, httponce.Answer{Status: b.status, Body: []byte(b.body)})
	}
	list := ""
	for _, l := range c.op(operation).leads {
		if f == LookupLags && c.w.now.Before(l.at.Add(indexLag)) {
			continue
		}
		if list != "" {
			list += ","
		}
		list += `{"id":"` + l.id + `","external_id":"` + operation + `"}`
	}
	return httponce.Answer{Status: 200, Body: []byte(`{"leads":[` + list + `]}`)}
}
