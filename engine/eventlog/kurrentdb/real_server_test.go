package kurrentdb

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
)

// realEnv names a real server, on which the conformance suite then runs too.
const realEnv = "LEADONCE_TEST_KURRENTDB"

// TestConformanceOfARealServer runs the suite on the server that the
// environment names, which must take appends of 8 MiB. Each log has a namespace
// of its own that no other run has, so a run finds nothing of an earlier one; what
// it leaves are ordinary streams "test<16 hex digits>.…".
//
//	LEADONCE_TEST_KURRENTDB='esdb://127.0.0.1:2113?tls=false' go test ./engine/eventlog/kurrentdb -run RealServer -v
func TestConformanceOfARealServer(t *testing.T) {
	connection := os.Getenv(realEnv)
	if connection == "" {
		t.Skipf("%s does not name a server: the suite ran over the test double alone", realEnv)
	}
	inner := func(log eventlog.Log) *Log {
		if faulty, ok := log.(*eventlogtest.FaultyLog); ok {
			log = faulty.Log
		}
		return log.(*Log)
	}
	var mu sync.Mutex
	opened := map[string]int{}
	eventlogtest.Run(t, eventlogtest.Backend{
		Open: func(t testing.TB) eventlog.Log {
			l := openLog(t, Config{Connection: connection, Namespace: "test" + randomName(), Streams: []string{""}})
			mu.Lock()
			defer mu.Unlock()
			if opened[t.Name()]++; opened[t.Name()] > 1 {
				return farAhead{l}
			}
			return eventlogtest.NewFaultyLog(l)
		},
		Reopen: func(t testing.TB, log eventlog.Log) eventlog.Log {
			l := inner(log)
			l.Close()
			return openLog(t, l.config)
		},
		Second: func(t testing.TB, log eventlog.Log) eventlog.Log { return openLog(t, inner(log).config) },
		Crash:  openIn,
		LoseAck: func(_ testing.TB, log eventlog.Log, loss eventlogtest.Loss) {
			log.(*eventlogtest.FaultyLog).LoseAck(loss)
		},
		CutRead: func(_ testing.TB, log eventlog.Log, after int) {
			log.(*eventlogtest.FaultyLog).CutRead(after)
		},
		Patience: 2 * time.Minute,
	})
}

// farAhead is the second log of a case that needs two. Those share the server
// and its positions, and the suite takes the second for a longer log elsewhere.
type farAhead struct{ *Log }

func (l farAhead) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	at, err := l.Log.Append(ctx, stream, expected, events...)
	commit, prepare := at.Position.Parts()
	at.Position = eventlog.NewPosition(commit+1<<40, prepare+1<<40)
	return at, err
}
