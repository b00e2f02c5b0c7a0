package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// TestTheWholeProgramUnderWeather runs what `serve` runs, twice at a time over one
// folder, as two processes do: HTTP deliveries from many connections, SQLite on disk,
// the pool of workers, the real connector, and a CRM that misbehaves. Both are ended
// and started again in the middle. A deterministic scheduler sees every order of
// calls and no data race; this one, under the race detector, sees those, and leaked
// goroutines.
func TestTheWholeProgramUnderWeather(t *testing.T) {
	before := goleak.IgnoreCurrent()
	for _, class := range crmsim.Classes() {
		t.Run(string(class), func(t *testing.T) { wholeProgram(t, class) })
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

const (
	wholeUpdates    = 60
	wholeDeliveries = 3 // of each update, at least
	wholeSenders    = 8
	wholeLives      = 2 // of both programs
)

func wholeProgram(t *testing.T, class crmsim.Class) {
	server, err := crmsim.New(crmsim.Config{
		Class: class, Faults: 0.3, Seed: 11, Hang: 150 * time.Millisecond, IndexLag: 50 * time.Millisecond, RetryAfter: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	web := httptest.NewServer(server)
	defer web.Close()
	c := defaultConfig()
	c.DataDir, c.Workers = t.TempDir(), 4
	c.Bots = []botConfig{{ID: 700000001, Secrets: []string{secret}}}
	c.CRM = crmConfig{Connector: "crmsim", URL: web.URL, Class: string(class), Settle: 3 * time.Second, KeyValidity: time.Hour, TrustDeclared: true}
	c.CallTimeout, c.Lease, c.ClockSkew = 300*time.Millisecond, 400*time.Millisecond, 50*time.Millisecond
	c.Retry = retryConfig{Attempts: 100, First: 10 * time.Millisecond, Max: 100 * time.Millisecond}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	s := &senders{t: t, acknowledged: map[int64]bool{}}
	for life := range wholeLives {
		a, b := boot(t, c), boot(t, c)
		s.send(life, a.url, b.url)
		if life == wholeLives-1 {
			a.settle(t, class)
		}
		a.stop()
		b.stop()
	}
	judgeWhole(t, c, server, s)
}

// booted is one running program.
type booted struct {
	*app
	url  string
	stop func()
}

func boot(t *testing.T, c config) booted {
	t.Helper()
	a, err := newApp(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx, listener) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the program ends with %v", err)
		}
	})
	t.Cleanup(stop)
	return booted{a, "http://" + listener.Addr().String() + "/telegram/700000001", stop}
}

// settle waits until every job is final or before a human.
func (b booted) settle(t *testing.T, class crmsim.Class) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		tail, err := b.log.Tail(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, s := range foldAll(t, b.log) {
			if !s.Phase.Final() && !(s.Human && class == crmsim.None) {
				open++
			}
		}
		if open == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs are still open", open)
		}
		b.awaitEvent(t, tail)
	}
}

// awaitEvent returns once the log has an event behind the position.
func (b booted) awaitEvent(t *testing.T, tail eventlog.Position) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_ = b.log.Subscribe(ctx, tail, func(context.Context, eventlog.Recorded) error { return context.Canceled })
}

func foldAll(t *testing.T, log eventlog.Log) map[string]job.State {
	t.Helper()
	states := map[string]job.State{}
	for r, err := range log.ReadAll(t.Context(), eventlog.Start) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.Stream, job.JobStreams) {
			continue
		}
		e, err := job.Decode(r.Type, r.Data)
		if err != nil {
			t.Fatal(err)
		}
		s := states[r.Stream]
		if err := job.Allowed(s.Now(), e); err != nil {
			t.Errorf("%s at revision %d: %v", r.Stream, r.Revision, err)
		}
		states[r.Stream] = s.Evolve(e, r.Time)
	}
	return states
}

// senders deliver each update of one life several times, from many connections.
type senders struct {
	t            *testing.T
	mu           sync.Mutex
	acknowledged map[int64]bool
}

func (s *senders) send(life int, urls ...string) {
	var ids []int64
	for i := range wholeUpdates / wholeLives {
		for range wholeDeliveries {
			ids = append(ids, int64(1000*life+i+1))
		}
	}
	r := rand.New(rand.NewPCG(uint64(life), 3))
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var group sync.WaitGroup
	for n := range wholeSenders {
		group.Go(func() {
			for i := n; i < len(ids); i += wholeSenders {
				s.deliver(ids[i], urls[i%len(urls)])
			}
		})
	}
	group.Wait()
}

func (s *senders) deliver(id int64, url string) {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, bytes.NewReader(message(id)))
	if err != nil {
		s.t.Error(err)
		return
	}
	request.Header.Set(telegram.SecretHeader, secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Errorf("deliver %d: %v", id, err)
		return
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		s.t.Errorf("deliver %d: %s", id, response.Status)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acknowledged[id] = true
}

// judgeWhole compares the log with the CRM's own journal.
func judgeWhole(t *testing.T, c config, server *crmsim.Server, s *senders) {
	t.Helper()
	log, closeLog, err := openLog(t.Context(), c, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog()
	states := foldAll(t, log)
	if len(states) != wholeUpdates || len(s.acknowledged) != wholeUpdates {
		t.Errorf("%d jobs and %d acknowledged updates, want %d", len(states), len(s.acknowledged), wholeUpdates)
	}
	leads := map[string][]string{}
	for _, e := range server.Effects() {
		leads[e.ExternalID] = append(leads[e.ExternalID], e.CRMID)
	}
	for _, stream := range slices.Sorted(maps.Keys(states)) {
		state := states[stream]
		made := leads[state.OperationID]
		switch {
		case len(made) > 1:
			t.Errorf("%s: two leads, %v", stream, made)
		case state.Phase == job.Done && !slices.Equal(made, []string{state.CRMID}):
			t.Errorf("%s is done with %s, and the CRM has %v", stream, state.CRMID, made)
		case state.Phase == job.DeadLetter:
			t.Errorf("%s is a dead letter: %s", stream, state.LastError)
		}
		if len(state.OtherCRMIDs) > 0 {
			t.Errorf("%s has a second id: %v", stream, state.OtherCRMIDs)
		}
	}
	t.Log(fmt.Sprint(len(server.Effects()), " leads; ", len(server.Requests()), " requests"))
}
