package sqlite

import (
	"context"
	"sync"
)

// pool lends readers, at most one to a caller and a fixed number in all.
type pool struct {
	check  func() error // before each read: what it would see must be what is kept
	open   func(context.Context) (*reader, error)
	slots  chan struct{} // full: all are lent
	closed chan struct{}

	mu   sync.Mutex
	idle []*reader
}

func newPool(readers int, check func() error, open func(context.Context) (*reader, error)) *pool {
	return &pool{check: check, open: open, slots: make(chan struct{}, readers), closed: make(chan struct{})}
}

// with calls read with a reader. The context given to read never ends: a read
// is short, and what it leaves behind must not depend on when it was stopped.
func (p *pool) with(ctx context.Context, read func(context.Context, *reader) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-p.closed:
		return errClosed
	default:
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.closed:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slots }()
	ctx = context.WithoutCancel(ctx)
	r, err := p.take(ctx)
	if err != nil {
		return err
	}
	if err := read(ctx, r); err != nil {
		r.conn.drop() // the next read gets a new one
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, r)
	return nil
}

func (p *pool) take(ctx context.Context) (*reader, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return r, nil
	}
	return p.open(ctx)
}

// close waits until every reader is back.
func (p *pool) close() {
	close(p.closed)
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	for _, r := range p.idle {
		r.conn.drop() // it only read, so it has nothing to lose
	}
}
