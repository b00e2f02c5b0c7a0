package kurrentdb

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/metadata"
)

// clients are the connections to the server. Each esdb.Client is lent to one
// call, or to one subscription, at a time. That is what makes it safe (H1 to H4):
// a client that has seen Unavailable reconnects by itself when it is next asked for
// its connection, and then either leaks the old one or is dead for good, with
// everyone else hanging in it; closing it makes those panic. With one call in it
// there is nobody else, and it is closed when that call has returned, however
// late that is.
type clients struct {
	config *esdb.Configuration
	notify func(Notice)

	calls   chan struct{} // a token for each call under way
	closing context.Context
	close   context.CancelFunc
	running sync.WaitGroup // calls, subscriptions and dials

	mu       sync.Mutex
	idle     []*link // the newest last
	dialing  *dial   // nil: none
	failures int     // dials in a row
	closed   bool
}

// link is one client with the goroutine in which its calls run. That goroutine
// lives as long as the client: a new one for each call would have to grow its
// stack each time, which is a tenth of a call on a fast server.
type link struct {
	client *esdb.Client
	calls  chan func() // has room for one, since one call at a time has the link
}

func (l *link) work() {
	for f := range l.calls {
		f()
	}
}

// close may be called from within a call of the link, as the last thing that
// is done with it.
func (l *link) close() {
	close(l.calls)
	l.client.Close() // its error is always nil
}

// dial is one attempt to connect. There is one at a time; whoever needs a
// client waits for it, and shares its failure.
type dial struct {
	done chan struct{}
	err  error // behind done
}

func newClients(config *esdb.Configuration, most int, notify func(Notice)) *clients {
	closing, cancel := context.WithCancel(context.Background())
	return &clients{config: config, notify: notify, calls: make(chan struct{}, most), closing: closing, close: cancel}
}

// shut ends every call and waits until the last one has let go of its client.
// That takes longer than a moment only while the client looks for a node that
// does not answer: gossipTimeout of the connection string, 5 s.
func (p *clients) shut() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	p.close()
	closeAll(idle)
	p.running.Wait()
}

func closeAll(list []*link) {
	for _, l := range list {
		l.close()
	}
}

// under is ctx for one use of a client: it ends with the log too, and demands
// the leader. The client's own option for that writes the header where nothing
// sends it (H5).
func (p *clients) under(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "requires-leader", "true"), limit)
	stop := context.AfterFunc(p.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// outcome is what a call ended with.
type outcome[T any] struct {
	value T
	err   error
}

// call runs f with a client of its own, in that client's goroutine: a client can
// hang without regard for the context, and can panic (H2, H3). When ctx ends or the
// limit is over, call returns, and the goroutine keeps the client until f does.
func call[T any](ctx context.Context, p *clients, limit time.Duration, f func(context.Context, *esdb.Client) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, &notSentError{err}
	}
	select {
	case p.calls <- struct{}{}:
	case <-ctx.Done():
		return none, &notSentError{ctx.Err()}
	}
	l, err := p.lend(ctx)
	if err != nil {
		<-p.calls
		return none, err
	}
	under, cancel := p.under(ctx, limit)
	ended := make(chan outcome[T], 1)
	l.calls <- func() {
		defer p.running.Done()
		defer cancel()
		value, err := guarded(under, l.client, f)
		p.giveBack(l, isSpent(ctx, err), err)
		<-p.calls
		ended <- outcome[T]{value, err}
	}
	select {
	case o := <-ended:
		return o.value, o.err
	case <-under.Done():
	}
	select {
	case o := <-ended: // at the same moment
		return o.value, o.err
	default:
	}
	if p.closing.Err() != nil {
		return none, &abandonedError{errClosed}
	}
	return none, &abandonedError{under.Err()}
}

// guarded is f with a panic as an error.
func guarded[T any](ctx context.Context, c *esdb.Client, f func(context.Context, *esdb.Client) (T, error)) (value T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
		}
	}()
	return f(ctx, c)
}

// lend gives out a client that is connected. Its error says that no request
// has left.
func (p *clients) lend(ctx context.Context) (*link, error) {
	for {
		l, d, err := p.take()
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-d.done:
			if d.err != nil {
				return nil, &notSentError{d.err}
			}
		case <-ctx.Done():
			return nil, &notSentError{ctx.Err()}
		}
	}
}

// take is an idle client, which is then running, or the dial to wait for.
func (p *clients) take() (*link, *dial, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, &notSentError{errClosed}
	}
	if n := len(p.idle); n > 0 {
		l := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.running.Add(1)
		return l, nil, nil
	}
	if p.dialing == nil {
		p.dialing = &dial{done: make(chan struct{})}
		p.running.Add(1)
		go p.dial(p.dialing, p.failures)
	}
	return nil, p.dialing, nil
}

// giveBack takes a client back. One that is spent is closed, and with it those
// that lie idle: what broke its connection has most likely broken theirs. The
// caller still counts as running.
func (p *clients) giveBack(l *link, spent bool, why error) {
	var over []*link
	p.mu.Lock()
	if spent {
		over, p.idle = append(p.idle, l), nil
	} else if p.closed {
		over = []*link{l}
	} else {
		p.idle = append(p.idle, l)
	}
	p.mu.Unlock()
	closeAll(over)
	if spent {
		p.notify(Notice{Kind: Dropped, Err: why})
	}
}

func (p *clients) dial(d *dial, failures int) {
	defer p.running.Done()
	pause(p.closing, failures)
	client, err := p.connect()
	p.mu.Lock()
	p.dialing = nil
	switch {
	case err != nil:
		p.failures++
	case p.closed:
		err = errClosed
	default:
		l := &link{client: client, calls: make(chan func(), 1)}
		go l.work()
		p.failures, p.idle, client = 0, append(p.idle, l), nil
	}
	d.err = err
	p.mu.Unlock()
	close(d.done)
	if client != nil {
		client.Close()
	}
	if err == nil {
		p.notify(Notice{Kind: Connected})
	}
}

// connect is a client that has found its node: from here on none of its calls
// looks for one, and so none hangs in that. It takes at most gossipTimeout for
// each node.
func (p *clients) connect() (client *esdb.Client, err error) {
	if err := p.closing.Err(); err != nil {
		return nil, errClosed
	}
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
		}
	}()
	client, err = esdb.NewClient(p.config)
	if err != nil {
		return nil, err
	}
	if _, err := client.GetServerVersion(); err != nil {
		return client, err
	}
	return client, nil
}

const (
	pauseShortest = 10 * time.Millisecond
	pauseLongest  = time.Second
)

// pause waits longer after more failures, and not at all after none. It reports
// whether ctx is still alive.
func pause(ctx context.Context, failures int) bool {
	if failures == 0 {
		return ctx.Err() == nil
	}
	d := min(pauseShortest<<min(failures-1, 10), pauseLongest)
	timer := time.NewTimer(d/2 + rand.N(d/2)) // apart from others that failed at the same time
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// hold keeps the client, which lend gave out, for f for as long as that takes,
// and closes ended when it is given back.
func (p *clients) hold(ctx context.Context, l *link, ended chan<- struct{}, f func(context.Context, *esdb.Client) error) {
	defer p.running.Done()
	defer close(ended)
	under, cancel := p.under(ctx, forever)
	defer cancel()
	_, err := guarded(under, l.client, func(ctx context.Context, c *esdb.Client) (struct{}, error) { return struct{}{}, f(ctx, c) })
	p.giveBack(l, isSpent(ctx, err), err)
}
