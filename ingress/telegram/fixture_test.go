package telegram_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress"
	"github.com/leadonce/leadonce/ingress/metrics"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// What must never be seen in a log line. Every scene looks for them.
const (
	secret      = "canary-Secret_current"
	otherSecret = "canary-Secret_previous"
	secondBots  = "canary-Secret_of-the-second-bot"
	text        = "canary text of a person"
)

var canaries = []string{"canary", "Secret_"}

const (
	bot       = 424242
	secondBot = 777
)

var testTime = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

var testPolicy = job.Policy{
	MaxAttempts: 3, RetryFirst: time.Second, RetryMax: time.Minute,
	Lease: 30 * time.Second, CallTimeout: 10 * time.Second, ClockSkew: time.Second,
}

// scene is one running instance: the real router, handler and engine, served on
// loopback by the real server.
type scene struct {
	*testing.T
	log     eventlog.Log
	clock   *clock
	crm     *connector
	engine  *engine.Engine
	metrics *metrics.Metrics
	url     string
	addr    string

	lines   *lockedBuffer
	results *results
}

// setup is what a scene may differ in.
type setup struct {
	log    eventlog.Log // default: a memory log
	clock  *clock
	crm    *connector
	worker string
	config func(*telegram.Config)
	server func(*ingress.ServerConfig)
}

