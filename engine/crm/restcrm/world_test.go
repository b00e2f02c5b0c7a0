package restcrm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// request is what arrived at a server.
type request struct {
	method, uri, body string
	header            http.Header
}

// recorder is a server that keeps what arrived.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen []request
}

func record(t *testing.T, answer func(w http.ResponseWriter, r request)) *recorder {
	rec := &recorder{}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		seen := request{r.Method, r.RequestURI, string(body), r.Header}
		rec.mu.Lock()
		rec.seen = append(rec.seen, seen)
		rec.mu.Unlock()
		answer(w, seen)
	}))
	t.Cleanup(rec.Close)
	return rec
}

func (r *recorder) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func says(status int, body string) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, _ request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func load(t testing.TB, document string) *restcrm.Definition {
	t.Helper()
	d, err := restcrm.Load("acme.yaml", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func open(t testing.TB, document string, c restcrm.Config) *restcrm.Connector {
	t.Helper()
	connector, err := restcrm.New(load(t, document), c)
	if err != nil {
		t.Fatal(err)
	}
	return connector
}

func soon() time.Time { return time.Now().Add(10 * time.Second) }

func operation(id string, fields map[string]string) crm.Operation {
	return crm.Operation{ID: id, Fields: fields, Deadline: soon()}
}

func wantOutcome(t *testing.T, err error, want crm.Outcome, reason string) *crm.Error {
	t.Helper()
	e := crm.Classify(err)
	if err == nil || e.Outcome != want || e.Reason != reason {
		t.Fatalf("%v, want %s: %s", err, want, reason)
	}
	return e
}

// wall is a clock that is moved by hand, and by whoever sleeps on it.
type wall struct {
	offset atomic.Int64
	slept  atomic.Int64
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (w *wall) Now() time.Time               { return noon.Add(time.Duration(w.offset.Load())) }
func (w *wall) pass(d time.Duration)         { w.offset.Add(int64(d)) }
func (w *wall) in(d time.Duration) time.Time { return w.Now().Add(d) }

func (w *wall) Sleep(ctx context.Context, d time.Duration) error {
	w.slept.Add(int64(d))
	w.pass(d)
	return ctx.Err()
}

// scripted is a CRM that answers from a list, and then for ever the last.
type scripted struct {
	mu      sync.Mutex
	answers []any // httponce.Answer, or an error
	sent    []httponce.Request
}

func (s *scripted) Send(_ context.Context, r httponce.Request) (httponce.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r)
	next := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	if err, ok := next.(error); ok {
		return httponce.Answer{}, err
	}
	return next.(httponce.Answer), nil
}

func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

func answer(status int, body string, header ...string) httponce.Answer {
	a := httponce.Answer{Status: status, Body: []byte(body), Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		a.Header.Set(header[i], header[i+1])
	}
	return a
}

var done = answer(201, `{"id":"L-1"}`)

// plain is a description without a lookup; more goes to its top.
func plain(more string) string {
	return fmt.Sprintf(`name: acme
base_url: http://crm.example/api/
class: none
%s
create:
  path: /leads/${key}
  outcome:
    - {when: status == 201, is: created, id: body.id}
    - {when: status == 429, is: not_applied}
    - {when: status == 401, is: unauthorized}
    - {when: status == 422, is: refused}
`, more)
}
