//go:build unix

package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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
// one that began empty. They take turns, each on a handle of its own, and the
// ratio is the median of the turns', so that what else the machine does meets
// both.
func BenchmarkAppendToBigLog(b *testing.B) {
	path, streams := newPath(b), benchStreams(b)
	big := open(b, path, Options{})
	fillLog(b, big, streams)
	if err := big.Close(); err != nil {
		b.Fatal(err)
	}
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			const turns = 31
			n := max(b.N/turns, 1)
			small, smallStreams := newPath(b), 0
			var rates, rateRatios, cpuRatios []float64
			for i := range turns {
				var ofBig, ofSmall turn
				if i%2 == 0 {
					ofBig, ofSmall = takeTurn(b, path, callers, streams, n), takeTurn(b, small, callers, smallStreams, n)
				} else {
					ofSmall, ofBig = takeTurn(b, small, callers, smallStreams, n), takeTurn(b, path, callers, streams, n)
				}
				streams, smallStreams = streams+n, smallStreams+n
				rates = append(rates, ofBig.rate)
				rateRatios = append(rateRatios, ofBig.rate/ofSmall.rate)
				cpuRatios = append(cpuRatios, ofSmall.cpu/ofBig.cpu)
			}
			b.ReportMetric(median(rates), "appends/s")
			b.ReportMetric(median(rateRatios), "of_empty_log")
			b.ReportMetric(median(cpuRatios), "of_empty_log_by_cpu")
		})
	}
}

type turn struct {
	rate float64 // appends/s
	cpu  float64 // seconds
}

func takeTurn(b *testing.B, path string, callers, first, n int) turn {
	l, err := Open(b.Context(), path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	before := cpuSeconds(b)
	rate := appendRate(b, l, callers, first, n)
	return turn{rate: rate, cpu: cpuSeconds(b) - before}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// cpuSeconds is what this process has used. Unlike the time, it does not
// depend on what else the machine does.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
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

// fillLog makes streams by the shortest way, past the queue.
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
