package telegram_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress"
	"github.com/leadonce/leadonce/ingress/telegram"
)

func TestFullBacklogRefusesOnlyWhatIsNew(t *testing.T) {
	var full atomic.Bool
	s := newScene(t, setup{config: func(c *telegram.Config) { c.Full = full.Load }})
	s.want(200, s.deliver(message(1, text)))
	s.want(200, s.deliver(message(1, text+", another")))
	full.Store(true)
	s.want(503, s.deliver(message(2, text)))
	s.want(503, s.deliver(message(1, text+", a third")))
	s.want(200, s.deliver(message(1, text)))
	s.want(200, s.deliver(message(1, text+", another")))
	s.wantStreams(2)
	full.Store(false)
	s.want(200, s.deliver(message(2, text)))
	s.wantResults(telegram.Stored, telegram.Conflicted, telegram.Unavailable, telegram.Unavailable,
		telegram.Duplicate, telegram.Duplicate, telegram.Stored)
	s.wantEvents(key(bot, 1), "UpdateReceived", "KeyConflicted", "DeliveryRepeated")
}

func TestFullBacklogAndALogThatIsDown(t *testing.T) {
	log := &hookedLog{Log: memory.New()}
	var full atomic.Bool
	s := newScene(t, setup{log: log, config: func(c *telegram.Config) { c.Full = full.Load }})
	s.want(200, s.deliver(message(1, text)))
	full.Store(true)
	log.set(func(context.Context, string) error { return eventlog.ErrUnavailable }, nil)
	s.want(200, s.deliver(message(1, text)))
	s.want(503, s.deliver(message(2, text)))
	s.wantStreams(1)
}

