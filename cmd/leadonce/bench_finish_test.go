package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/telegram/telegramtest"
)

// BenchmarkFinish is the whole way of an update, from its delivery to a lead that
// is confirmed, with as many on their way as keep everything busy. The CRM, the
// client and the program share one process, so that one profile shows where the
// time of the machine goes; it is printed as a table, and kept in the file that
// LEADONCE_BENCH_PROFILE names.
func BenchmarkFinish(b *testing.B) {
	for _, workers := range []int{8, 32} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) { benchFinish(b, workers) })
	}
}

const (
	onTheirWay  = 256 // updates that are delivered and not yet leads
	connections = 32
	warmUp      = time.Second
	measured    = 5 * time.Second
)

func benchFinish(b *testing.B, workers int) {
	var crm *crmsim.Server
	var url string
	labelled("crmsim", func() { crm, url = simulatedCRM(b) })
	a, addr, stop := bootApp(b, url, workers)
	var delivered atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	var loading sync.WaitGroup
	labelled("load", func() { loading.Go(func() { flood(b, ctx, addr, crm, &delivered) }) })

	time.Sleep(warmUp)
	profile := cmp.Or(os.Getenv("LEADONCE_BENCH_PROFILE"), filepath.Join(b.TempDir(), "cpu"))
	f, err := os.Create(profile)
	if err != nil {
		b.Fatal(err)
	}
	before, began := crm.Stats().Created, time.Now()
	if err := pprof.StartCPUProfile(f); err != nil {
		b.Fatal(err)
	}
	time.Sleep(measured)
	pprof.StopCPUProfile()
	jobs, took := crm.Stats().Created-before, time.Since(began)
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	cancel()
	loading.Wait()
	awaitDone(b, a, delivered.Load())
	stop()
	b.ReportMetric(float64(jobs)/took.Seconds(), "jobs/s")
	b.ReportMetric(0, "ns/op")
	printShares(b, profile, max(jobs, 1))
}

// labelled marks the goroutines that f starts, and those they start, in the
// profile.
func labelled(part string, f func()) {
	pprof.Do(context.Background(), pprof.Labels(partLabel, part), func(context.Context) { f() })
}

// bootApp runs the app as `leadonce serve` does, until stop.
func bootApp(b *testing.B, crmURL string, workers int) (a *app, addr string, stop func()) {
	b.Helper()
	c := defaultConfig()
	c.DataDir, c.Workers = b.TempDir(), workers
	c.Bots = []botConfig{{ID: benchBot, Secrets: []string{benchSecret}}}
	c.CRM.Connector, c.CRM.URL, c.CRM.Class, c.CRM.TrustDeclared = "crmsim", crmURL, string(benchClass), true
	if err := c.check(); err != nil {
		b.Fatal(err)
	}
	lines, err := os.Create(filepath.Join(c.DataDir, "serve.log"))
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	labelled("app", func() {
		if a, err = newApp(ctx, c, newLogger(lines, c.Logging)); err != nil {
			b.Fatal(err)
		}
		go func() { ended <- a.run(ctx, listener) }()
	})
	return a, listener.Addr().String(), func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		_ = lines.Close()
	}
}

// flood delivers until ctx ends, and waits while too many are on their way.
func flood(b *testing.B, ctx context.Context, addr string, crm *crmsim.Server, delivered *atomic.Int64) {
	places := make(chan struct{}, onTheirWay)
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			s, err := telegramtest.Dial(addr, benchBot, benchSecret)
			if err != nil {
				b.Error(err)
				return
			}
			defer s.Close()
			for {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				if err := s.Deliver(telegramtest.FirstID + delivered.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	defer all.Wait()
	left := 0
	for ctx.Err() == nil {
		_ = systemClock{}.Sleep(ctx, 2*time.Millisecond)
		for done := crm.Stats().Created; left < done; left++ {
			select {
			case <-places:
			case <-ctx.Done():
				return
			}
		}
	}
}

// awaitDone checks that every update became a lead.
func awaitDone(b *testing.B, a *app, delivered int64) {
	b.Helper()
	err := poll(func() bool {
		counts, err := a.models.Counts(b.Context())
		return err == nil && counts.Phases[job.Done] == delivered && counts.Jobs == delivered
	})
	if err != nil {
		b.Fatalf("%d updates were delivered: not all of them are done: %v", delivered, err)
	}
}
