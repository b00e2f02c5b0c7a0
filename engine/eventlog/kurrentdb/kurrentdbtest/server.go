package kurrentdbtest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// Options of a Server. The zero value is a single insecure node in memory.
type Options struct {
	// DataFile keeps the log over the death of the process, if it is set. One
	// server at a time may use it.
	DataFile string

	// User and Password are those of the administrator. If they are set, every
	// call but gossip and server features must name a user.
	User, Password string

	// PlainUser and PlainPassword are those of a second user, who may do with
	// ordinary streams what he likes and read $all only if its metadata says so.
	PlainUser, PlainPassword string

	// TLS makes the server speak TLS with a certificate of its own authority.
	TLS bool

	// MaxAppendSize of all events of one append, in bytes; 0 is the 1 MiB of the
	// real server.
	MaxAppendSize int

	// CommitTimeout is how long an append waits to be indexed; 0 is the 2 s of
	// the real server.
	CommitTimeout time.Duration

	// IDCacheBytes bounds what is remembered to make appends at any revision
	// idempotent; 0 is the 8 MiB of the real server.
	IDCacheBytes int64

	// StatsEvery is after how many appends the server writes an event of its own
	// into $all; 0 is 64, negative is never.
	StatsEvery int

	// FellBehind lets subscriptions send the message of this name. The protocol
	// has it, no server up to KurrentDB 26 sends it.
	FellBehind bool

	// Version that server features report; "" is 25.0.0.
	Version string

	// Seed of what Fault.Probability draws from.
	Seed uint64
}

// Server is a single node. Its methods are safe for concurrent use.
type Server struct {
	streams.UnimplementedStreamsServer
	serverfeatures.UnimplementedServerFeaturesServer

	opts      Options
	authority *authority // nil without TLS
	store     *store
	faults    *faultPlan
	skew      atomic.Int64 // nanoseconds
	appends   atomic.Int64

	mu      sync.Mutex
	address string // of the first listener, kept over restarts
	node    *node  // nil while stopped
	closed  bool
	calls   []Call
}

// node is one life of a server, from start to stop.
type node struct {
	grpc     *grpc.Server
	stopping chan struct{}
	served   chan struct{}
	delayed  sync.WaitGroup

	mu    sync.Mutex
	conns map[string]net.Conn // by the client's address
}

// New makes a server that does not listen yet.
func New(opts Options) (*Server, error) {
	if opts.MaxAppendSize == 0 {
		opts.MaxAppendSize = 1 << 20
	}
	if opts.CommitTimeout == 0 {
		opts.CommitTimeout = 2 * time.Second
	}
	if opts.IDCacheBytes == 0 {
		opts.IDCacheBytes = 8 << 20
	}
	if opts.StatsEvery == 0 {
		opts.StatsEvery = 64
	}
	if opts.Version == "" {
		opts.Version = "25.0.0"
	}
	s := &Server{opts: opts, faults: &faultPlan{random: rand.New(rand.NewPCG(opts.Seed, 0))}}
	if opts.TLS {
		var err error
		if s.authority, err = newAuthority(); err != nil {
			return nil, err
		}
	}
	var err error
	s.store, err = newStore(opts.DataFile, opts.IDCacheBytes, s.now)
	return s, err
}

// Start makes a server that listens on a free port of 127.0.0.1 until the test
// ends.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatalf("start kurrentdbtest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close kurrentdbtest: %v", err)
		}
	})
	if err := s.Start(); err != nil {
		t.Fatalf("start kurrentdbtest: %v", err)
	}
	return s
}

// Start listens on the port of the last time, at first on a free one of
// 127.0.0.1, and serves in the background.
func (s *Server) Start() error {
	s.mu.Lock()
	err := s.startable()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	l, err := s.listen()
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	n, l, err := s.boot(l)
	if err != nil {
		return err
	}
	go n.serve(l)
	return nil
}

// portPatience is how long a restart waits for its port: a client that redials
// a closed port of its own machine can for a moment connect to itself.
const portPatience = 5 * time.Second

