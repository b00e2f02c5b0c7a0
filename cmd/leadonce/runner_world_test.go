package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

// desk is a runner over the memory log and a CRM that is a function.
type desk struct {
	t      *testing.T
	log    *watchedLog
	crm    *scriptedCRM
	seen   *recorder
	engine *engine.Engine
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	b := &desk{t: t, log: &watchedLog{Log: memory.New()}, crm: &scriptedCRM{}, seen: &recorder{}}
	e, err := engine.New(engine.Config{
		Log: b.log, CRM: b.crm, Clock: systemClock{}, IDs: randomIDs{}, Observer: b.seen,
		Plan: job.DefaultPlan, Policy: defaultConfig().policy(), Worker: "desk",
	})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = e
	return b
}

func (b *desk) accept(id int64) string {
	b.t.Helper()
	u, err := job.ParseUpdate(1, message(id))
	if err != nil {
		b.t.Fatal(err)
	}
	key, _, err := b.engine.Accept(b.t.Context(), u)
	if err != nil {
		b.t.Fatal(err)
	}
	return key.Stream()
}

func (b *desk) state(stream string) job.State {
	b.t.Helper()
	s, err := engine.Load(context.Background(), b.log.Log, stream)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// running is a runner at work.
type runningRunner struct {
	*runner
	stop, cut func()
	done      chan struct{}
}

func (b *desk) run(workers int, snapshot string) runningRunner {
	ctx, stop := context.WithCancel(context.Background())
	calls, cut := context.WithCancel(context.Background())
	r := runningRunner{newRunner(b.engine, b.seen, workers, snapshot, func(int) {}), stop, cut, make(chan struct{})}
	go func() {
		r.Run(ctx, calls)
		close(r.done)
	}()
	b.t.Cleanup(func() { stop(); cut(); <-r.done })
	return r
}

// scriptedCRM makes a lead for everything unless create says otherwise.
type scriptedCRM struct {
	create func(ctx context.Context, text string) error

	mu    sync.Mutex
	calls map[string]int // at the moment, by operation
	most  int            // calls at the same time, of one operation
	leads atomic.Int64
}

func (*scriptedCRM) Describe() crm.Description {
	return crm.Description{Name: "scripted", Class: crm.UniqueCreate, CanFind: true, Settle: time.Second}
}

func (c *scriptedCRM) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	defer c.enter(op.ID)()
	if c.create != nil {
		if err := c.create(ctx, op.Fields["text"]); err != nil {
			return crm.Receipt{}, err
		}
	}
	return crm.Receipt{CRMID: fmt.Sprintf("L-%d", c.leads.Add(1))}, nil
}

func (c *scriptedCRM) enter(id string) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[id]++
	c.most = max(c.most, c.calls[id])
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[id]--
	}
}

func (*scriptedCRM) Find(context.Context, string, time.Time) ([]crm.Receipt, error) { return nil, nil }

// watchedLog counts sweeps, and may fail them.
type watchedLog struct {
	eventlog.Log
	sweeps  atomic.Int64
	failing atomic.Bool
	first   atomic.Pointer[eventlog.Position] // from where the first sweep read
}

var errDown = errors.New("the log is down")

func (l *watchedLog) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	l.sweeps.Add(1)
	l.first.CompareAndSwap(nil, &after)
	if l.failing.Load() {
		return func(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, errDown) }
	}
	return l.Log.ReadAll(ctx, after)
}

// replaceable is a log in whose place another one can be put.
type replaceable struct{ at atomic.Pointer[memory.Log] }

func (l *replaceable) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	return l.at.Load().Append(ctx, stream, expected, events...)
}

func (l *replaceable) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return l.at.Load().ReadStream(ctx, stream, from)
}

func (l *replaceable) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return l.at.Load().ReadAll(ctx, after)
}

func (l *replaceable) Subscribe(ctx context.Context, after eventlog.Position, handler eventlog.Handler) error {
	return l.at.Load().Subscribe(ctx, after, handler)
}

func (l *replaceable) Tail(ctx context.Context) (eventlog.Position, error) {
	return l.at.Load().Tail(ctx)
}

// recorder keeps what the observer is told.
type recorder struct {
	mu      sync.Mutex
	trouble []error
}

func (*recorder) Recorded(job.State, []job.Event)                             {}
func (*recorder) Called(job.State, engine.Request, time.Duration, *crm.Error) {}

func (r *recorder) Troubled(_ string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble = append(r.trouble, err)
}

func (r *recorder) troubles() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.trouble...)
}
