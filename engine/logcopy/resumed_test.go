package logcopy_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/logcopy"
)

// Whatever the log, wherever the copy is broken off, and whatever fails and is
// added to the source meanwhile: resumed until it ends, the target is the source.
func TestResumedAfterAnyInterruption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, target := eventlogtest.NewFaultyLog(memory.New()), eventlogtest.NewFaultyLog(memory.New())
		grow(t, source.Log, 40)
		for range rapid.IntRange(0, 6).Draw(t, "interruptions") {
			interrupted(t, source, target)
			isPrefix(t, source.Log, target.Log)
			if rapid.Bool().Draw(t, "grows") {
				grow(t, source.Log, 5)
			}
		}
		counts, err := copyAll(context.Background(), source.Log, target.Log)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, source.Log, target.Log)
		if n := uint64(len(all(t, source.Log))); counts.Events != n {
			t.Fatalf("counts %+v, want %d events", counts, n)
		}
	})
}

// grow appends up to n events to a few streams. Some are large, and some ids come
// again in other streams.
func grow(t *rapid.T, log eventlog.Log, n int) {
	for range rapid.IntRange(0, n).Draw(t, "events") {
		e := event(rapid.IntRange(0, 1<<20).Draw(t, "id"))
		if rapid.IntRange(0, 9).Draw(t, "size") == 0 {
			e.Data = bytes.Repeat([]byte("x"), rapid.IntRange(0, 400<<10).Draw(t, "bytes"))
		}
		stream := fmt.Sprintf("s-%d", rapid.IntRange(0, 3).Draw(t, "stream"))
		if _, err := log.Append(context.Background(), stream, eventlog.Any, e); err != nil {
			t.Fatal(err)
		}
	}
}

// interrupted is a copy that is cancelled at some append, with answers lost and
// reads cut on the way.
func interrupted(t *rapid.T, source, target *eventlogtest.FaultyLog) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last := rapid.IntRange(0, 20).Draw(t, "appends before the end")
	faults := rapid.SliceOfN(rapid.IntRange(0, 5), last+1, last+1).Draw(t, "faults")
	appends := 0
	arm := func(fault int) {
		switch fault {
		case 1:
			target.LoseAck(eventlogtest.BeforeCommit)
		case 2:
			target.LoseAck(eventlogtest.AfterCommit)
		case 3:
			source.CutRead(appends)
		case 4:
			target.CutRead(appends)
		}
	}
	l := watched{Log: target,
		before: func(string, eventlog.Expected, []eventlog.Proposed) error {
			if appends < len(faults) {
				arm(faults[appends])
			}
			appends++
			return nil
		},
		after: func() error {
			if appends > last {
				cancel()
			}
			return nil
		},
	}
	if err := logcopy.New(source, l, logcopy.Options{Sleep: new(waits).sleep}).ToTail(ctx); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}
