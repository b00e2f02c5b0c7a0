package kurrentdb

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

var seeds = flag.Int("seeds", 2, "runs of TestEveryFaultAtOnce")

// TestEveryFaultAtOnce: two processes' logs append to shared and own streams
// under every fault there is, with restarts, and a subscription goes along. The
// server's own record judges what each append was told.
//
//	go test ./engine/eventlog/kurrentdb -run EveryFault -seeds 50
func TestEveryFaultAtOnce(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { everyFault(t, uint64(seed)) })
	}
}

// told is what an append was told.
type told struct {
	stream   string
	expected eventlog.Expected
	events   []eventlog.Proposed
	at       eventlog.Appended
	err      error
	doubted  bool // an earlier attempt was told "unknown": "unavailable" is then about the last one alone
}

func everyFault(t *testing.T, seed uint64) {
	server := kurrentdbtest.Start(t, kurrentdbtest.Options{MaxAppendSize: 8 << 20, CommitTimeout: 60 * time.Millisecond, Seed: seed})
	config := testConfig(server)
	config.AppendTimeout, config.ReadTimeout = 200*time.Millisecond, 200*time.Millisecond
	config.SettleTimeout = 400 * time.Millisecond
	config.Watchdog = 100 * time.Millisecond
	logs := []*Log{openLog(t, config), openLog(t, config)}
	f := follow(t, logs[0], eventlog.Start)
	var followed []eventlog.EventID
	following := make(chan struct{})
	finished := make(chan int, 1)
	go func() {
		defer close(following)
		total := -1
		for len(followed) != total {
			select {
			case r := <-f.events:
				followed = append(followed, r.ID)
			case total = <-finished:
			case <-time.After(20 * time.Second):
				t.Errorf("the subscription brought %d events, want %d", len(followed), total)
				return
			}
		}
	}()
	injectAll(server)
	answers := appendsUnderFaults(t, logs, seed, server)
	server.ClearFaults()
	mine := judgeAll(t, server, answers)
	finished <- len(mine)
	<-following
	if !slices.Equal(followed, mine) {
		t.Errorf("the subscription brought %d events that are not the %d recorded, or in another order", len(followed), len(mine))
	}
}

func injectAll(server *kurrentdbtest.Server) {
	for _, p := range []kurrentdbtest.Point{
		kurrentdbtest.AppendLost, kurrentdbtest.AppendCut, kurrentdbtest.AppendNotIndexed, kurrentdbtest.AppendTimeout, kurrentdbtest.AppendNotReady,
		kurrentdbtest.AppendNotLeader, kurrentdbtest.AppendHang, kurrentdbtest.AppendLate,
		kurrentdbtest.ReadCut, kurrentdbtest.ReadUnavailable, kurrentdbtest.ReadHang, kurrentdbtest.ReadStale,
		kurrentdbtest.SubscribeUnavailable, kurrentdbtest.SubscribeUnconfirmed, kurrentdbtest.SubscribeStall,
		kurrentdbtest.SubscribeDrop, kurrentdbtest.SubscribeCut, kurrentdbtest.SubscribeCheckpoint,
	} {
		server.Inject(kurrentdbtest.Fault{Point: p, Probability: 0.04, After: 1, Behind: 2, Delay: 30 * time.Millisecond})
	}
}

func appendsUnderFaults(t *testing.T, logs []*Log, seed uint64, server *kurrentdbtest.Server) (answers []told) {
	const callers, each = 6, 25
	var mu sync.Mutex
	var running sync.WaitGroup
	for caller := range callers {
		random := rand.New(rand.NewPCG(seed, uint64(caller)))
		running.Go(func() {
			revision := map[string]eventlog.Expected{}
			for i := range each {
				stream := []string{"shared", fmt.Sprint("own-", caller), fmt.Sprintf("new-%d-%d", caller, i), "noted"}[random.IntN(4)]
				expected, known := revision[stream]
				switch {
				case stream == "noted":
					expected = eventlog.Any
				case !known:
					expected = eventlog.NoStream
				}
				a := told{stream: stream, expected: expected, events: batch(fmt.Sprintf("c%d-%d", caller, i), 1+random.IntN(3))}
				away := caller == 0 && i%8 == 3 // for longer than anyone settles
				if away {
					server.Stop()
				}
				for try := 0; ; try++ { // as the engine: the same ids again while it is not known
					a.at, a.err = logs[caller%2].Append(t.Context(), stream, expected, a.events...)
					a.doubted = a.doubted || eventlog.IsUnknown(a.err)
					if away {
						away = false
						if err := server.Start(); err != nil {
							t.Error(err)
						}
					}
					if !eventlog.IsUnknown(a.err) || try == 5 || expected.IsAny() {
						break
					}
				}
				var c *eventlog.ConflictError
				switch {
				case a.err == nil:
					revision[stream] = eventlog.Exactly(a.at.Revision)
				case errors.As(a.err, &c) && c.Exists:
					revision[stream] = eventlog.Exactly(c.Current)
				}
				mu.Lock()
				answers = append(answers, a)
				mu.Unlock()
				if caller == 0 && i%8 == 7 {
					if err := server.Restart(true); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	running.Wait()
	return answers
}

// judgeAll holds what was told against what is there, and returns the ids of
// the log in its order.
func judgeAll(t *testing.T, server *kurrentdbtest.Server, answers []told) (all []eventlog.EventID) {
	t.Helper()
	// What the server was still about to write has been written when an append to
	// each stream has been answered.
	l := openLog(t, testConfig(server))
	server.Restart(true)
	place := map[string]uint64{}
	position := map[string]eventlog.Position{}
	for r, err := range l.ReadAll(context.Background(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		key := r.Stream + " " + r.ID.String()
		if _, twice := place[key]; twice {
			t.Errorf("event %s is on %s twice", r.ID, r.Stream)
		}
		place[key], position[key] = r.Revision, r.Position
		all = append(all, r.ID)
	}
	counts := map[string]int{}
	for _, a := range answers {
		n := 0
		for _, e := range a.events {
			if _, there := place[a.stream+" "+e.ID.String()]; there {
				n++
			}
		}
		last := a.stream + " " + a.events[len(a.events)-1].ID.String()
		switch {
		case n != 0 && n != len(a.events):
			t.Errorf("%d of %d events of an append to %s are there", n, len(a.events), a.stream)
		case a.err == nil && n == 0:
			t.Errorf("an append to %s that succeeded is not there", a.stream)
		case a.err == nil && (place[last] != a.at.Revision || position[last] != a.at.Position):
			t.Errorf("an append to %s was said to end at %+v, and ends at %d, %s", a.stream, a.at, place[last], position[last])
		case eventlog.IsConflict(a.err) && n > 0, errors.Is(a.err, eventlog.ErrUnavailable) && !a.doubted && n > 0:
			t.Errorf("an append to %s expecting %s is there, and was told %v", a.stream, a.expected, a.err)
		}
		switch {
		case a.err == nil:
			counts["recorded"]++
		case eventlog.IsConflict(a.err):
			counts["conflicts"]++
		case eventlog.IsUnknown(a.err):
			counts["unknown"]++
		case errors.Is(a.err, eventlog.ErrUnavailable):
			counts["unavailable"]++
		default:
			t.Errorf("an append was told %v", a.err)
		}
	}
	t.Logf("%d appends: %v; %d events", len(answers), counts, len(all))
	if counts["recorded"] < len(answers)/2 {
		t.Errorf("only %d of %d appends were recorded: the faults leave too little to judge", counts["recorded"], len(answers))
	}
	return all
}
