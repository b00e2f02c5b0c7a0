package engine_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

var noon = time.Date(2026, 6, 11, 12, 0, 0, 0, time.UTC)

var patient = job.Policy{
	MaxAttempts: 3, RetryFirst: time.Second, RetryMax: time.Minute,
	Lease: 30 * time.Second, CallTimeout: 10 * time.Second, ClockSkew: 30 * time.Second,
}

var operator = job.Signature{By: "ann", Reason: "asked the CRM's people"}

// world is one log, one CRM and one time, and everything that can go wrong with
// them. Each port call passes through at and after.
type world struct {
	store  *memory.Log // as it truly is
	crm    *simulatedCRM
	time   *timeline
	ids    *ids
	seen   *witness
	policy job.Policy
	plan   job.Planner
	steps  []string // that a lead takes, each an operation of its own in the CRM; none: one effect

	faults map[string][]fault  // by point, of the next calls
	then   map[string][]func() // by point, what others do meanwhile

	// interpose, when set, is asked at every point instead of the two maps.
	interpose func(point string) fault
}

func newWorld(class crm.Class) *world {
	w := &world{
		store: memory.New(), time: &timeline{now: noon}, ids: &ids{}, seen: &witness{},
		policy: patient, plan: planPressesToo,
		faults: map[string][]fault{}, then: map[string][]func(){},
	}
	w.crm = newSimulatedCRM(w, class)
	return w
}

// engine is a process of its own, whose clock is ahead by skew.
func (w *world) engine(name string, skew time.Duration) *engine.Engine {
	clock := &clock{w: w, skew: skew}
	e, err := engine.New(engine.Config{
		Log: &faultyLog{w.store, w}, CRM: &stepped{connector{w.crm, clock}, w.steps}, Clock: clock, IDs: w.ids,
		Observer: w.seen, Plan: func(k job.Key, u job.Update) job.Plan { return w.plan(k, u) },
		Policy: w.policy, Worker: name,
	})
	if err != nil {
		panic(err)
	}
	return e
}

// fail makes the next calls at the point fail so.
func (w *world) fail(point string, faults ...fault) {
	w.faults[point] = append(w.faults[point], faults...)
}

// meanwhile lets others act once at the point: "append X" is before the effect,
// "appended X" behind it and before the answer.
func (w *world) meanwhile(point string, act func()) { w.then[point] = append(w.then[point], act) }

func (w *world) at(point string) fault {
	if w.interpose != nil {
		return w.interpose(point)
	}
	if acts := w.then[point]; len(acts) > 0 {
		w.then[point] = acts[1:]
		acts[0]()
	}
	if faults := w.faults[point]; len(faults) > 0 {
		w.faults[point] = faults[1:]
		return faults[0]
	}
	return none
}

// quiet runs act without any fault or interposition.
func (w *world) quiet(act func()) {
	interpose, faults, then := w.interpose, w.faults, w.then
	w.interpose, w.faults, w.then = nil, map[string][]fault{}, map[string][]func(){}
	act()
	w.interpose, w.faults, w.then = interpose, faults, then
}

func (w *world) accept(t testing.TB, u job.Update) job.Key {
	t.Helper()
	key, _, err := w.engine("ingress", 0).Accept(t.Context(), u)
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return key
}

func (w *world) advance(t testing.TB, e *engine.Engine, key job.Key) engine.Verdict {
	t.Helper()
	v, err := e.Advance(t.Context(), key.Stream())
	if err != nil {
		t.Fatalf("advance %s: %v", key, err)
	}
	return v
}

// run lets the engines take the due jobs in turn, and time pass, until no open
// job is left.
func (w *world) run(t testing.TB, engines ...*engine.Engine) *engine.Agenda {
	t.Helper()
	a := engine.NewAgenda()
	if !w.runUntil(a, math.MaxInt64, engines...) {
		t.Fatalf("no end in sight: %+v", a.Backlog())
	}
	return a
}

// runUntil reports whether it ended before the patience, in fake time.
func (w *world) runUntil(a *engine.Agenda, patience time.Duration, engines ...*engine.Engine) bool {
	ctx, end := context.Background(), w.time.Now().Add(patience)
	if patience == math.MaxInt64 {
		end = w.time.Now().AddDate(1, 0, 0)
	}
	sweep := func() {
		if err := a.Sweep(ctx, w.store, nil); err != nil {
			panic(err)
		}
	}
	for step := 0; ; step++ {
		sweep()
		stream, ok := a.Next(w.time.Now())
		if !ok {
			at, ok := a.NextDue()
			if !ok {
				return true
			}
			if at.After(end) || step > 200_000 {
				return false
			}
			w.time.advance(at.Sub(w.time.Now()))
			continue
		}
		v, err := engines[step%len(engines)].Advance(ctx, stream)
		sweep()
		switch {
		case engine.IsStopped(err):
			a.Stop(stream)
			continue
		case err != nil:
			v = engine.Verdict{Schedule: job.DueAt, At: w.time.Now().Add(time.Second), Revision: math.MaxUint64}
		}
		a.Done(stream, v)
	}
}

