package kurrentdb

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

// The ratios are what counts: the adapter and the bare client take turns on one
// server in one run, and the ratio is the median of the turns'.
//
//	go test -run '^$' -bench Overhead ./engine/eventlog/kurrentdb/

const benchTurns = 21

// overhead reports what a turn with the adapter takes, in turns of the bare
// client.
func overhead(b *testing.B, adapter, bare func(n int) time.Duration) {
	n := max(b.N/benchTurns, 1)
	adapter(n) // connect
	bare(n)
	var ratios []float64
	var total time.Duration
	for i := range benchTurns {
		var ours, theirs time.Duration
		if i%2 == 0 {
			ours, theirs = adapter(n), bare(n)
		} else {
			theirs, ours = bare(n), adapter(n)
		}
		total += ours
		ratios = append(ratios, float64(ours)/float64(theirs))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[benchTurns/2], "of_bare_client")
	b.ReportMetric(float64(total.Microseconds())/float64(n*benchTurns), "µs/call")
	b.ReportMetric(0, "ns/op")
}

var benchData = []byte(`{"update":"` + strings.Repeat("x", 1011) + `"}`)

func benchEvent() eventlog.Proposed {
	e := event("")
	e.Data = benchData
	return e
}

// inParallel is how long n calls take callers at a time.
func inParallel(b *testing.B, callers, n int, do func(i int) error) time.Duration {
	var next atomic.Int64
	var running sync.WaitGroup
	start := time.Now()
	for range callers {
		running.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	return time.Since(start)
}

func benchPair(b *testing.B) (*kurrentdbtest.Server, *Log, *esdb.Client) {
	server := kurrentdbtest.Start(b, kurrentdbtest.Options{MaxAppendSize: 8 << 20})
	config, err := clientConfig(server.ConnectionString())
	if err != nil {
		b.Fatal(err)
	}
	bare, err := esdb.NewClient(config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { bare.Close() })
	return server, openLog(b, testConfig(server)), bare
}

// BenchmarkOverheadAppend is single events of 1 KB for new streams. A server
// that commits at once, in the same process, shows what the CPU has to do; a real
// one takes time to reach a disk or a quorum.
func BenchmarkOverheadAppend(b *testing.B) {
	for _, c := range []struct {
		callers int
		commit  time.Duration
	}{{1, 0}, {16, 0}, {64, 0}, {1, time.Millisecond}, {16, time.Millisecond}, {16, 5 * time.Millisecond}, {64, 5 * time.Millisecond}} {
		b.Run(fmt.Sprintf("callers=%d/commit=%s", c.callers, c.commit), func(b *testing.B) {
			callers := c.callers
			server, l, bare := benchPair(b)
			if c.commit > 0 {
				server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.AppendNotIndexed, Probability: 1, Delay: c.commit})
			}
			var turn atomic.Int64
			names := func() func(i int) string {
				prefix := turn.Add(1)
				return func(i int) string { return fmt.Sprintf("update-%d-%d", prefix, i) }
			}
			overhead(b, func(n int) time.Duration {
				name := names()
				return inParallel(b, callers, n, func(i int) error {
					_, err := l.Append(b.Context(), name(i), eventlog.NoStream, benchEvent())
					return err
				})
			}, func(n int) time.Duration {
				name := names()
				return inParallel(b, callers, n, func(i int) error {
					e := benchEvent()
					_, err := bare.AppendToStream(b.Context(), name(i), esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}},
						esdb.EventData{EventID: uuid.UUID(e.ID), EventType: e.Type, ContentType: esdb.ContentTypeJson, Data: e.Data, Metadata: []byte("{}")})
					return err
				})
			})
		})
	}
}

// BenchmarkOverheadReadStream is streams of 8 events of 1 KB.
func BenchmarkOverheadReadStream(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			_, l, bare := benchPair(b)
			const streams = 100
			for i := range streams {
				var events []eventlog.Proposed
				for range 8 {
					events = append(events, benchEvent())
				}
				mustAppend(b, l, fmt.Sprint("update-", i), eventlog.NoStream, events...)
			}
			overhead(b, func(n int) time.Duration {
				return inParallel(b, callers, n, func(i int) error {
					return drain(l, fmt.Sprint("update-", i%streams), b)
				})
			}, func(n int) time.Duration {
				return inParallel(b, callers, n, func(i int) error {
					s, err := bare.ReadStream(b.Context(), fmt.Sprint("test.update-", i%streams), esdb.ReadStreamOptions{From: esdb.Start{}}, readPageEvents)
					return drainBare(s, err)
				})
			})
		})
	}
}

func drain(l *Log, stream string, b *testing.B) error {
	for _, err := range l.ReadStream(b.Context(), stream, 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

func drainBare(s *esdb.ReadStream, err error) error {
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		if _, err := s.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// BenchmarkOverheadReadAll is a log of 5,000 events of 1 KB.
func BenchmarkOverheadReadAll(b *testing.B) {
	_, l, bare := benchPair(b)
	const events = 5000
	for i := range events / 50 {
		var list []eventlog.Proposed
		for range 50 {
			list = append(list, benchEvent())
		}
		mustAppend(b, l, fmt.Sprint("update-", i), eventlog.NoStream, list...)
	}
	overhead(b, func(n int) time.Duration {
		return inParallel(b, 1, n, func(int) error {
			for _, err := range l.ReadAll(b.Context(), eventlog.Start) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	}, func(n int) time.Duration {
		return inParallel(b, 1, n, func(int) error {
			return drainBare(bare.ReadAll(b.Context(), esdb.ReadAllOptions{From: esdb.Start{}}, 1<<30))
		})
	})
}
