package poll_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
	"github.com/leadonce/leadonce/ingress/metrics"
	"github.com/leadonce/leadonce/ingress/poll"
	"github.com/leadonce/leadonce/ingress/telegram"
)

func TestMain(m *testing.M) {
	if os.Getenv(doomedLog) != "" {
		os.Exit(m.Run()) // it is killed
	}
	goleak.VerifyTestMain(m)
}

const (
	bot   = 424242
	token = "424242:canary-token_of-the-bot"
	text  = "canary text of a person"
)

// scene is a Bot API, a log, and a poller between them.
type scene struct {
	*testing.T
	api    *botapitest.Server
	log    *hookedLog
	engine *engine.Engine
	crm    *leads
	lines  *lines

	mu       sync.Mutex
	fetched  []telegram.Delivery
	sleeps   []time.Duration
	config   func(*poll.Config)
	stopping context.CancelFunc
	ended    chan error
}

func newScene(t *testing.T, log eventlog.Log) *scene {
	t.Helper()
	api, err := botapitest.New(token, botapitest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	return sceneOn(t, log, api)
}

func sceneOn(t *testing.T, log eventlog.Log, api *botapitest.Server) *scene {
	t.Helper()
	s := &scene{T: t, api: api, log: &hookedLog{Log: log}, crm: &leads{made: map[string]int{}}, lines: &lines{}}
	s.engine = newEngine(t, s.log, s.crm)
	t.Cleanup(func() {
		if got := s.lines.String(); strings.Contains(got, "canary") {
			t.Errorf("the log shows what it must not:\n%s", got)
		}
	})
	return s
}

func newEngine(t *testing.T, log eventlog.Log, leads crm.Connector) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Config{
		Log: log, CRM: leads, Clock: clock{}, IDs: randomIDs{}, Observer: metrics.Observers(), Plan: job.DefaultPlan, Worker: "w",
		Policy: job.Policy{MaxAttempts: 3, RetryFirst: time.Second, RetryMax: time.Minute, Lease: 30 * time.Second, CallTimeout: 10 * time.Second, ClockSkew: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// start polls in the background until stop, or the test's end.
func (s *scene) start() {
	s.Helper()
	client, err := botapi.New(botapi.Config{Token: token, BaseURL: s.api.URL})
	s.must(err)
	c := poll.Config{
		Bots: []*botapi.Client{client}, Accepter: s.engine,
		Logger:  slog.New(slog.NewJSONHandler(s.lines, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: s.observe, Sleep: s.sleep,
	}
	if s.config != nil {
		s.config(&c)
	}
	var ctx context.Context
	ctx, s.stopping = context.WithCancel(context.Background())
	s.ended = make(chan error, 1)
	go func(ended chan<- error) { ended <- poll.Run(ctx, c) }(s.ended)
	s.Cleanup(s.stop)
}

func (s *scene) stop() {
	s.Helper()
	if s.stopping == nil {
		return
	}
	s.stopping()
	s.stopping = nil
	select {
	case err := <-s.ended:
		if err != nil {
			s.Errorf("the poller ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		s.Error("the poller does not end")
	}
}

func (s *scene) observe(d telegram.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = append(s.fetched, d)
}

// sleep notes how long a pause was meant to be, and makes a short one of it.
func (s *scene) sleep(ctx context.Context, d time.Duration) error {
	s.mu.Lock()
	s.sleeps = append(s.sleeps, d)
	s.mu.Unlock()
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (s *scene) count(result telegram.Result) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.fetched {
		if d.Result == result {
			n++
		}
	}
	return n
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// await waits for what another goroutine does.
func (s *scene) await(what string, done func() bool) {
	s.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	timeout := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-timeout:
			s.Fatalf("waited in vain: %s; the log:\n%s", what, s.lines)
		}
	}
}

func (s *scene) awaitConfirmed() {
	s.Helper()
	s.await("every update is confirmed", func() bool { return len(s.api.Pending()) == 0 })
}

func (s *scene) awaitLine(words string) {
	s.Helper()
	s.await("a line with "+words, func() bool { return strings.Contains(s.lines.String(), words) })
}

// push queues a message of the chat.
func (s *scene) push(chat int64) int64 {
	return s.api.Push("message", chat, fmt.Sprintf(`{"message_id":1,"chat":{"id":%d,"type":"private"},"from":{"id":%d,"first_name":"canary"},"text":%q}`, chat, chat, text))
}

// stored are the updates in the log, by their stream, in its order.
func (s *scene) stored() (streams, bodies []string) {
	s.Helper()
	for r, err := range s.log.ReadAll(context.Background(), eventlog.Start) {
		s.must(err)
		e, err := job.Decode(r.Type, r.Data)
		s.must(err)
		if received, ok := e.(job.UpdateReceived); ok {
			streams, bodies = append(streams, r.Stream), append(bodies, received.Update)
		}
	}
	return streams, bodies
}

// wantStored checks that these updates are in the log, each once.
func (s *scene) wantStored(ids ...int64) {
	s.Helper()
	got, _ := s.stored()
	var want []string
	for _, id := range ids {
		want = append(want, key(id).Stream())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("stored are %v, want %v", got, want)
	}
}

// work makes the leads.
func (s *scene) work() {
	s.Helper()
	ctx, agenda := context.Background(), engine.NewAgenda()
	for {
		s.must(agenda.Sweep(ctx, s.log, nil))
		stream, ok := agenda.Next(time.Now())
		if !ok {
			return
		}
		verdict, err := s.engine.Advance(ctx, stream)
		s.must(err)
		s.must(agenda.Sweep(ctx, s.log, nil))
		agenda.Done(stream, verdict)
	}
}

// hookedLog is a log whose appends can be held up and made to fail.
type hookedLog struct {
	eventlog.Log
	mu            sync.Mutex
	before, after func(stream string) error
}

func (l *hookedLog) set(before, after func(stream string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after = before, after
}

func (l *hookedLog) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	l.mu.Lock()
	before, after := l.before, l.after
	l.mu.Unlock()
	if before != nil {
		if err := before(stream); err != nil {
			return eventlog.Appended{}, err
		}
	}
	appended, err := l.Log.Append(ctx, stream, expected, events...)
	if err == nil && after != nil {
		err = after(stream)
	}
	return appended, err
}

// leads is a CRM that counts the requests of each operation.
type leads struct {
	mu   sync.Mutex
	made map[string]int
}

func (*leads) Describe() crm.Description {
	return crm.Description{Name: "fake", Class: crm.Lookup, CanFind: true, Settle: time.Second}
}

func (l *leads) Create(_ context.Context, op crm.Operation) (crm.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made[op.ID]++
	return crm.Receipt{CRMID: "lead-" + op.ID}, nil
}

func (*leads) Find(context.Context, string, time.Time) ([]crm.Receipt, error) { return nil, nil }

func (l *leads) want(t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, requests := range l.made {
		if requests != 1 {
			t.Errorf("operation %s was requested %d times", id, requests)
		}
	}
	if len(l.made) != n {
		t.Errorf("%d leads, want %d", len(l.made), n)
	}
}

type clock struct{}

func (clock) Now() time.Time                             { return time.Now() }
func (clock) Sleep(context.Context, time.Duration) error { panic("nobody sleeps here") }

type randomIDs struct{}

func (randomIDs) New() (id eventlog.EventID) {
	_, _ = rand.Read(id[:])
	return id
}

// lines is where the log goes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// with are the lines that hold the words, decoded.
func (l *lines) with(words string) (list []map[string]any) {
	for line := range strings.Lines(l.String()) {
		var m map[string]any
		if strings.Contains(line, words) && json.Unmarshal([]byte(line), &m) == nil {
			list = append(list, m)
		}
	}
	return list
}

func openSQLite(t *testing.T, path string) *sqlite.Log {
	t.Helper()
	log, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func logFile(t *testing.T) string { return filepath.Join(t.TempDir(), "log.db") }

func newMemoryScene(t *testing.T) *scene { return newScene(t, memory.New()) }

func key(id int64) job.Key { return job.Key{Bot: bot, Update: id} }
