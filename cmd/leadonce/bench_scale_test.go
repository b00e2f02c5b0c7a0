package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
)

// crmLatency is how long the CRM of BenchmarkScaleOut takes for a request: it is what
// the workers wait for, so that more of them make more leads.
const crmLatency = 100 * time.Millisecond

// BenchmarkScaleOut is one process that accepts, and 1, 2 and 4 that make leads, as
// processes over one log, with more updates on their way than they can take. It tells
// how many leads are made in a second, that in relation to one process, and how many
// claims were refused because another process had claimed the job, for each job.
func BenchmarkScaleOut(b *testing.B) {
	exe := buildLogServer(b)
	for _, log := range []string{logSQLite, logKurrentDB} {
		var alone float64
		for _, processes := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("log=%s/processes=%d", log, processes), func(b *testing.B) {
				var flags []string
				if log == logKurrentDB {
					flags = serveDouble(b, exe)
				}
				rate := benchScale(b, processes, flags)
				if processes == 1 {
					alone = rate
				}
				b.ReportMetric(rate/alone, "×1")
			})
		}
	}
}

// serveDouble starts the double of KurrentDB, and returns the flags with which the
// program uses it.
func serveDouble(b *testing.B, exe string) (flags []string) {
	b.Helper()
	p, err := launch(b.TempDir(), own(), exe, "--listen", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.kill)
	found, err := p.await(`127[0-9.:]+`)
	if err != nil {
		b.Fatal(err)
	}
	return []string{"--log", logKurrentDB, "--kurrentdb-connection", "esdb://" + found[0] + "?tls=false"}
}

func benchScale(b *testing.B, processes int, flags []string) (rate float64) {
	crm, url := slowCRM(b)
	v := newBench(b, url)
	intake := v.role("ingress", flags...)
	var workers []member
	for range processes {
		workers = append(workers, v.role("worker", flags...))
	}
	var delivered atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	var loading sync.WaitGroup
	loading.Go(func() { flood(b, ctx, intake.addr, crm, &delivered) })
	time.Sleep(2 * warmUp)
	before, began := crm.Stats().Created, time.Now()
	lost := 0
	for _, w := range workers {
		lost -= w.conflicts(b)
	}
	time.Sleep(measured)
	jobs, took := crm.Stats().Created-before, time.Since(began)
	for _, w := range workers {
		lost += w.conflicts(b)
	}
	cancel()
	loading.Wait()
	if jobs == 0 {
		b.Fatal("no lead was made")
	}
	b.ReportMetric(float64(jobs)/took.Seconds(), "jobs/s")
	b.ReportMetric(float64(lost)/float64(jobs), "lost-claims/job")
	b.ReportMetric(0, "ns/op")
	return float64(jobs) / took.Seconds()
}

// slowCRM is the simulated CRM, without faults, behind its latency.
func slowCRM(b *testing.B) (crm *crmsim.Server, url string) {
	b.Helper()
	crm, err := crmsim.New(crmsim.Config{Class: benchClass})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = systemClock{}.Sleep(r.Context(), crmLatency)
		crm.ServeHTTP(w, r)
	}))
	b.Cleanup(func() {
		server.Close()
		if err := crm.Close(); err != nil {
			b.Error(err)
		}
	})
	return crm, server.URL
}

// member is one process of several.
type member struct {
	*program
	addr string
}

// role starts a process of the program in the role.
func (v *bench) role(role string, args ...string) member {
	v.Helper()
	p, err := launch(v.dir, own(), v.exe, append([]string{"serve", "--listen", "127.0.0.1:0", "--role", role}, args...)...)
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(p.kill)
	found, err := p.await(`serving.*http://([0-9.:]+)`)
	if err != nil {
		v.Fatal(err)
	}
	if err := poll(func() bool {
		status, _, err := get("http://" + found[1] + "/readyz")
		return err == nil && status == http.StatusOK
	}); err != nil {
		v.Fatal(errors.Join(errors.New(role+" is not ready"), err))
	}
	return member{p, found[1]}
}

var refusedAppends = regexp.MustCompile(`leadonce_log_append_seconds_count\{outcome="conflict"\} (\d+)`)

// conflicts is how many of the process's appends were refused since it started.
func (m member) conflicts(b *testing.B) int {
	b.Helper()
	_, body, err := get("http://" + m.addr + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	found := refusedAppends.FindStringSubmatch(body)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		b.Fatal(err)
	}
	return n
}