func (s *Server) listen() (net.Listener, error) {
	address := s.Address()
	if address == "" {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	for end := time.Now().Add(portPatience); ; time.Sleep(delivery) {
		l, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}

// Serve serves on the listener until Stop or Close.
func (s *Server) Serve(l net.Listener) error {
	n, l, err := s.boot(l)
	if err != nil {
		return err
	}
	n.serve(l)
	return nil
}

// startable says why not. The caller holds the lock.
func (s *Server) startable() error {
	switch {
	case s.closed:
		return errors.New("the server is closed")
	case s.node != nil:
		return errors.New("the server is running")
	}
	return nil
}

func (s *Server) boot(l net.Listener) (*node, net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.startable(); err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	if err := s.store.started(); err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	s.address = l.Addr().String()
	n := &node{
		stopping: make(chan struct{}), served: make(chan struct{}),
		conns: map[string]net.Conn{},
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(17 << 20),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	if s.authority != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{s.authority.server}})))
	}
	if s.opts.StatsEvery > 0 {
		if err := s.writeStats(); err != nil {
			return nil, nil, errors.Join(err, l.Close())
		}
	}
	n.grpc = grpc.NewServer(options...)
	streams.RegisterStreamsServer(n.grpc, s)
	serverfeatures.RegisterServerFeaturesServer(n.grpc, s)
	gossip.RegisterGossipServer(n.grpc, &gossipService{server: s})
	s.node = n
	return n, &trackingListener{l, n}, nil
}

// serve ends without an error worth telling: the listener is ours and only
// Stop closes it.
func (n *node) serve(l net.Listener) {
	defer close(n.served)
	_ = n.grpc.Serve(l)
}

// Stop breaks all connections and stops listening. The log stays. Stopping a
// stopped server does nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	n := s.node
	s.node = nil
	s.mu.Unlock()
	if n == nil {
		return
	}
	close(n.stopping)
	n.grpc.Stop()
	<-n.served
	n.delayed.Wait()
}

// Close stops the server for good and closes its data file.
func (s *Server) Close() error {
	s.mu.Lock()
	before := s.closed
	s.closed = true
	s.mu.Unlock()
	if before {
		return nil
	}
	s.Stop()
	err := s.store.close()
	if s.authority != nil {
		err = errors.Join(err, os.Remove(s.authority.path))
	}
	return err
}

// Restart stops and starts on the same port; without keepData the log is empty
// after it, as if the database had been made anew. Either way the cache that
// makes appends at any revision idempotent is empty.
func (s *Server) Restart(keepData bool) error {
	s.Stop()
	if !keepData {
		if err := s.store.wipe(); err != nil {
			return fmt.Errorf("wipe: %w", err)
		}
	}
	return s.Start()
}

// Address is host:port, "" before the first start.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// ConnectionString is what the client library wants to be told. It names the
// administrator, if there is one.
func (s *Server) ConnectionString() string {
	u := url.URL{Scheme: "esdb", Host: s.Address()}
	if s.opts.User != "" {
		u.User = url.UserPassword(s.opts.User, s.opts.Password)
	}
	u.RawQuery = "tls=false"
	if s.authority != nil {
		u.RawQuery = url.Values{"tls": {"true"}, "tlsCAFile": {s.CAFile()}}.Encode()
	}
	return u.String()
}

// CAFile is the path of the certificate of the server's authority, in PEM; ""
// without TLS. Close removes the file.
func (s *Server) CAFile() string {
	if s.authority == nil {
		return ""
	}
	return s.authority.path
}

// DropConnections resets every connection; the server goes on listening.
func (s *Server) DropConnections() {
	s.mu.Lock()
	n := s.node
	s.mu.Unlock()
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		reset(c)
	}
}

// SetClockSkew makes the server stamp events with its clock plus d.
func (s *Server) SetClockSkew(d time.Duration) { s.skew.Store(int64(d)) }

func (s *Server) now() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) }

// Scavenge removes from the log what metadata hides and what was deleted.
func (s *Server) Scavenge() error { return s.store.scavenge() }

// LoseUnindexed drops the events that were committed but not indexed, as the
// death of a leader before replication does, and says how many there were.
func (s *Server) LoseUnindexed() (int, error) { return s.store.loseUnindexed() }

// current is the running node; after Stop a node that is stopping.
func (s *Server) current() *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}