func (w *world) state(t testing.TB, key job.Key) job.State {
	t.Helper()
	s, err := engine.Load(context.Background(), w.store, key.Stream())
	if err != nil {
		t.Fatalf("load %s: %v", key, err)
	}
	return s
}

// history is the names of the stream's events.
func (w *world) history(stream string) []string {
	var names []string
	for r := range w.store.ReadStream(context.Background(), stream, 0) {
		names = append(names, nameOf(r.Type))
	}
	return names
}

// append records events on the job's stream as another process would.
func (w *world) append(t testing.TB, stream string, events ...job.Event) {
	t.Helper()
	for _, e := range events {
		name, data, err := job.Encode(e)
		if err == nil {
			_, err = w.store.Append(context.Background(), stream, eventlog.Any, eventlog.Proposed{ID: w.ids.New(), Type: name, Time: w.time.Now(), Data: data})
		}
		if err != nil {
			t.Fatalf("append %s: %v", e.Name(), err)
		}
	}
}

// poison records an event that no release knows.
func (w *world) poison(t testing.TB, stream string) {
	t.Helper()
	_, err := w.store.Append(context.Background(), stream, eventlog.Any, eventlog.Proposed{ID: w.ids.New(), Type: "FromTheFuture.v9", Time: w.time.Now()})
	if err != nil {
		t.Fatal(err)
	}
}

func nameOf(wireName string) string {
	name, _, _ := strings.Cut(wireName, ".")
	return name
}

func wantHistory(t testing.TB, w *world, key job.Key, names ...string) {
	t.Helper()
	if got := w.history(key.Stream()); !slices.Equal(got, names) {
		t.Fatalf("history of %s:\n got %v\nwant %v", key, got, names)
	}
}

func wantPhase(t testing.TB, w *world, key job.Key, phase job.Phase) job.State {
	t.Helper()
	s := w.state(t, key)
	if s.Phase != phase {
		t.Fatalf("%s is in %s, want %s: %v", key, s.Phase, phase, w.history(key.Stream()))
	}
	return s
}

const bot = 7

func parse(raw string) job.Update {
	u, err := job.ParseUpdate(bot, []byte(raw))
	if err != nil {
		panic(err)
	}
	return u
}

func message(id int, text string) job.Update {
	return parse(fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"chat":{"id":5},"text":%q}}`, id, id, text))
}

// press is a tap on a button of message 1.
func press(id int, data string) job.Update {
	return parse(fmt.Sprintf(`{"update_id":%d,"callback_query":{"id":"%d","message":{"message_id":1,"chat":{"id":5}},"data":%q}}`, id, id, data))
}

// planPressesToo is the default plan, and a lead for each pressed button.
func planPressesToo(key job.Key, u job.Update) job.Plan {
	if u.Kind != "callback_query" {
		return job.DefaultPlan(key, u)
	}
	business, err := job.BusinessKey(key, u)
	if err != nil {
		return job.Plan{Undecodable: err.Error()}
	}
	return job.Plan{Effect: true, Action: job.CreateLead, BusinessKey: business, Fields: map[string]string{"source": "telegram"}}
}

// timeline is the true time. It stands still, but for advance; or, when it was
// started, it runs speed times as fast as ours.
type timeline struct {
	mu    sync.Mutex
	now   time.Time
	speed int
	began time.Time
}

func (l *timeline) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.speed > 0 {
		return l.now.Add(time.Since(l.began) * time.Duration(l.speed))
	}
	return l.now
}

func (l *timeline) advance(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(max(d, 0))
}

func (l *timeline) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.speed == 0 {
		l.advance(d)
		return nil
	}
	timer := time.NewTimer(d / time.Duration(l.speed))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// clock is one process's view of the time. While it sleeps, time passes.
type clock struct {
	w    *world
	skew time.Duration
}

func (c *clock) Now() time.Time {
	c.w.at("now")
	return c.w.time.Now().Add(c.skew)
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.w.at("sleep")
	return c.w.time.sleep(ctx, d)
}

// ids counts. Its last bytes, from which jitter is drawn, are well mixed.
type ids struct {
	mu sync.Mutex
	n  uint64
}

func (i *ids) New() eventlog.EventID {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n++
	var id eventlog.EventID
	mixed := i.n * 0x9e3779b97f4a7c15
	for b := range 8 {
		id[b], id[8+b] = byte(i.n>>(8*b)), byte(mixed>>(8*b))
	}
	return id
}

// witness is an observer that counts.
type witness struct {
	mu       sync.Mutex
	recorded []string
	called   []string
	troubled []string

	// listener, when set, is told the same.
	listener engine.Observer
}

func (o *witness) Recorded(s job.State, events []job.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listener != nil {
		o.listener.Recorded(s, events)
	}
	for _, e := range events {
		o.recorded = append(o.recorded, e.Name())
	}
}

func (o *witness) Called(s job.State, r engine.Request, took time.Duration, err *crm.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listener != nil {
		o.listener.Called(s, r, took, err)
	}
	said := string(r)
	if err != nil {
		said += ": " + err.Outcome.String()
	}
	o.called = append(o.called, said)
}

func (o *witness) Troubled(stream string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.troubled = append(o.troubled, stream+": "+err.Error())
}
