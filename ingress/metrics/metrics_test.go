package metrics_test

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/metrics"
	"github.com/leadonce/leadonce/ingress/telegram"
)

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("scrape: status %d, %v", w.Code, err)
	}
	return string(body)
}

func want(t *testing.T, scraped string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(scraped, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}

func TestDeliveriesHaveNoLabelsOfTheSenders(t *testing.T) {
	m := metrics.New()
	m.Delivered(telegram.Delivery{Bot: 42, Result: telegram.Stored, Took: 3 * time.Millisecond, Kind: "message"})
	m.Delivered(telegram.Delivery{Bot: 42, Result: telegram.Stored, Took: 30 * time.Millisecond, Kind: "message"})
	m.Delivered(telegram.Delivery{Bot: 42, Result: telegram.Unauthorized})
	for range 3 {
		m.Delivered(telegram.Delivery{Result: telegram.UnknownBot})
	}
	m.Recorded(job.State{}, []job.Event{job.UpdateReceived{Kind: "message"}})
	m.Recorded(job.State{}, []job.Event{job.UpdateReceived{Kind: "invented"}})
	m.Recorded(job.State{}, []job.Event{job.UpdateReceived{Kind: "invented too"}})
	got := scrape(t, m)
	want(t, got,
		`leadonce_deliveries_total{bot="42",result="stored"} 2`,
		`leadonce_deliveries_total{bot="42",result="unauthorized"} 1`,
		`leadonce_deliveries_total{bot="none",result="unknown_bot"} 3`,
		`leadonce_delivery_seconds_bucket{result="stored",le="0.005"} 1`,
		`leadonce_delivery_seconds_count{result="stored"} 2`,
		`leadonce_updates_accepted_total{kind="message"} 1`,
		`leadonce_updates_accepted_total{kind="other"} 2`,
		`leadonce_events_total{event="UpdateReceived"} 3`,
	)
	if strings.Contains(got, "invented") {
		t.Error("a sender chose a label")
	}
	if !strings.Contains(got, "\ngo_goroutines ") {
		t.Error("no metrics of the runtime")
	}
}

func TestIncidentsAndCalls(t *testing.T) {
	m := metrics.New()
	observer := metrics.Observers(m, m) // both are told
	observer.Recorded(job.State{}, []job.Event{
		job.ReconciliationNeeded{Human: true}, job.ReconciliationNeeded{}, job.ReceiptConflicted{}, job.KeyConflicted{},
	})
	observer.Called(job.State{}, engine.Create, 2*time.Second, nil)
	observer.Called(job.State{}, engine.Create, time.Minute, &crm.Error{Outcome: crm.NotApplied})
	observer.Called(job.State{}, engine.Find, time.Second, &crm.Error{})
	observer.Troubled("update-1-2", io.EOF)
	want(t, scrape(t, m),
		`leadonce_reconciliations_needed_total{human="true"} 2`,
		`leadonce_reconciliations_needed_total{human="false"} 2`,
		`leadonce_receipts_conflicted_total 2`,
		`leadonce_keys_conflicted_total 2`,
		`leadonce_crm_call_seconds_count{outcome="ok",request="create"} 2`,
		`leadonce_crm_call_seconds_sum{outcome="ok",request="create"} 4`,
		`leadonce_crm_call_seconds_count{outcome="not_applied",request="create"} 2`,
		`leadonce_crm_call_seconds_count{outcome="unknown",request="find"} 2`,
		`leadonce_troubles_total 2`,
	)
}

func TestGaugesAreAskedAtEachScrape(t *testing.T) {
	m, n := metrics.New(), 0
	m.Serve(metrics.Gauges{
		Backlog:       func() engine.Backlog { n++; return engine.Backlog{Open: n, Human: 2, Stopped: 3} },
		OldestOpenJob: func() time.Duration { return 90 * time.Second },
		ProjectionLag: map[string]func() time.Duration{
			"jobs":    func() time.Duration { return 0 },
			"mapping": func() time.Duration { return 1500 * time.Millisecond },
		},
	})
	scrape(t, m)
	want(t, scrape(t, m),
		`leadonce_jobs{state="open"} 2`, `leadonce_jobs{state="human"} 2`, `leadonce_jobs{state="stopped"} 3`,
		`leadonce_oldest_open_job_seconds 90`,
		`leadonce_projection_lag_seconds{projection="jobs"} 0`,
		`leadonce_projection_lag_seconds{projection="mapping"} 1.5`,
	)
	m = metrics.New()
	m.Serve(metrics.Gauges{})
	if strings.Contains(scrape(t, m), "leadonce_jobs") {
		t.Error("a gauge without a function is served")
	}
}

// brokenLog fails as it is told.
type brokenLog struct {
	eventlog.Log
	appending, tail error
	appends         int
}

func (l *brokenLog) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	l.appends++
	if l.appending != nil {
		return eventlog.Appended{}, l.appending
	}
	return l.Log.Append(ctx, stream, expected, events...)
}

