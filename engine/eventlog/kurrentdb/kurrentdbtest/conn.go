package kurrentdbtest

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/peer"
)

// later calls f after d, at the latest when the node stops.
func (s *Server) later(d time.Duration, f func()) {
	n := s.current()
	if n == nil {
		f()
		return
	}
	n.delayed.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-n.stopping:
		}
		f()
	})
}

// cut resets the connection that the call came over.
func (s *Server) cut(ctx context.Context) error {
	err := failure{code: errNotReady.code, message: "connection reset"}
	p, ok := peer.FromContext(ctx)
	n := s.current()
	if !ok || n == nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.conns[p.Addr.String()]; c != nil {
		reset(c)
	}
	return err
}

// reset closes a connection so that the peer sees a reset and what is on the
// way is lost.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// trackingListener knows the open connections of a node.
type trackingListener struct {
	net.Listener
	node *node
}

func (l *trackingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	l.node.conns[c.RemoteAddr().String()] = c
	return &trackedConn{c, l.node}, nil
}

type trackedConn struct {
	net.Conn
	node *node
}

func (c *trackedConn) Close() error {
	c.node.mu.Lock()
	delete(c.node.conns, c.RemoteAddr().String())
	c.node.mu.Unlock()
	return c.Conn.Close()
}
