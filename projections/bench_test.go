package projections_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

// benchJobs jobs of 3.5 events each, interleaved as 16 workers leave them.
const benchJobs = 30_000

func BenchmarkRebuild(b *testing.B) {
	log, events := busyLog(b, benchJobs)
	bench(b, log, events, func(ctx context.Context, s *projections.Store) error {
		return s.Rebuild(ctx, log, nil)
	})
}

func BenchmarkCatchUp(b *testing.B) {
	log, events := busyLog(b, benchJobs)
	bench(b, log, events, func(ctx context.Context, s *projections.Store) error {
		return s.CatchUp(ctx, log, nil)
	})
}

// bench measures feed on an empty file against reading the log alone.
func bench(b *testing.B, log eventlog.Log, events int, feed func(context.Context, *projections.Store) error) {
	var fed, read time.Duration
	for i := range b.N {
		store := openAt(b, filepath.Join(b.TempDir(), fmt.Sprint(i)))
		start := time.Now()
		if err := feed(b.Context(), store); err != nil {
			b.Fatal(err)
		}
		fed += time.Since(start)
		start = time.Now()
		for _, err := range log.ReadAll(b.Context(), eventlog.Start) {
			if err != nil {
				b.Fatal(err)
			}
		}
		read += time.Since(start)
	}
	b.ReportMetric(float64(events*b.N)/fed.Seconds(), "events/s")
	b.ReportMetric(float64(events*b.N)/read.Seconds(), "bare-events/s")
	b.ReportMetric(fed.Seconds()/read.Seconds(), "times-bare")
}

// busyLog has n finished jobs, every second of them delivered twice.
func busyLog(b *testing.B, n int) (log *memory.Log, events int) {
	log = memory.New()
	w := scribe{log: log, now: epoch}
	const workers = 16
	for first := 0; first < n; first += workers {
		for i := first; i < min(first+workers, n); i++ {
			w.receive(b, message(7, int64(i), strings.Repeat("text ", 60)))
		}
		for i := first; i < min(first+workers, n); i++ {
			w.claim(b, w.jobs[i])
		}
		for i := first; i < min(first+workers, n); i++ {
			w.tell(b, w.jobs[i], job.LeadConfirmed{CRMID: fmt.Sprintf("lead-%d", i), How: job.ByCreate})
			if i%2 == 0 {
				w.tell(b, w.jobs[i], w.jobs[i].state.Repeat()...)
			}
		}
	}
	return log, w.events
}