func newScene(t *testing.T, options setup) *scene {
	t.Helper()
	s := &scene{T: t, log: options.log, clock: options.clock, crm: options.crm, lines: &lockedBuffer{}, results: &results{}, metrics: metrics.New()}
	if s.log == nil {
		s.log = memory.New()
	}
	if s.clock == nil {
		s.clock = &clock{now: testTime}
	}
	if s.crm == nil {
		s.crm = &connector{}
	}
	var err error
	s.engine, err = engine.New(engine.Config{
		Log: s.log, CRM: s.crm, Clock: s.clock, IDs: randomIDs{}, Observer: s.metrics,
		Plan: everyKeyIsALead, Worker: "worker-" + options.worker,
		Policy: testPolicy,
	})
	s.must(err)
	logger := slog.New(slog.NewJSONHandler(s.lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := telegram.Config{
		Bots: []telegram.Bot{
			{ID: bot, Secrets: []string{secret, otherSecret}},
			{ID: secondBot, Secrets: []string{secondBots}},
		},
		Accepter: s.engine, Logger: logger,
		Observe: func(d telegram.Delivery) { s.results.add(d); s.metrics.Delivered(d) },
	}
	if options.config != nil {
		options.config(&c)
	}
	handler, err := telegram.New(c)
	s.must(err)
	s.serve(ingress.Router(ingress.Config{Telegram: handler, Metrics: s.metrics.Handler(), Logger: logger}), logger, options)
	return s
}

// serve starts the server. When the test ends, it is stopped, and then the log
// must be free of canaries.
func (s *scene) serve(router http.Handler, logger *slog.Logger, options setup) {
	s.Helper()
	sc := ingress.ServerConfig{Logger: logger}
	if options.server != nil {
		options.server(&sc)
	}
	server, err := ingress.Server(sc, router)
	s.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.addr = listener.Addr().String()
	s.url = "http://" + s.addr
	ended := make(chan error, 1)
	go func() { ended <- ingress.Serve(server, listener) }()
	s.Cleanup(func() {
		if err := server.Close(); err != nil {
			s.Error(err)
		}
		if err := <-ended; err != nil {
			s.Error(err)
		}
		s.lines.mustNotHold(s.T, canaries)
	})
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// response is an answer, read to its end.
type response struct {
	status int
	header http.Header
	body   string
}

// deliver posts the body for the first bot, with its secret.
func (s *scene) deliver(body string) response {
	s.Helper()
	return s.post(bot, secret, body)
}

func (s *scene) post(bot int64, secret, body string) response {
	s.Helper()
	r, err := s.request(http.MethodPost, fmt.Sprintf("/telegram/%d", bot), strings.NewReader(body))
	s.must(err)
	r.Header.Set(telegram.SecretHeader, secret)
	return s.do(r)
}

func (s *scene) request(method, path string, body io.Reader) (*http.Request, error) {
	return http.NewRequestWithContext(s.Context(), method, s.url+path, body)
}

// do sends the request and checks what holds for every answer of all.
func (s *scene) do(r *http.Request) response {
	s.Helper()
	answer, err := client.Do(r)
	if err != nil {
		s.Error(err) // not Fatal: tests deliver from goroutines of their own
		return response{}
	}
	got := response{answer.StatusCode, answer.Header, readAll(s.T, answer.Body)}
	s.check(got)
	return got
}

func readAll(t *testing.T, body io.ReadCloser) string {
	t.Helper()
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// check is what every answer keeps: no redirect, never 410, no body with a 200
// but the call that answers a button, one line with anything else, and no secret
// anywhere.
func (s *scene) check(got response) {
	s.Helper()
	switch got.status {
	case 200:
		if got.body != "" && (got.body != buttonAnswered || got.header.Get("Content-Type") != "application/json") {
			s.Errorf("a 200 has the body %q: Telegram would read it as a method call", got.body)
		}
	case 400, 401, 404, 405, 413, 503:
		if strings.Count(got.body, "\n") != 1 || !strings.HasSuffix(got.body, "\n") || len(got.body) > 300 {
			s.Errorf("a %d has the body %q, want one short line", got.status, got.body)
		}
		if (got.status == 503) != (got.header.Get("Retry-After") != "") {
			s.Errorf("a %d has the header Retry-After %q", got.status, got.header.Get("Retry-After"))
		}
	default:
		s.Errorf("status %d is never an answer to a delivery", got.status)
	}
	if strings.Contains(got.body, "Secret_") {
		s.Errorf("an answer names a secret: %q", got.body)
	}
}

func (s *scene) want(status int, got response) {
	s.Helper()
	if got.status != status {
		s.Errorf("status %d %q, want %d", got.status, got.body, status)
	}
}

// client sends at once what it has, follows nothing and repeats nothing.
var client = &http.Client{
	Timeout:       30 * time.Second,
	Transport:     &http.Transport{MaxIdleConnsPerHost: 600, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// events are the names of the stream's events.
func (s *scene) events(key job.Key) []string {
	s.Helper()
	var names []string
	for r, err := range s.log.ReadStream(context.Background(), key.Stream(), 0) {
		s.must(err)
		e, err := job.Decode(r.Type, r.Data)
		s.must(err)
		names = append(names, e.Name())
	}
	return names
}

func (s *scene) wantEvents(key job.Key, want ...string) {
	s.Helper()
	if got := s.events(key); strings.Join(got, " ") != strings.Join(want, " ") {
		s.Errorf("%s has the events %v, want %v", key, got, want)
	}
}

// job is the state of the key's job.
func (s *scene) job(key job.Key) job.State {
	s.Helper()
	state, err := engine.Load(context.Background(), s.log, key.Stream())
	s.must(err)
	return state
}

// streams counts the streams of the log.
func (s *scene) streams() int {
	s.Helper()
	names := map[string]bool{}
	for r, err := range s.log.ReadAll(context.Background(), eventlog.Start) {
		s.must(err)
		names[r.Stream] = true
	}
	return len(names)
}

func (s *scene) wantStreams(want int) {
	s.Helper()
	if got := s.streams(); got != want {
		s.Errorf("the log has %d streams, want %d", got, want)
	}
}

func (s *scene) wantResults(want ...telegram.Result) {
	s.Helper()
	if got := fmt.Sprint(s.results.names()); got != fmt.Sprint(want) {
		s.Errorf("results %v, want %v", got, want)
	}
}

// work advances every job that is due, one step after the other.
func (s *scene) work() {
	s.Helper()
	agenda := engine.NewAgenda()
	for {
		s.must(agenda.Sweep(context.Background(), s.log, nil))
		stream, ok := agenda.Next(s.clock.Now())
		if !ok {
			return
		}
		verdict, err := s.engine.Advance(context.Background(), stream)
		s.must(err)
		s.must(agenda.Sweep(context.Background(), s.log, nil))
		agenda.Done(stream, verdict)
	}
}

func key(bot, update int64) job.Key { return job.Key{Bot: bot, Update: update} }

// message is an update with a message, as Telegram sends it.
func message(update int64, words string) string {
	return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"from":{"id":5550001,"is_bot":false,"first_name":"canary"},`+
		`"chat":{"id":5550001,"type":"private"},"date":1782900000,"text":%q}}`, update, update%100000, words)
}

// buttonAnswered is the only body of a 200.
const buttonAnswered = `{"method":"answerCallbackQuery","callback_query_id":"88"}`

// callback is an update with a pressed button.
func callback(update int64) string {
	return fmt.Sprintf(`{"update_id":%d,"callback_query":{"id":"88","from":{"id":5550001,"is_bot":false,"first_name":"canary"},`+
		`"message":{"message_id":12,"chat":{"id":5550001,"type":"private"},"date":1782900000},"chat_instance":"1","data":"canary"}}`, update)
}

// everyKeyIsALead asks for a lead for each business key, pressed buttons too.
func everyKeyIsALead(k job.Key, u job.Update) job.Plan {
	if u.Kind != "message" && u.Kind != "callback_query" {
		return job.DefaultPlan(k, u)
	}
	business, err := job.BusinessKey(k, u)
	if err != nil {
		return job.Plan{Undecodable: "its shape"}
	}
	return job.Plan{Effect: true, Action: job.CreateLead, BusinessKey: business}
}

func openSQLite(t *testing.T, path string) *sqlite.Log {
	t.Helper()
	log, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func logFile(t *testing.T) string { return filepath.Join(t.TempDir(), "log.db") }
