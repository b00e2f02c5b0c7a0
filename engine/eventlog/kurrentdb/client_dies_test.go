package kurrentdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// TestServerAwayForLongerThanTheClientLives: the bare client is dead for good
// after a second of refused connections (H1). The log works again when the
// server does, and says ErrUnavailable until then.
func TestServerAwayForLongerThanTheClientLives(t *testing.T) {
	server := newServer(t)
	l := openLog(t, hasty(testConfig(server)))
	mustAppend(t, l, "away", eventlog.NoStream, event("before"))
	server.Stop()
	for away := time.Now(); time.Since(away) < 1500*time.Millisecond; {
		if _, err := l.Append(t.Context(), "away-2", eventlog.NoStream, event("x")); err == nil {
			t.Fatal("an append succeeded without a server")
		}
		if _, err := l.Tail(t.Context()); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Fatalf("tail: error is %v, want ErrUnavailable", err)
		}
	}
	if _, err := l.Append(t.Context(), "away-2", eventlog.NoStream, event("x")); !errors.Is(err, eventlog.ErrUnavailable) || eventlog.IsUnknown(err) {
		t.Errorf("error is %v, want ErrUnavailable: nothing can have left", err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	last := event("after")
	eventually(t, "an append to the server that is back", func() bool {
		_, err := l.Append(t.Context(), "away", eventlog.Exactly(0), last)
		return err == nil
	})
	if got := ids(server, "away-2"); len(got) > 0 {
		t.Errorf("%d events were recorded by appends that were said not to be", len(got))
	}
}

// TestThousandOutagesLeakNothing: callers keep appending and reading while the
// server's connections break 1,000 times, and it is away 50 times.
func TestThousandOutagesLeakNothing(t *testing.T) {
	server := newServer(t)
	config := testConfig(server)
	config.Connections = 4
	l := openLog(t, config)
	mustAppend(t, l, "warm", eventlog.NoStream, event("x"))
	before, filesBefore := runtime.NumGoroutine(), openFiles()
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for caller := range 4 {
		callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := l.Append(ctx, fmt.Sprintf("c%d-%d", caller, i), eventlog.NoStream, event("x"))
				if err != nil && ctx.Err() == nil {
					t.Errorf("append: %v", err)
				}
				for range l.ReadStream(ctx, "warm", 0) {
				}
			}
		})
	}
	outages := 1000
	if testing.Short() {
		outages = 100
	}
	for i := range outages {
		if i%20 == 0 {
			if err := server.Restart(true); err != nil {
				t.Fatal(err)
			}
		}
		server.DropConnections()
		l.Tail(ctx) // whatever it says, it takes a connection
	}
	stop()
	callers.Wait()
	eventually(t, "no more goroutines and sockets than at first, but those of four connections", func() bool {
		return runtime.NumGoroutine() <= before+4*12 && openFiles() <= filesBefore+2*4
	})
	l.Close()
	server.Stop()
	if err := goleak.Find(goleak.IgnoreCurrent()); err != nil {
		t.Error(err)
	}
}

// openFiles counts what this process has open, sockets among them, where the
// system tells.
func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// TestCloseWhileCallsHang: the bare client's Close makes calls that are under
// way panic (H3).
func TestCloseWhileCallsHang(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	server := newServer(t)
	l := openLog(t, testConfig(server))
	hanging := server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendHang, Probability: 1})
	stalled := server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.ReadHang, Probability: 1})
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			if _, err := l.Append(context.Background(), fmt.Sprint("hangs-", i), eventlog.NoStream, event("x")); !eventlog.IsUnknown(err) {
				t.Errorf("append: error is %v, want an unknown outcome", err)
			}
		})
		calls.Go(func() {
			for _, err := range l.ReadStream(context.Background(), "s", 0) {
				if !errors.Is(err, eventlog.ErrUnavailable) {
					t.Errorf("read: error is %v, want ErrUnavailable", err)
				}
			}
		})
	}
	calls.Go(func() {
		err := l.Subscribe(context.Background(), eventlog.Start, func(context.Context, eventlog.Recorded) error { return nil })
		if !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("subscribe: error is %v, want ErrUnavailable", err)
		}
	})
	eventually(t, "all calls under way", func() bool { return hanging.Fired() == 8 && stalled.Fired() == 8 })
	l.Close()
	calls.Wait()
	if _, err := l.Append(context.Background(), "closed", eventlog.NoStream, event("x")); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("append to a closed log: error is %v, want ErrUnavailable", err)
	}
	server.Close()
	if err := goleak.Find(leaks); err != nil {
		t.Error(err)
	}
}

