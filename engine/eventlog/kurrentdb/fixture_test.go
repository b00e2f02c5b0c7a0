package kurrentdb

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// childrenEnv names, for the processes that the suite starts and kills, the
// server of the process that starts them.
const childrenEnv = "LEADONCE_KURRENTDB_CHILDREN"

// runEnv is a name that no other run has, and the children of this one know.
const runEnv = "LEADONCE_KURRENTDB_RUN"

func TestMain(m *testing.M) {
	eventlogtest.ChildMain(openIn) // does not return in a child that is to be killed
	server, err := kurrentdbtest.New(kurrentdbtest.Options{MaxAppendSize: 8 << 20})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv(childrenEnv, server.ConnectionString())
	os.Setenv(runEnv, randomName())
	code := m.Run()
	server.Close()
	os.Exit(code)
}

// newServer is a double of the server with the one setting that the adapter
// demands.
func newServer(t testing.TB) *kurrentdbtest.Server {
	return kurrentdbtest.Start(t, kurrentdbtest.Options{MaxAppendSize: 8 << 20})
}

// testConfig is patient: the machine may be slow. A test that waits for the end of
// the patience makes it short.
func testConfig(server *kurrentdbtest.Server) Config {
	return Config{
		Connection:    server.ConnectionString(),
		Namespace:     "test",
		Streams:       []string{""},
		SettleTimeout: 10 * time.Second,
	}
}

// hasty is for tests that wait until the log gives up.
func hasty(c Config) Config {
	c.SettleTimeout = 300 * time.Millisecond
	return c
}

func openLog(t testing.TB, config Config) *Log {
	t.Helper()
	l, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func randomName() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 123456789, time.UTC)

// event is a new one.
func event(data string) eventlog.Proposed {
	e := eventlog.Proposed{Type: "Tested", Time: noon, Data: []byte(data)}
	rand.Read(e.ID[:])
	return e
}

func batch(name string, n int) []eventlog.Proposed {
	list := make([]eventlog.Proposed, n)
	for i := range list {
		list[i] = event(fmt.Sprintf("%s %d/%d", name, i, n))
	}
	return list
}

func mustAppend(t testing.TB, l eventlog.Log, stream string, expected eventlog.Expected, events ...eventlog.Proposed) eventlog.Appended {
	t.Helper()
	at, err := l.Append(t.Context(), stream, expected, events...)
	if err != nil {
		t.Fatalf("append to %s expecting %s: %v", stream, expected, err)
	}
	return at
}

// ids are those on the stream, as the server itself has them.
func ids(server *kurrentdbtest.Server, stream string) (list []string) {
	for _, e := range server.Events() {
		if e.Stream == "test."+stream {
			list = append(list, e.ID)
		}
	}
	return list
}

// holds fails the test unless the server has exactly these events on the stream.
func holds(t testing.TB, server *kurrentdbtest.Server, stream string, want ...eventlog.Proposed) {
	t.Helper()
	var wanted []string
	for _, e := range want {
		wanted = append(wanted, e.ID.String())
	}
	if got := ids(server, stream); !slices.Equal(got, wanted) {
		t.Errorf("stream %s has the events %v, want %v", stream, got, wanted)
	}
}

// watching collects what the adapter says that it does.
type watching struct {
	mu      sync.Mutex
	notices []Notice
	news    chan struct{} // has a token when there are new ones
}

func newWatching() *watching { return &watching{news: make(chan struct{}, 1)} }

func (w *watching) observe(n Notice) {
	w.mu.Lock()
	w.notices = append(w.notices, n)
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *watching) count(kind Kind) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, notice := range w.notices {
		if notice.Kind == kind {
			n++
		}
	}
	return n
}

// until waits for the nth notice of the kind.
func (w *watching) until(t testing.TB, kind Kind, n int) {
	t.Helper()
	for patience := time.After(20 * time.Second); w.count(kind) < n; {
		select {
		case <-w.news:
		case <-patience:
			t.Fatalf("%d notices of kind %d, want %d", w.count(kind), kind, n)
		}
	}
}

// eventually waits for a condition that no channel tells.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for patience := time.After(20 * time.Second); !condition(); {
		select {
		case <-tick.C:
		case <-patience:
			t.Fatalf("did not come about: %s", what)
		}
	}
}
