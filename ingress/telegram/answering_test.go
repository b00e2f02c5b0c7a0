package telegram_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress"
	"github.com/leadonce/leadonce/ingress/telegram"
)

func TestT20_LogRefusesTheAppend(t *testing.T) {
	for name, failure := range map[string]error{
		"disk full":       fmt.Errorf("append: %w: disk full", eventlog.ErrUnavailable),
		"outcome unknown": &eventlog.UnknownError{Stream: "any", Err: io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			log := &hookedLog{Log: memory.New()}
			s := newScene(t, setup{log: log})
			s.want(200, s.deliver(message(9020, text)))
			log.set(func(context.Context, string) error { return failure }, nil)
			for range 2 {
				s.want(503, s.deliver(message(9021, text)))
			}
			s.want(200, s.deliver(message(9020, text))) // stored, and to be read
			s.wantEvents(key(bot, 9020), "UpdateReceived")
			s.wantEvents(key(bot, 9021))
			log.set(nil, nil)
			s.want(200, s.deliver(message(9021, text)))
			s.wantResults(telegram.Stored, telegram.Unavailable, telegram.Unavailable, telegram.Duplicate, telegram.Stored)
			s.work()
			s.crm.wantLeads(t, 2)
		})
	}
}

func TestT22_UnknownKind(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.deliver(`{"update_id":9022,"canary_kind":{"chat":{"id":5550001},"text":"canary"}}`))
	s.want(200, s.deliver(message(9023, text)))
	s.wantResults(telegram.Stored, telegram.Stored)
	s.work()
	if got := s.job(key(bot, 9022)); got.Phase != job.Done || got.Kind != "canary_kind" {
		t.Errorf("the update of an unknown kind is a %s in %s", got.Kind, got.Phase)
	}
	s.crm.wantLeads(t, 1)
}

func TestT23_OddUpdates(t *testing.T) {
	s := newScene(t, setup{})
	stored := 0
	for _, c := range []struct {
		status int
		body   string
	}{
		{200, `{"update_id":1,"message":"canary"}`},
		{200, `{"update_id":2,"message":null}`},
		{200, `{"update_id":3,"message":[[]]}`},
		{200, `{"update_id":4,"message":{"chat":"canary","from":[1]}}`},
		{200, `{"update_id":5,"message":{"chat":{"id":"canary"},"from":{"id":1.5}}}`},
		{200, `{"update_id":6}`},
		{200, `{"update_id":7,"":{}}`},
		{200, `{"update_id":8,"callback_query":7}`},
		{200, `{"update_id":0}`},
		{200, `{"update_id":-5,"message":{}}`},
		{200, `{"update_id":9223372036854775807}`},
		{400, `{"update_id":9223372036854775808}`},
		{400, `{"update_id":-9223372036854775809}`},
		{400, `{"update_id":"1"}`},
		{400, `{"update_id":"canary of a person"}`},
		{400, `{"update_id":1.0}`},
		{400, `{"update_id":1e3}`},
		{400, `{"update_id":null}`},
		{400, `{"update_id":true}`},
		{400, `{"update_id":[1,` + "\n" + `"canary"]}`},
		{400, `{"update_id":{}}`},
		{400, `{"update_id":11,"update_id":12}`},
		{400, `{"Update_ID":13}`},
		{400, `{"message":{"update_id":14}}`},
		{400, `{}`},
		{400, `[{"update_id":15}]`},
		{400, `"canary"`},
		{400, `null`},
		{400, `16`},
	} {
		t.Run(c.body, func(t *testing.T) {
			got := s.deliver(c.body)
			s.want(c.status, got)
			if got.status == 200 {
				stored++
			}
			s.wantStreams(stored)
		})
	}
	s.work() // what was stored ends, none of it stands in the way
	for r, err := range s.log.ReadAll(t.Context(), eventlog.Start) {
		s.must(err)
		if k := s.streamPhase(r.Stream); !k.Final() {
			t.Errorf("%s is in %s", r.Stream, k)
		}
	}
}

