package eventlogtest_test

import (
	"os"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

// breakEnv names, in a child process, the breakage that the suite is run on.
const breakEnv = "EVENTLOGTEST_BREAKAGE"

func TestMain(m *testing.M) {
	eventlogtest.ChildMain(openFile(breakages[os.Getenv(breakEnv)]))
	os.Exit(m.Run())
}

// TestSoundLog is the control: with nothing broken, no case fails or is skipped.
func TestSoundLog(t *testing.T) {
	eventlogtest.Run(t, backend(breakage{}))
}

// TestBrokenChild is the suite on a broken log. It runs in a child process of
// TestBrokenLog.
func TestBrokenChild(t *testing.T) {
	b, ok := breakages[os.Getenv(breakEnv)]
	if !ok {
		t.Skip("only in a child process")
	}
	broken := backend(b)
	broken.Patience = 300 * time.Millisecond
	eventlogtest.Run(t, broken)
}

// handle is a log of the memory store, possibly broken, with its fault hooks.
type handle struct {
	eventlog.Log
	store  *memory.Log
	faulty *eventlogtest.FaultyLog
}

func (b breakage) open(store *memory.Log) *handle {
	h := &handle{store: store, faulty: eventlogtest.NewFaultyLog(store)}
	h.Log = h.faulty
	if b.log != nil {
		h.Log = b.log(h.faulty)
	}
	return h
}

// backend has every capability: the memory log, whose store outlives its
// handles, and for Crash the file log.
func backend(b breakage) eventlogtest.Backend {
	return eventlogtest.Backend{
		Open: func(testing.TB) eventlog.Log { return b.open(memory.New()) },
		Reopen: func(t testing.TB, log eventlog.Log) eventlog.Log {
			store := log.(*handle).store
			if b.reopen != nil {
				store = b.reopen(store)
			}
			return b.open(store)
		},
		Second: func(_ testing.TB, log eventlog.Log) eventlog.Log { return b.open(log.(*handle).store) },
		Crash:  openFile(b),
		LoseAck: func(_ testing.TB, log eventlog.Log, loss eventlogtest.Loss) {
			log.(*handle).faulty.LoseAck(loss)
		},
		CutRead: func(_ testing.TB, log eventlog.Log, after int) { log.(*handle).faulty.CutRead(after) },
	}
}