// What was proven stored stays so when the log goes down right after.
func TestLogGoesDownAfterTheProof(t *testing.T) {
	asked := 0
	s := newScene(t, setup{config: func(c *telegram.Config) {
		c.Full = func() bool { return true }
		c.Accepter = storedOnce{accepterOf(nil), &asked}
	}})
	s.want(200, s.deliver(message(1, text)))
	s.wantResults(telegram.Duplicate)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// storedOnce can prove an update stored the first time only.
type storedOnce struct {
	accepterOf
	asked *int
}

func (a storedOnce) Stored(context.Context, job.Update) (bool, error) {
	*a.asked++
	return *a.asked == 1, nil
}

func TestClientGoneDuringTheAppend(t *testing.T) {
	log := &hookedLog{Log: memory.New()}
	s := newScene(t, setup{log: log})
	appending, goOn, appended := make(chan context.Context), make(chan struct{}), make(chan struct{})
	log.set(func(ctx context.Context, _ string) error {
		appending <- ctx
		<-goOn
		return ctx.Err()
	}, func(string) { close(appended) })
	c, err := net.Dial("tcp", s.addr)
	s.must(err)
	body := message(9040, text)
	_, err = fmt.Fprintf(c, "POST /telegram/%d HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s", bot, telegram.SecretHeader, secret, len(body), body)
	s.must(err)
	ctx := <-appending
	s.must(c.Close())
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 20*time.Second {
		t.Errorf("the append may last until %v, %t; want at most 20 s", deadline, ok)
	}
	close(goOn)
	<-appended
	s.wantEvents(key(bot, 9040), "UpdateReceived")
}

// The request's own context has ended before the append begins.
func TestClientGoneBeforeTheAppend(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Nanosecond} {
		ended, cancel := context.WithCancel(t.Context())
		asked := false
		handler, err := telegram.New(telegram.Config{
			Bots: []telegram.Bot{{ID: bot, Secrets: []string{secret}}}, AcceptTimeout: timeout,
			Accepter: accepterOf(func(ctx context.Context, u job.Update) error {
				asked = true
				if timeout != 0 {
					<-ctx.Done() // a log that hangs does not hold the answer for ever
				}
				return ctx.Err()
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		r, w := request(message(9041, text)), &answerWriter{}
		cancel()
		handler.ServeHTTP(w, r.WithContext(ended))
		want := map[bool]int{true: 200, false: 503}[timeout == 0]
		if !asked || w.status != want {
			t.Errorf("time-out %s: asked %t, status %d, want %d", timeout, asked, w.status, want)
		}
	}
}

func TestAnswerThatCannotBeWritten(t *testing.T) {
	log := memory.New()
	s := newScene(t, setup{log: log})
	handler, err := telegram.New(telegram.Config{Bots: []telegram.Bot{{ID: bot, Secrets: []string{secret}}}, Accepter: s.engine})
	s.must(err)
	handler.ServeHTTP(&answerWriter{err: io.ErrClosedPipe}, request(message(9042, text)))
	s.wantEvents(key(bot, 9042), "UpdateReceived")
}

func TestPanicIsAnsweredAndLoggedWithoutTheBody(t *testing.T) {
	s := newScene(t, setup{config: func(c *telegram.Config) {
		c.Accepter = accepterOf(func(_ context.Context, u job.Update) error {
			if u.ID == 1 {
				panic(string(u.Raw))
			}
			_ = u.Raw[len(u.Raw)]
			return nil
		})
	}})
	s.want(503, s.deliver(message(1, text)))
	s.want(503, s.deliver(message(2, text)))
	s.wantResults(telegram.Unavailable, telegram.Unavailable)
	lines := s.lines.String()
	for _, want := range []string{"panic in a handler", "a string", "index out of range", "pressure_test.go"} {
		if !strings.Contains(lines, want) {
			t.Errorf("the log has not %q", want)
		}
	}
}

// Bodies above the memory wait for the others, and are refused after a while.
func TestBodiesWaitForMemory(t *testing.T) {
	log := &hookedLog{Log: memory.New()}
	s := newScene(t, setup{log: log, config: func(c *telegram.Config) {
		c.BodyMemory, c.WaitTimeout = telegram.MaxBody, 50*time.Millisecond
	}})
	appending, goOn := make(chan struct{}), make(chan struct{})
	log.set(func(context.Context, string) error {
		close(appending)
		<-goOn
		return nil
	}, nil)
	large := make(chan response, 1)
	go func() { large <- s.send(message(1, text), true, nil) }() // of no known length: all of the memory
	<-appending
	log.set(nil, nil)
	s.want(503, s.deliver(message(2, text)))
	close(goOn)
	s.want(200, <-large)
	s.want(200, s.deliver(message(2, text)))
}

// A sender that had to wait for memory gets its time to send afterwards.
func TestWaitIsNotTheSendersTime(t *testing.T) {
	const readTimeout = 300 * time.Millisecond
	log := &hookedLog{Log: memory.New()}
	s := newScene(t, setup{
		log:    log,
		config: func(c *telegram.Config) { c.BodyMemory = telegram.MaxBody },
		server: func(c *ingress.ServerConfig) { c.ReadTimeout = readTimeout },
	})
	appending, goOn := make(chan struct{}), make(chan struct{})
	log.set(func(context.Context, string) error {
		close(appending)
		<-goOn
		return nil
	}, nil)
	large := make(chan response, 1)
	go func() { large <- s.send(message(1, text), true, nil) }()
	<-appending
	log.set(nil, nil)
	c, err := net.Dial("tcp", s.addr)
	s.must(err)
	defer c.Close()
	body := message(2, strings.Repeat(text, 2000)) // more than came with the headers
	_, err = fmt.Fprintf(c, "POST /telegram/%d HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s", bot, telegram.SecretHeader, secret, len(body), body)
	s.must(err)
	s.must(c.SetReadDeadline(time.Now().Add(2 * readTimeout)))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("answered while it should wait: %v", err)
	}
	close(goOn)
	s.want(200, <-large)
	s.must(c.SetReadDeadline(time.Now().Add(10 * time.Second)))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	s.must(err)
	s.want(200, response{status: answer.StatusCode, body: readAll(t, answer.Body)})
}

// request is a delivery for a handler without a router.
func request(body string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.SetPathValue("bot", fmt.Sprint(bot))
	r.Header.Set(telegram.SecretHeader, secret)
	return r
}

// answerWriter keeps the status. With an error, nothing can be written.
type answerWriter struct {
	status int
	header http.Header
	err    error
}

func (w *answerWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *answerWriter) WriteHeader(status int) { w.status = status }

func (w *answerWriter) Write(p []byte) (int, error) { return len(p), w.err }

// accepterOf accepts what the function has no error for, and has stored nothing.
type accepterOf func(context.Context, job.Update) error

func (a accepterOf) Accept(ctx context.Context, u job.Update) (job.Key, engine.Acceptance, error) {
	if a == nil {
		return u.Key(), "", errors.New("nothing is accepted here")
	}
	if err := a(ctx, u); err != nil {
		return u.Key(), "", err
	}
	return u.Key(), engine.Stored, nil
}

func (accepterOf) Stored(context.Context, job.Update) (bool, error) { return false, nil }
