package restcrm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

const (
	bot          = 42
	crmsimSettle = 30 * time.Second // as the description says
)

// patient is a policy under which nothing is given up by the case itself. Only
// CallTimeout passes in real time too.
var patient = job.Policy{
	MaxAttempts: 6, RetryFirst: time.Second, RetryMax: time.Minute,
	Lease: 30 * time.Second, CallTimeout: 10 * time.Second, ClockSkew: time.Second,
}

// world is the engine over a log in memory, with the connector and a CRM behind
// a socket, on one clock.
type world struct {
	t       testing.TB
	clock   *clock
	log     *memory.Log
	crm     *sim.Server
	engine  *engine.Engine
	agenda  *engine.Agenda
	fields  map[string]string // of every lead, beside those of the update
	refused atomic.Bool       // connections are refused
	choose  func(sim.Op) sim.Fault
}

// setup is what a world is made of; zero fields have their defaults.
type setup struct {
	class  crm.Class
	policy job.Policy
	config sim.Config
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	wrap   func(crm.Connector) crm.Connector
	serve  func(testing.TB, http.Handler) (url string)
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, clock: newClock(), log: memory.New(), agenda: engine.NewAgenda()}
	s.config.Class, s.config.Now, s.config.After = sim.Class(s.class), w.clock.Now, w.clock.After
	if s.policy == (job.Policy{}) {
		s.policy = patient
	}
	if s.serve == nil {
		s.serve = overTCP
	}
	if s.dial == nil {
		s.dial = (&net.Dialer{}).DialContext
	}
	var err error
	if w.crm, err = sim.New(s.config); err != nil {
		t.Fatal(err)
	}
	url := s.serve(t, w)
	t.Cleanup(func() {
		if err := w.crm.Close(); err != nil {
			t.Error(err)
		}
	})
	port := w.connect(s, url)
	w.engine, err = engine.New(engine.Config{
		Log: w.log, CRM: port, Clock: w.clock, IDs: new(counter), Observer: observer{t},
		Plan: w.plan, Policy: s.policy, Worker: "w1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// crmsimDefinition is read once, for worlds by the thousand.
var crmsimDefinition = sync.OnceValues(func() (*restcrm.Definition, error) { return restcrm.LoadShipped("crmsim") })

// connect makes the connector, on the world's clock.
func (w *world) connect(s setup, url string) crm.Connector {
	client := &httponce.Client{Now: w.clock.Now, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if w.refused.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return s.dial(ctx, network, address)
	}}
	definition, err := crmsimDefinition()
	if err != nil {
		w.t.Fatal(err)
	}
	connector, err := restcrm.New(definition, restcrm.Config{
		BaseURL: url, Class: s.class, Sender: client, Now: w.clock.Now, Sleep: w.clock.Sleep,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if s.wrap != nil {
		return s.wrap(connector)
	}
	return connector
}

func overTCP(t testing.TB, handler http.Handler) string {
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return web.URL
}

// ServeHTTP is the CRM, told which fault to meet the request with.
func (w *world) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	op := sim.Create
	if in.Method == http.MethodGet {
		op = sim.Find
	}
	w.clock.arrived(op)
	if w.choose != nil {
		in.Header.Set("X-Crmsim-Fault", string(w.choose(op)))
	}
	w.crm.ServeHTTP(out, in)
}

func (w *world) plan(key job.Key, u job.Update) job.Plan {
	plan := job.DefaultPlan(key, u)
	maps.Copy(plan.Fields, w.fields)
	return plan
}

// script is what the CRM meets the next creates and, if it has any, finds with.
func (w *world) script(creates []sim.Fault, finds ...sim.Fault) {
	w.t.Helper()
	if !w.engine.CRM.Describe().CanFind {
		finds = nil
	}
	if err := w.crm.SetScript(sim.Script{Creates: creates, Finds: finds}); err != nil {
		w.t.Fatal(err)
	}
}

// deliver is one delivery of the update.
func (w *world) deliver(id int64) (job.Key, engine.Acceptance) {
	w.t.Helper()
	raw := fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":%d,"chat":{"id":5},"from":{"id":7,"first_name":"Ada"},"text":"hello"}}`, id, id)
	u, err := job.ParseUpdate(bot, raw)
	if err != nil {
		w.t.Fatal(err)
	}
	key, acceptance, err := w.engine.Accept(w.t.Context(), u)
	if err != nil {
		w.t.Fatal(err)
	}
	return key, acceptance
}

// advance takes the job one step on.
func (w *world) advance(key job.Key) engine.Verdict {
	w.t.Helper()
	v, err := w.engine.Advance(w.t.Context(), key.Stream())
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle()
	return v
}

// pass lets time go by, and late effects happen at their time.
func (w *world) pass(d time.Duration) { w.passTo(w.clock.Now().Add(d)) }

func (w *world) passTo(at time.Time) {
	for !w.clock.step(at) {
		w.settle()
	}
}

// settle waits until the CRM stands still: each late effect that has not
// happened waits for the clock.
func (w *world) settle() {
	for {
		waiting, grown := w.clock.lateEffects()
		pending := w.crm.Stats().Pending
		switch {
		case pending == waiting:
			return
		case pending < waiting:
			w.t.Fatalf("%d late effects, but %d wait for the clock", pending, waiting)
		}
		ctx, cancel := context.WithCancel(w.t.Context())
		go func() { <-grown; cancel() }()
		_ = w.crm.Wait(ctx, func(s sim.Stats) bool { return s.Pending <= waiting })
		cancel()
		w.clock.wake()
	}
}

// maxSteps is more than any case takes.
const maxSteps = 20_000

// run works off what is due, lets time pass to what is due next, and returns
// when no job is left but for a human.
func (w *world) run() { w.runUntil(func() bool { return false }) }

func (w *world) runUntil(enough func() bool) {
	w.t.Helper()
	for range maxSteps {
		w.sweep()
		stream, ok := w.agenda.Next(w.clock.Now())
		if ok {
			v, err := w.engine.Advance(w.t.Context(), stream)
			if err != nil {
				w.t.Fatal(err)
			}
			w.settle()
			w.sweep()
			w.agenda.Done(stream, v)
			if enough() {
				return
			}
			continue
		}
		due, any := w.agenda.NextDue()
		if !any {
			return
		}
		w.passTo(due)
	}
	w.t.Fatal("the jobs never end")
}

func (w *world) sweep() {
	if err := w.agenda.Sweep(w.t.Context(), w.log, nil); err != nil {
		w.t.Fatal(err)
	}
}

// state is the job as its stream tells it.
func (w *world) state(key job.Key) job.State {
	w.t.Helper()
	s, err := engine.Load(w.t.Context(), w.log, key.Stream())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// events are the names of the job's events.
func (w *world) events(key job.Key) (names []string) {
	w.t.Helper()
	for r, err := range w.log.ReadStream(w.t.Context(), key.Stream(), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		event, err := job.Decode(r.Type, r.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		names = append(names, event.Name())
	}
	return names
}

func (w *world) creates(key job.Key) int {
	return w.crm.Totals()[operationID(key)].Creates
}

func (w *world) finds(key job.Key) int { return w.crm.Totals()[operationID(key)].Finds }

func operationID(key job.Key) string { return job.OperationID(bot, job.CreateLead, key.String()) }

// effects are the ids of the operation's leads.
func (w *world) effects(key job.Key) (ids []string) {
	for _, e := range w.crm.Effects() {
		if e.ExternalID == operationID(key) {
			ids = append(ids, e.CRMID)
		}
	}
	return ids
}

// wantDone: the job is done, and its lead is the only one.
func (w *world) wantDone(key job.Key, how ...job.Confirmation) {
	w.t.Helper()
	s := w.state(key)
	if effects := w.effects(key); s.Phase != job.Done || !slices.Equal(effects, []string{s.CRMID}) {
		w.t.Fatalf("%s with lead %q, last error %q; leads %v, events %v", s.Phase, s.CRMID, s.LastError, effects, w.events(key))
	}
	if len(how) > 0 && !slices.Contains(how, s.How) {
		w.t.Fatalf("confirmed by %q, want one of %q; events %v", s.How, how, w.events(key))
	}
}

// wantHuman: the job waits for a person, after one request that is never
// repeated.
func (w *world) wantHuman(key job.Key) {
	w.t.Helper()
	w.advance(key)
	if s := w.state(key); s.Phase != job.NeedsReconciliation || !s.Human || w.creates(key) != 1 {
		w.t.Fatalf("%s, human %t, %d creates; events %v", s.Phase, s.Human, w.creates(key), w.events(key))
	}
}

// wantOne is the end of an ambiguous create: one lead, or a human where the CRM
// gives nothing to find out by.
func (w *world) wantOne(class crm.Class, key job.Key) {
	w.t.Helper()
	if class == crm.None {
		w.wantHuman(key)
		return
	}
	w.wantDone(key)
	if class == crm.Lookup && !slices.Contains(w.events(key), "ReconciliationNeeded") {
		w.t.Fatalf("an ambiguous create was not reconciled: %v", w.events(key))
	}
}

func (w *world) wantCounts(key job.Key, creates, finds int) {
	w.t.Helper()
	if c, f := w.creates(key), w.finds(key); c != creates || f != finds {
		w.t.Fatalf("%d creates and %d finds on the wire, want %d and %d; events %v", c, f, creates, finds, w.events(key))
	}
}

func forEveryClass(t *testing.T, test func(t *testing.T, class crm.Class)) {
	for _, class := range crm.Classes {
		t.Run(string(class), func(t *testing.T) { t.Parallel(); test(t, class) })
	}
}

// counter makes ids that are the same in every run; their last bytes, which the
// engine takes for chance, are spread.
type counter struct{ n atomic.Uint64 }

func (c *counter) New() (id eventlog.EventID) {
	n := c.n.Add(1)
	binary.BigEndian.PutUint64(id[:8], n)
	binary.BigEndian.PutUint64(id[8:], n*0x9e3779b97f4a7c15)
	return id
}

// observer fails the test when the engine has trouble.
type observer struct{ t testing.TB }

func (observer) Recorded(job.State, []job.Event)                             {}
func (observer) Called(job.State, engine.Request, time.Duration, *crm.Error) {}
func (o observer) Troubled(stream string, err error)                         { o.t.Errorf("%s: %v", stream, err) }

// pipes is a network in memory, for worlds by the thousand.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, errors.New("the network is closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
