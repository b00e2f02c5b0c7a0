package kurrentdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// cutOff is a log whose server can be cut off for one call, for longer than the
// adapter tries to find out what became of it.
type cutOff struct {
	*Log
	server *kurrentdbtest.Server

	mu     sync.Mutex
	faults []*kurrentdbtest.Injection
	losing bool // an answer is being lost
}

func openCutOff(t testing.TB, config Config, server *kurrentdbtest.Server) *cutOff {
	c := &cutOff{server: server}
	config.Observe = c.observe
	c.Log = openLog(t, config)
	return c
}

// observe keeps the adapter from finding out what became of an append whose
// answer is lost.
func (c *cutOff) observe(n Notice) {
	c.mu.Lock()
	losing := c.losing
	c.mu.Unlock()
	if losing && n.Kind == Settling {
		c.inject(kurrentdbtest.Fault{Point: kurrentdbtest.ReadUnavailable, Probability: 1})
	}
}

func (c *cutOff) inject(faults ...kurrentdbtest.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range faults {
		c.faults = append(c.faults, c.server.Inject(f))
	}
}

func (c *cutOff) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		f.Remove()
	}
	c.faults, c.losing = nil, false
}

func (c *cutOff) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	defer c.mend()
	return c.Log.Append(ctx, stream, expected, events...)
}

func (c *cutOff) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return c.mending(c.Log.ReadStream(ctx, stream, from))
}

func (c *cutOff) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return c.mending(c.Log.ReadAll(ctx, after))
}

func (c *cutOff) mending(read iter.Seq2[eventlog.Recorded, error]) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		defer c.mend()
		read(yield)
	}
}

// loseAck loses the answer to the next append.
func (c *cutOff) loseAck(loss eventlogtest.Loss) {
	point := kurrentdbtest.AppendLost
	if loss == eventlogtest.BeforeCommit {
		point = kurrentdbtest.AppendCut
	}
	c.inject(
		kurrentdbtest.Fault{Point: point},
		kurrentdbtest.Fault{Point: kurrentdbtest.AppendNotReady, Probability: 1},
	)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losing = true
}

func suite(open func(t testing.TB) *cutOff) eventlogtest.Backend {
	return eventlogtest.Backend{
		Open: func(t testing.TB) eventlog.Log { return open(t) },
		Reopen: func(t testing.TB, log eventlog.Log) eventlog.Log {
			c := log.(*cutOff)
			c.Close()
			return openCutOff(t, c.config, c.server)
		},
		Second: func(t testing.TB, log eventlog.Log) eventlog.Log {
			c := log.(*cutOff)
			return openCutOff(t, c.config, c.server)
		},
		Crash: openIn,
	}
}

func TestConformance(t *testing.T) {
	backend := suite(func(t testing.TB) *cutOff {
		server := newServer(t)
		return openCutOff(t, hasty(testConfig(server)), server)
	})
	backend.LoseAck = func(_ testing.TB, log eventlog.Log, loss eventlogtest.Loss) { log.(*cutOff).loseAck(loss) }
	backend.CutRead = func(_ testing.TB, log eventlog.Log, after int) {
		log.(*cutOff).inject(kurrentdbtest.Fault{Point: kurrentdbtest.ReadCut, After: after, Probability: 1})
	}
	eventlogtest.Run(t, backend)
}

// openIn is a log of its own for each folder, on the server of the process that
// runs the tests: a process that uses a log dies, the server does not.
func openIn(dir string) (eventlog.Log, error) {
	sum := sha256.Sum256([]byte(os.Getenv(runEnv) + dir))
	connection := os.Getenv(realEnv)
	if connection == "" {
		connection = os.Getenv(childrenEnv)
	}
	return Open(context.Background(), Config{
		Connection:    connection,
		Namespace:     "crash" + hex.EncodeToString(sum[:8]),
		Streams:       []string{""},
		SettleTimeout: 5 * time.Second,
	})
}
