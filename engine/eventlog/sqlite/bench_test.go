package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// The ratios are what counts: both sides are measured in one run, on one disk.
//
//	go test -run '^$' -bench . ./engine/eventlog/sqlite/

const benchData = 1024 // bytes in an event

// benchStreams is the size of the big log; LEADONCE_BENCH_STREAMS=5000000
// makes it bigger.
func benchStreams(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("LEADONCE_BENCH_STREAMS"))
	if err != nil {
		return 1_000_000
	}
	return n
}

// BenchmarkAppend is single events for new streams, by 1, 64 and 256 callers
// at a time, against a bare file that is appended to with one sync for
// whatever waits.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := open(b, newPath(b), Options{})
			rate := appendRate(b, l, callers, 0, b.N)
			b.StopTimer()
			bare := bareRate(b, callers, b.N)
			s := l.Stats()
			b.ReportMetric(rate, "appends/s")
			b.ReportMetric(rate/bare, "of_bare_file")
			b.ReportMetric(float64(s.Events)/float64(s.Batches), "events/fsync")
		})
	}
}

// BenchmarkAppendToBigLog is the same for a log of a million streams, against
// an empty one, in turns so that both meet the same disk.
func BenchmarkAppendToBigLog(b *testing.B) {
	streams := benchStreams(b)
	big := open(b, newPath(b), Options{})
	start := time.Now()
	fillLog(b, big, streams)
	b.Logf("%d streams made in %v", streams, time.Since(start).Round(time.Second))
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			const turns = 4
			empty := open(b, newPath(b), Options{})
			var bigTime, emptyTime float64
			n := max(b.N, turns)
			for range turns {
				emptyTime += 1 / appendRate(b, empty, callers, int(empty.Stats().Events), n/turns)
				bigTime += 1 / appendRate(b, big, callers, int(big.Stats().Events), n/turns)
			}
			b.ReportMetric(turns/bigTime, "appends/s")
			b.ReportMetric(emptyTime/bigTime, "of_empty_log")
		})
	}
}

// BenchmarkReadAll reads a whole log.
func BenchmarkReadAll(b *testing.B) {
	const events = 100_000
	l := open(b, newPath(b), Options{})
	fillLog(b, l, events)
	b.ReportAllocs()
	for b.Loop() {
		if got := countAll(b, l); got != events {
			b.Fatalf("read %d events, want %d", got, events)
		}
	}
	b.ReportMetric(float64(b.N)*events/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkReadStream reads one short stream out of many.
func BenchmarkReadStream(b *testing.B) {
	const streams = 10_000
	l := open(b, newPath(b), Options{})
	fillLog(b, l, streams)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if got := count(b, l.ReadStream(b.Context(), name(i*7919%streams), 0)); got != 1 {
			b.Fatalf("read %d events, want 1", got)
		}
	}
}

var benchPayload = []byte(`{"update":"` + strings.Repeat("x", benchData-13) + `"}`)

func benchEvent() eventlog.Proposed {
	e := event("")
	e.Data = benchPayload
	return e
}

// appendRate is the appends in a second when callers append n events to n new
// streams, the first of them named after first.
func appendRate(b *testing.B, l *Log, callers, first, n int) float64 {
	return rate(b, callers, n, func(i int) error {
		_, err := l.Append(b.Context(), name(first+i), eventlog.NoStream, benchEvent())
		return err
	})
}

func rate(b *testing.B, callers, n int, do func(i int) error) float64 {
	var next atomic.Int64
	var running sync.WaitGroup
	start := time.Now()
	for range callers {
		running.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// fillLog makes streams by the shortest way, past the queue. The streams count
// in Stats, so that the next name follows them.
func fillLog(b *testing.B, l *Log, streams int) {
	ctx := context.Background()
	w, err := openWriter(ctx, l.path, l.opts)
	if err != nil {
		b.Fatal(err)
	}
	defer w.close()
	const batch = 5000
	for first := 0; first < streams; first += batch {
		if err := w.start(ctx); err != nil {
			b.Fatal(err)
		}
		for i := first; i < min(first+batch, streams); i++ {
			r := &request{stream: name(i), expected: eventlog.NoStream, events: []eventlog.Proposed{benchEvent()}}
			if err := w.apply(ctx, r); err != nil || r.err != nil {
				b.Fatal(err, r.err)
			}
		}
		if _, _, err := w.commit.exec(ctx); err != nil {
			b.Fatal(err)
		}
	}
	l.events.Add(uint64(streams))
}

// bareRate is what the disk gives: the same events in a plain file, one write
// and one sync for whatever waits.
func bareRate(b *testing.B, callers, n int) float64 {
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	type write struct {
		data []byte
		done chan error
	}
	queue := make(chan write, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		var buffer []byte
		var waiting []write
		for first := range queue {
			waiting = append(waiting[:0], first)
			buffer = append(buffer[:0], first.data...)
			for more := true; more && len(waiting) < batchEvents; {
				select {
				case w, ok := <-queue:
					if more = ok; ok {
						waiting = append(waiting, w)
						buffer = append(buffer, w.data...)
					}
				default:
					more = false
				}
			}
			_, err := f.Write(buffer)
			if err == nil {
				err = f.Sync()
			}
			for _, w := range waiting {
				w.done <- err
			}
		}
	})
	got := rate(b, callers, n, func(i int) error {
		w := write{data: benchEvent().Data, done: make(chan error, 1)}
		queue <- w
		return <-w.done
	})
	close(queue)
	writing.Wait()
	return got
}