func (l *brokenLog) Tail(ctx context.Context) (eventlog.Position, error) {
	if l.tail != nil {
		return eventlog.Start, l.tail
	}
	return l.Log.Tail(ctx)
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time                             { return c.now }
func (c *clock) Sleep(context.Context, time.Duration) error { panic("nobody sleeps here") }

type ids struct{ n byte }

func (i *ids) New() eventlog.EventID { i.n++; return eventlog.EventID{i.n} }

// observed is a log under observation, at a time that stands still.
type observed struct {
	*testing.T
	store   *brokenLog
	clock   *clock
	ids     *ids
	metrics *metrics.Metrics
	log     *metrics.Log
}

func newObserved(t *testing.T) *observed {
	o := &observed{
		T: t, store: &brokenLog{Log: memory.New()}, ids: &ids{}, metrics: metrics.New(),
		clock: &clock{now: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)},
	}
	o.log = o.metrics.Observe(o.store, o.clock, o.ids)
	return o
}

func (o *observed) append() error {
	_, err := o.log.Append(o.Context(), "update-1-1", eventlog.NoStream, eventlog.Proposed{ID: o.ids.New(), Type: "A.v1", Time: o.clock.now})
	return err
}

func (o *observed) wantWritable(want bool) {
	o.Helper()
	if err := o.log.Writable(o.Context()); (err == nil) != want {
		o.Errorf("writable: %v, want %t", err, want)
	}
}

func (o *observed) wantAppends(want int, why string) {
	o.Helper()
	if o.store.appends != want {
		o.Errorf("%d appends, want %s", o.store.appends, why)
	}
}

func TestWritableFollowsTheAppends(t *testing.T) {
	o := newObserved(t)
	o.wantWritable(true)
	if err := o.append(); err != nil {
		t.Fatal(err)
	}
	if err := o.append(); !eventlog.IsConflict(err) {
		t.Fatal(err)
	}
	o.wantWritable(true)
	o.store.tail = eventlog.ErrUnavailable
	o.wantWritable(false)
	o.store.tail = nil
	o.wantWritable(true)
	o.wantAppends(2, "no probe while all is well")

	o.store.appending = context.Canceled
	if err := o.append(); err == nil {
		t.Fatal("the append did not fail")
	}
	o.wantWritable(true) // a caller that went away
	want(t, scrape(t, o.metrics),
		`leadonce_log_append_seconds_count{outcome="ok"} 1`,
		`leadonce_log_append_seconds_count{outcome="conflict"} 1`,
		`leadonce_log_append_seconds_count{outcome="canceled"} 1`,
	)
}

func TestProbesOnceASecondUntilTheLogRecovers(t *testing.T) {
	for outcome, failure := range map[string]error{
		"unavailable": eventlog.ErrUnavailable,
		"unknown":     &eventlog.UnknownError{Err: io.EOF},
	} {
		o := newObserved(t)
		o.store.appending = failure
		if err := o.append(); err == nil {
			t.Fatal("the append did not fail")
		}
		for range 5 {
			o.wantWritable(false)
		}
		o.wantAppends(2, "the one that failed and its probe")
		o.store.appending = nil
		o.wantWritable(false) // not asked again yet
		o.clock.now = o.clock.now.Add(time.Second)
		o.wantWritable(true)
		o.clock.now = o.clock.now.Add(time.Second)
		o.wantWritable(true)
		o.wantAppends(3, "no probe after the recovery")
		want(t, scrape(t, o.metrics),
			`leadonce_log_append_seconds_count{outcome="ok"} 1`,
			`leadonce_log_append_seconds_count{outcome="`+outcome+`"} 2`,
		)
		for r, err := range o.store.ReadStream(t.Context(), metrics.ProbeStream, 0) {
			if err != nil || r.Type != "ReadinessProbed.v1" || r.Revision > 0 {
				t.Errorf("probe %d is %s, %v; want one", r.Revision, r.Type, err)
			}
		}
	}
}

// Traffic that works again needs no probe.
func TestAppendThatWorksEndsTheAlarm(t *testing.T) {
	o := newObserved(t)
	o.store.appending = context.DeadlineExceeded
	if err := o.append(); err == nil {
		t.Fatal("the append did not fail")
	}
	o.wantWritable(false)
	o.store.appending = nil
	if err := o.append(); err != nil {
		t.Fatal(err)
	}
	o.wantWritable(true)
}

// A probe on a stream of its own must be nothing to the agenda.
func TestProbesAreNoJobs(t *testing.T) {
	store := memory.New()
	_, err := store.Append(t.Context(), metrics.ProbeStream, eventlog.Any,
		eventlog.Proposed{ID: eventlog.EventID{1}, Type: "ReadinessProbed.v1", Time: time.Now(), Data: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	agenda := engine.NewAgenda()
	if err := agenda.Sweep(t.Context(), store, nil); err != nil {
		t.Fatal(err)
	}
	if b := agenda.Backlog(); b != (engine.Backlog{}) {
		t.Errorf("the backlog is %+v", b)
	}
}