// TestHangingClientHeedsTheContext: while the client looks for its node it has
// no ear for the context (H2). Here the node accepts connections and says nothing.
func TestHangingClientHeedsTheContext(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	config, err := clientConfig("esdb://" + mute.Addr().String() + "?tls=false&gossipTimeout=4")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Connections: 4, SettleTimeout: 200 * time.Millisecond}.withDefaults()
	l := &Log{config: c, names: namespace{streams: []string{""}}, clients: newClients(config, 4, c.Observe)}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = l.Append(ctx, "s", eventlog.NoStream, event("x"))
	if !errors.Is(err, eventlog.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want ErrUnavailable and the context's", err)
	}
	if took := time.Since(began); took > 3*time.Second { // the client by itself: gossipTimeout
		t.Errorf("took %s, with a context of 50 ms", took)
	}
}

// TestPanicInTheClientIsAnError, and the client is not used again (H3).
func TestPanicInTheClientIsAnError(t *testing.T) {
	l := openLog(t, testConfig(newServer(t)))
	var first *esdb.Client
	_, err := call(t.Context(), l.clients, time.Second, func(_ context.Context, c *esdb.Client) (int, error) {
		first = c
		panic("unreachable code")
	})
	var panicked *panicError
	if !errors.As(err, &panicked) || judge(err) != unclear {
		t.Errorf("error is %v, want the panic, and no knowledge of the outcome", err)
	}
	call(t.Context(), l.clients, time.Second, func(_ context.Context, c *esdb.Client) (int, error) {
		if c == first {
			t.Error("the client that panicked is used again")
		}
		return 0, nil
	})
}

// TestOneProbeAtATime: while the server is away, callers wait for one attempt
// to connect instead of making one each.
func TestOneProbeAtATime(t *testing.T) {
	server := newServer(t)
	config := hasty(testConfig(server))
	config.Connections = 64
	l := openLog(t, config)
	server.Stop()
	idle, err := l.clients.lend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.clients.giveBack(idle, true, nil)
	l.clients.running.Done()
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() { l.Tail(t.Context()) })
	}
	callers.Wait()
	l.clients.mu.Lock()
	defer l.clients.mu.Unlock()
	// 300 ms of pauses that begin at 10 ms and double are at most six attempts.
	if n := l.clients.failures; n < 1 || n > 12 {
		t.Errorf("%d attempts to connect by 64 callers, want a few", n)
	}
}

// TestDeafCallKeepsItsClient: a call that does not heed its context is left
// behind (H2), and its client is closed when it returns, not before (H3).
func TestDeafCallKeepsItsClient(t *testing.T) {
	l := openLog(t, testConfig(newServer(t)))
	hear, heard := make(chan struct{}), make(chan error, 1)
	_, err := call(t.Context(), l.clients, 20*time.Millisecond, func(_ context.Context, c *esdb.Client) (int, error) {
		<-hear
		_, err := c.GetServerVersion()
		heard <- err
		return 0, err
	})
	if !errors.Is(err, context.DeadlineExceeded) || judge(err) != unclear {
		t.Errorf("error is %v, want that of the limit, and no knowledge of the outcome", err)
	}
	mustAppend(t, l, "s", eventlog.NoStream, event("meanwhile"))
	close(hear)
	if err := <-heard; err != nil {
		t.Errorf("the client was taken from a call under way: %v", err)
	}
}