func (s *scene) streamPhase(stream string) job.Phase {
	var folded job.State
	for r, err := range s.log.ReadStream(context.Background(), stream, 0) {
		s.must(err)
		e, err := job.Decode(r.Type, r.Data)
		s.must(err)
		folded = folded.Evolve(e, r.Time)
	}
	return folded.Now()
}

func TestT27_Rotation(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.post(bot, secret, message(1, text)))
	s.want(200, s.post(bot, otherSecret, message(2, text)))
	s.want(401, s.post(bot, "canary-Secret_third", message(3, text)))
	s.want(401, s.post(secondBot, secret, message(4, text)))
	s.want(200, s.post(secondBot, secondBots, message(5, text)))
	s.wantStreams(3)
}

func TestT28_SlowSender(t *testing.T) {
	s := newScene(t, setup{server: func(c *ingress.ServerConfig) { c.ReadTimeout = 500 * time.Millisecond }})
	began := time.Now()
	slow, err := net.Dial("tcp", s.addr)
	s.must(err)
	defer slow.Close()
	body := message(9028, text) // at this pace, it would take 9 s
	_, err = fmt.Fprintf(slow, "POST /telegram/%d HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Length: %d\r\n\r\n", bot, telegram.SecretHeader, secret, len(body))
	s.must(err)
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		_, _ = io.Copy(io.Discard, slow) // until the server closes
	}()
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	sent, others := 0, int64(0)
	for open := true; open && sent < len(body); {
		select {
		case <-cut:
			open = false
		case <-pace.C:
			if _, err := slow.Write([]byte{body[sent]}); err == nil {
				sent++
			}
			others++
			s.want(200, s.deliver(message(others, text)))
		}
	}
	if sent == len(body) {
		t.Error("the slow sender came to its end")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the slow sender was cut after %s, want 500 ms", took)
	}
	s.wantEvents(key(bot, 9028))
	if others == 0 {
		t.Error("no other delivery in the meantime")
	}
	s.wantStreams(int(others))
}

func TestT29_FiveHundredAtOnce(t *testing.T) {
	log := openSQLite(t, logFile(t))
	defer log.Close()
	var open, most atomic.Int64
	s := newScene(t, setup{log: log, crm: &connector{create: func(_ context.Context, op crm.Operation) (crm.Receipt, error) {
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		return crm.Receipt{CRMID: "lead-" + op.ID}, nil
	}}})
	const deliveries = 500
	start := make(chan struct{})
	var wg sync.WaitGroup
	for id := range int64(deliveries) {
		wg.Go(func() {
			<-start
			s.want(200, s.deliver(message(id, text)))
		})
	}
	began := time.Now()
	close(start)
	wg.Wait()
	took := time.Since(began)
	t.Logf("%d deliveries at once: all answered after %s", deliveries, took)
	if took > 10*time.Second {
		t.Errorf("accepting took %s", took)
	}
	if n := s.results.count(telegram.Stored); n != deliveries {
		t.Errorf("%d stored, want %d", n, deliveries)
	}
	s.wantStreams(deliveries)
	s.work()
	s.crm.wantLeads(t, deliveries)
	if most.Load() != 1 {
		t.Errorf("%d requests to the CRM at the same time by one worker", most.Load())
	}
}

func TestT30_CRMHangs(t *testing.T) {
	hanging, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := newScene(t, setup{crm: &connector{create: func(ctx context.Context, _ crm.Operation) (crm.Receipt, error) {
		once.Do(func() { close(hanging) })
		<-release
		return crm.Receipt{}, errors.New("gave up")
	}}})
	before := s.latencies(1000)
	s.want(200, s.deliver(message(1, text)))
	ended := make(chan struct{})
	go func() { defer close(ended); s.work() }()
	<-hanging
	during := s.latencies(2000)
	select {
	case <-ended:
		t.Error("the CRM did not hang")
	default:
	}
	t.Logf("p99 %s before, %s while the CRM hangs", before, during)
	if during > 10*before+50*time.Millisecond {
		t.Errorf("p99 rose from %s to %s", before, during)
	}
	close(release)
	<-ended
}

