package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/poll"
	"github.com/leadonce/leadonce/ingress/reply"
	"github.com/leadonce/leadonce/ingress/telegram"
)

const namespace = "leadonce"

// seconds are the bounds of the histograms: from a fast append to the longest
// call.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 60}

// Metrics counts. It is an engine.Observer and safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	deliveries    *prometheus.CounterVec   // bot, result
	delivering    *prometheus.HistogramVec // result
	appending     *prometheus.HistogramVec // outcome
	accepted      *prometheus.CounterVec   // kind
	events        *prometheus.CounterVec   // event
	calling       *prometheus.HistogramVec // request, outcome
	reconciling   *prometheus.CounterVec   // human
	receiptsClash prometheus.Counter
	keysClash     prometheus.Counter
	troubles      prometheus.Counter
	replies       *prometheus.CounterVec // result
	fetching      *prometheus.CounterVec // bot, kind
}

var _ engine.Observer = (*Metrics)(nil)

// New is a Metrics that has counted nothing yet.
func New() *Metrics {
	m := &Metrics{
		registry:      prometheus.NewRegistry(),
		deliveries:    counters("deliveries_total", "Deliveries from Telegram by bot and result; bots that are not configured are one.", "bot", "result"),
		delivering:    histograms("delivery_seconds", "Time to answer a delivery, by result.", "result"),
		appending:     histograms("log_append_seconds", "Time of an append to the log, by outcome.", "outcome"),
		accepted:      counters("updates_accepted_total", "Updates that became a job, by kind; kinds that the Bot API does not name are other.", "kind"),
		events:        counters("events_total", "Events recorded by the engine, by name.", "event"),
		calling:       histograms("crm_call_seconds", "Time of a request to the CRM, by request and outcome.", "request", "outcome"),
		reconciling:   counters("reconciliations_needed_total", "Jobs that came into needs_reconciliation, or were left there to a human.", "human"),
		receiptsClash: counter("receipts_conflicted_total", "Incidents: a CRM id that contradicts what is recorded."),
		keysClash:     counter("keys_conflicted_total", "Incidents: another update under a key that was taken."),
		troubles:      counter("troubles_total", "Steps of the engine that could not be done and are tried again."),
		replies:       counters("replies_total", "Replies to people by result.", "result"),
		fetching:      counters("poll_failures_total", "Calls of getUpdates that fetched nothing because they failed, by bot and kind.", "bot", "kind"),
	}
	m.registry.MustRegister(
		m.deliveries, m.delivering, m.appending, m.accepted, m.events, m.calling, m.reconciling,
		m.receiptsClash, m.keysClash, m.troubles, m.replies, m.fetching,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	// A series that is born at 1 has never grown: alarms need it at 0.
	for _, name := range job.EventNames() {
		m.events.WithLabelValues(name)
	}
	for _, result := range reply.Results() {
		m.replies.WithLabelValues(string(result))
	}
	return m
}

// Expect makes the series of the bots' deliveries.
func (m *Metrics) Expect(bots ...int64) {
	for _, bot := range bots {
		for _, result := range telegram.Results() {
			m.deliveries.WithLabelValues(strconv.FormatInt(bot, 10), string(result))
		}
	}
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: seconds}, labels)
}

// Handler answers GET /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 8})
}

// noBot is the label of every bot that is not configured.
const noBot = "none"

// Delivered is for telegram.Config.Observe.
func (m *Metrics) Delivered(d telegram.Delivery) {
	bot := noBot
	if d.Bot != 0 {
		bot = strconv.FormatInt(d.Bot, 10)
	}
	m.deliveries.WithLabelValues(bot, string(d.Result)).Inc()
	m.delivering.WithLabelValues(string(d.Result)).Observe(d.Took.Seconds())
}

// Replied is for reply.Config.Observe.
func (m *Metrics) Replied(r reply.Result) { m.replies.WithLabelValues(string(r)).Inc() }

// Fetched is for poll.Config.Fetched.
func (m *Metrics) Fetched(f poll.Fetch) {
	if f.Trouble != poll.NoTrouble {
		m.fetching.WithLabelValues(strconv.FormatInt(f.Bot, 10), string(f.Trouble)).Inc()
	}
}

// Fetches makes the series of a bot whose updates are fetched. silence is how long ago
// that succeeded last; it is called as one of Gauges is.
func (m *Metrics) Fetches(bot int64, silence func() time.Duration) {
	label := strconv.FormatInt(bot, 10)
	for _, kind := range poll.Troubles() {
		m.fetching.WithLabelValues(label, string(kind))
	}
	m.gauge("poll_silence_seconds", "Time since the bot's updates were fetched last, be it none; before the first time, since the start.",
		prometheus.Labels{"bot": label}, silence)
}

// Gauges are what others know and a scrape asks for. Each function is called at
// every scrape, at the same time as anything else, and must be quick; one that
// is nil is not served.
type Gauges struct {
	Backlog       func() engine.Backlog
	OldestOpenJob func() time.Duration            // age; 0 when none is open
	ProjectionLag map[string]func() time.Duration // by projection: how far it is behind
}

// Serve adds the gauges. It is called once.
func (m *Metrics) Serve(g Gauges) {
	if g.Backlog != nil {
		m.registry.MustRegister(backlog{g.Backlog})
	}
	if g.OldestOpenJob != nil {
		m.gauge("oldest_open_job_seconds", "Age of the oldest job that is not final.", nil, g.OldestOpenJob)
	}
	for name, lag := range g.ProjectionLag {
		m.gauge("projection_lag_seconds", "How far a projection is behind the log.", prometheus.Labels{"projection": name}, lag)
	}
}

func (m *Metrics) gauge(name, help string, labels prometheus.Labels, value func() time.Duration) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: labels},
		func() float64 { return value().Seconds() },
	))
}

// backlog reads its three gauges from one look.
type backlog struct{ count func() engine.Backlog }

var backlogDesc = prometheus.NewDesc(namespace+"_jobs", "Jobs that are not final: open ones, those that wait for a human, and those stopped by an event that cannot be decoded.", []string{"state"}, nil)

func (b backlog) Describe(ch chan<- *prometheus.Desc) { ch <- backlogDesc }

func (b backlog) Collect(ch chan<- prometheus.Metric) {
	now := b.count()
	for state, n := range map[string]int{"open": now.Open, "human": now.Human, "stopped": now.Stopped} {
		ch <- prometheus.MustNewConstMetric(backlogDesc, prometheus.GaugeValue, float64(n), state)
	}
}
