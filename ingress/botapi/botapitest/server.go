package botapitest

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options are what a Server may differ in.
type Options struct {
	// Second is how long a second of the server's lasts. Default a millisecond.
	Second time.Duration
	// FirstID is the id of the first update. Default 1000.
	FirstID int64
	// Unknown are kinds of update that the server is too old to know.
	Unknown []string
	// Roots are what certificates of a webhook are judged by. Default: none.
	Roots *x509.CertPool
}

// Server is the double. It is safe for concurrent use.
type Server struct {
	URL string // its address

	token   string
	options Options
	http    *http.Server
	sender  *http.Client // to the webhook
	ended   chan struct{}

	mu      sync.Mutex
	closed  bool
	queue   []queued
	next    int64              // id of the next update
	allowed []string           // nil: the default
	calls   map[string]int     // by method
	faults  map[string][]Fault // by method, for the next calls
	offsets []int64            // of getUpdates
	buttons []string           // callback queries that were answered
	sent    []Sent             // messages
	hook    *hook              // nil without a webhook
	sending sync.WaitGroup     // deliveries to webhooks
	poll    chan string        // takes the reason for which the waiting getUpdates ends; nil without one
	arrived chan struct{}      // closed when the queue grows
	last    struct {           // of getUpdates
		offset int64
		at     time.Time
	}
	conflictAt time.Time // before it, a conflict is told late
}

// queued is an update that waits.
type queued struct {
	id      int64
	chat    int64
	body    string // the Update
	expires time.Time
}

// New starts a server for the token's bot. Close ends it.
func New(token string, o Options) (*Server, error) {
	if o.Second <= 0 {
		o.Second = time.Millisecond
	}
	if o.FirstID == 0 {
		o.FirstID = 1000
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), token: token, options: o, next: o.FirstID, ended: make(chan struct{}),
		calls: map[string]int{}, faults: map[string][]Fault{}, arrived: make(chan struct{}),
	}
	s.sender = newSender(o.Roots)
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(listener)
	}()
	return s, nil
}

// Close ends the server and every delivery.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.removeHook()
	s.mu.Unlock()
	_ = s.http.Close()
	<-s.ended
	s.sending.Wait()
	s.sender.CloseIdleConnections()
}

// seconds is n of the server's seconds.
func (s *Server) seconds(n int64) time.Duration { return time.Duration(n) * s.options.Second }

// result is what a method answers.
type result struct {
	value       any // of a success
	code        int // of a failure
	description string
	retryAfter  int // seconds
}

func refusal(code int, description string) result {
	return result{code: code, description: description}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	method, known := strings.CutPrefix(r.URL.Path, "/bot"+s.token+"/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.calls[method]++
	var fault Fault
	if list := s.faults[method]; len(list) > 0 {
		fault, s.faults[method] = list[0], list[1:]
	}
	s.mu.Unlock()
	if fault.before(r.Context(), w) {
		return
	}
	answered := refusal(http.StatusUnauthorized, "Unauthorized")
	if known {
		answered = s.call(r.Context(), method, body)
	}
	fault.write(w, answered)
}

func (s *Server) call(ctx context.Context, method string, body []byte) result {
	var a arguments
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&a); err != nil {
		return refusal(http.StatusBadRequest, "Bad Request: can't parse the arguments")
	}
	switch method {
	case "getMe":
		id, _, _ := strings.Cut(s.token, ":")
		n, _ := strconv.ParseInt(id, 10, 64)
		return result{value: map[string]any{"id": n, "is_bot": true, "username": "double_bot"}}
	case "getUpdates":
		return s.getUpdates(ctx, a)
	case "setWebhook", "deleteWebhook":
		if method == "deleteWebhook" {
			a.URL = ""
		}
		return s.setWebhook(a)
	case "getWebhookInfo":
		return s.webhookInfo()
	case "sendMessage":
		return s.sendMessage(a)
	case "answerCallbackQuery":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.buttons = append(s.buttons, a.CallbackQueryID)
		return result{value: true}
	default:
		return refusal(http.StatusNotFound, "Not Found: method not found")
	}
}

// arguments are those of every method.
type arguments struct {
	Offset  int64 `json:"offset"`
	Limit   int   `json:"limit"`
	Timeout int64 `json:"timeout"`

	URL                string   `json:"url"`
	SecretToken        string   `json:"secret_token"`
	MaxConnections     int      `json:"max_connections"`
	IPAddress          string   `json:"ip_address"`
	AllowedUpdates     []string `json:"allowed_updates"`
	DropPendingUpdates bool     `json:"drop_pending_updates"`

	CallbackQueryID string `json:"callback_query_id"`

	ChatID int64  `json:"chat_id"`
	Text   string `json:"text"`
	Reply  struct {
		MessageID int64 `json:"message_id"`
	} `json:"reply_parameters"`
}