// latencies delivers 300 updates and answers the 99th percentile.
func (s *scene) latencies(from int64) time.Duration {
	s.Helper()
	var all []time.Duration
	for id := range int64(300) {
		began := time.Now()
		s.want(200, s.deliver(message(from+id, text)))
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

func TestT31_WhatFollowsFails(t *testing.T) {
	log := &hookedLog{Log: memory.New()}
	s := newScene(t, setup{log: log, crm: &connector{create: func(context.Context, crm.Operation) (crm.Receipt, error) {
		return crm.Receipt{}, &crm.Error{Outcome: crm.Refused, Reason: "no"}
	}}})
	s.want(200, s.deliver(message(9031, text)))
	s.work()
	if phase := s.job(key(bot, 9031)).Phase; phase != job.DeadLetter {
		t.Errorf("the refused job is in %s", phase)
	}
	s.want(200, s.deliver(message(9031, text)))
	// Noting a duplicate is the engine's own affair.
	log.set(failAppends("update-", 2), nil)
	s.want(200, s.deliver(message(9031, text)))
	s.wantResults(telegram.Stored, telegram.Duplicate, telegram.Duplicate)
	s.wantEvents(key(bot, 9031), "UpdateReceived", "JobClaimed", "JobDeadLettered", "DeliveryRepeated")
}

// failAppends lets the appends to such streams fail from the nth on.
func failAppends(prefix string, n int64) func(context.Context, string) error {
	var seen atomic.Int64
	return func(_ context.Context, stream string) error {
		if strings.HasPrefix(stream, prefix) && seen.Add(1) >= n {
			return eventlog.ErrUnavailable
		}
		return nil
	}
}

func TestT32_PathsAndMethods(t *testing.T) {
	s := newScene(t, setup{})
	for _, path := range []string{
		"/telegram/1", "/telegram/0", "/telegram/-424242", "/telegram/0424242", "/telegram/+424242",
		"/telegram/424242x", "/telegram/canary:Secret_token", "/telegram/99999999999999999999", "/telegram/%34",
		"/telegram", "/telegram/", "/telegram/424242/", "/telegram/424242/canary", "//telegram/424242",
		"/telegram/../telegram/424242", "/TELEGRAM/424242", "/", "/bot424242:canary-Secret_token", "/index.php?canary=1",
	} {
		r, err := s.request(http.MethodPost, path, strings.NewReader(message(9032, text)))
		s.must(err)
		r.Header.Set(telegram.SecretHeader, secret)
		t.Run(path, func(t *testing.T) { s.want(404, s.do(r)) })
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
		t.Run(method, func(t *testing.T) {
			r, err := s.request(method, fmt.Sprintf("/telegram/%d", bot), nil)
			s.must(err)
			r.Header.Set(telegram.SecretHeader, secret)
			answer, err := client.Do(r)
			s.must(err)
			readAll(t, answer.Body)
			if answer.StatusCode != 405 {
				t.Errorf("status %d, want 405", answer.StatusCode)
			}
		})
	}
	s.wantStreams(0)
	if n := s.results.count(telegram.UnknownBot); n != 9 {
		t.Errorf("%d deliveries of unknown bots are reported, want 9", n)
	}
	s.want(200, s.deliver(message(9032, text)))
}

// A log line has what an operator looks for.
func TestLogLine(t *testing.T) {
	s := newScene(t, setup{})
	s.want(200, s.deliver(message(9033, text)))
	for line := range strings.Lines(s.lines.String()) {
		var got map[string]any
		s.must(json.Unmarshal([]byte(line), &got))
		if got["msg"] != "delivery" {
			continue
		}
		for name, want := range map[string]any{
			"level": "DEBUG", "result": "stored", "bot": 424242., "update_id": 9033., "chat": 5550001., "user": 5550001., "kind": "message",
		} {
			if got[name] != want {
				t.Errorf("%s is %v, want %v", name, got[name], want)
			}
		}
		if got["took"] == nil || !strings.HasPrefix(fmt.Sprint(got["remote"]), "127.0.0.1:") {
			t.Errorf("the line is %s", line)
		}
		return
	}
	t.Error("no line for the delivery")
}
