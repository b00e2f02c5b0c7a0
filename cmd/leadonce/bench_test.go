package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/ingress/telegram/telegramtest"
	"github.com/leadonce/leadonce/projections"
)

// These benchmarks run the whole program. Each runs once for a fixed time or
// amount, whatever -benchtime says:
//
//	go test -run '^$' -bench . -benchtime 1x ./cmd/leadonce
//
// LEADONCE_BENCH_JOBS=1000000 restarts on a bigger log, LEADONCE_BENCH_SECONDS=600
// watches the memory for longer.

// BenchmarkRestart is how long it takes from the start of the process until
// /readyz is 200, on a log with many finished jobs and 1,000 open ones, that a
// server left behind which was killed: after-kill-s. The other three are without
// the agenda's snapshot, without the read models, and with nothing but the log.
func BenchmarkRestart(b *testing.B) {
	const (
		open   = 1_000
		recent = 5_000 // finished since the newest snapshot: 15 s at 333/s
		within = 10 * time.Minute
	)
	jobs := benchNumber(b, "LEADONCE_BENCH_JOBS", 100_000)
	crm, url := simulatedCRM(b)
	v := newBench(b, url)
	began := time.Now()
	fillLog(b, v.file(logFile), telegramtest.FirstID, jobs-recent)
	b.Logf("%d finished jobs written in %v", jobs-recent, time.Since(began).Round(time.Second))

	nothing := v.start(within)
	v.stop()
	snapshot, err := os.ReadFile(v.file(snapshotFile))
	if err != nil {
		b.Fatal(err)
	}
	v.start(within)
	fillLog(b, v.file(logFile), telegramtest.FirstID+int64(jobs), recent)
	if _, err := crm.Down(b.Context(), within); err != nil { // or they would not stay open
		b.Fatal(err)
	}
	v.deliver(10*telegramtest.FirstID-open, open)
	v.awaitModels()
	v.kill()

	restart := func(prepare func()) time.Duration {
		if err := os.WriteFile(v.file(snapshotFile), snapshot, 0o600); err != nil {
			b.Fatal(err)
		}
		prepare()
		took := v.start(within)
		if got := v.open(); got != open {
			b.Errorf("%d open jobs are known after the restart, want %d", got, open)
		}
		v.kill()
		return took
	}
	afterKill := restart(func() {})
	for range 2 {
		afterKill = max(afterKill, restart(func() {}))
	}
	b.ReportMetric(afterKill.Seconds(), "after-kill-s")
	b.ReportMetric(restart(func() { v.remove(snapshotFile) }).Seconds(), "no-snapshot-s")
	b.ReportMetric(restart(func() { v.remove(modelsFile, modelsFile+"-wal", modelsFile+"-shm") }).Seconds(), "no-models-s")
	b.ReportMetric(nothing.Seconds(), "log-alone-s")
	b.ReportMetric(float64(jobs), "jobs")
	b.ReportMetric(0, "ns/op")
}

func (v *bench) remove(names ...string) {
	for _, name := range names {
		if err := os.Remove(v.file(name)); err != nil && !os.IsNotExist(err) {
			v.Fatal(err)
		}
	}
}

// deliver delivers n updates.
func (v *bench) deliver(first int64, n int) {
	v.Helper()
	s, err := telegramtest.Dial(v.addr, benchBot, benchSecret)
	if err != nil {
		v.Fatal(err)
	}
	defer s.Close()
	for i := range n {
		if err := s.Deliver(first + int64(i)); err != nil {
			v.Fatal(err)
		}
	}
}

// awaitModels returns when the read models have seen what was delivered.
func (v *bench) awaitModels() {
	v.Helper()
	log, closeLog, err := openLog(v.Context(), config{Log: "sqlite", DataDir: v.data()}, false, slog.New(slog.DiscardHandler))
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = closeLog() }()
	models, closeModels, err := openModels(v.Context(), config{DataDir: v.data()}, projections.Options{})
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = closeModels() }()
	tail, err := log.Tail(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		at, err := models.Checkpoint(v.Context())
		if err != nil {
			v.Fatal(err)
		}
		if at.Position.Compare(tail) >= 0 {
			return
		}
		if time.Now().After(until) {
			v.Fatal("the read models do not follow")
		}
	}
}

// BenchmarkMemory is what the kernel counts as the program's memory while
// updates arrive at a steady rate: the largest, and how much it grows in a
// minute, by the line that fits best in the second half of the time. It begins
// with a log that is to be projected, so that SQLite's caches are filled before
// they are measured: until then every page that is written stays in memory.
func BenchmarkMemory(b *testing.B) {
	const (
		jobs        = 50_000
		rate        = 300 // updates a second
		connections = 16
		every       = 250 * time.Millisecond
	)
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		b.Skip("needs /proc")
	}
	seconds := benchNumber(b, "LEADONCE_BENCH_SECONDS", 60)
	_, url := simulatedCRM(b)
	v := newBench(b, url)
	fillLog(b, v.file(logFile), 5*telegramtest.FirstID, jobs)
	v.start(time.Minute)
	ctx, cancel := context.WithTimeout(b.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	var loading sync.WaitGroup
	loading.Go(func() { steady(b, ctx, v.addr, connections, rate) })
	var at, size []float64 // minutes, MB
	largest := 0.0
	for began, tick := time.Now(), time.NewTicker(every); ctx.Err() == nil; <-tick.C {
		mb := float64(v.resident()) / 1e6
		largest = max(largest, mb)
		at, size = append(at, time.Since(began).Minutes()), append(size, mb)
	}
	loading.Wait()
	b.ReportMetric(largest, "max-MB")
	b.ReportMetric(slope(at[len(at)/2:], size[len(size)/2:]), "MB/min")
	b.ReportMetric(float64(v.open()), "open-jobs")
	b.ReportMetric(0, "ns/op")
	v.stop()
}

// steady delivers at the rate until ctx ends; a server that is too slow for it is
// an error.
func steady(b *testing.B, ctx context.Context, addr string, connections, rate int) {
	due := make(chan int64, 10*rate)
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			s, err := telegramtest.Dial(addr, benchBot, benchSecret)
			if err != nil {
				b.Error(err)
				return
			}
			defer s.Close()
			for id := range due {
				if err := s.Deliver(id); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	defer all.Wait()
	defer close(due)
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for id := int64(telegramtest.FirstID); ; id++ {
		select {
		case due <- id:
		default:
			b.Errorf("the server is 10 s behind %d updates a second", rate)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// slope is that of the line with the least squares.
func slope(x, y []float64) float64 {
	var mx, my, xy, xx float64
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
	}
	return xy / xx
}
