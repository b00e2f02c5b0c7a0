package botapitest

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hook is the webhook that is set.
type hook struct {
	server  *Server
	url     string
	secret  string
	most    int // connections
	ctx     context.Context
	cancel  context.CancelFunc
	slots   chan struct{} // a connection each
	waiting map[int64][]queued
	failure string // the last error
	failed  time.Time
}

var secretForm = regexp.MustCompile(`^[A-Za-z0-9_-]{0,256}$`)

func (s *Server) setWebhook(a arguments) result {
	u, err := url.Parse(a.URL)
	switch {
	case a.URL != "" && (err != nil || u.Host == ""):
		return refusal(http.StatusBadRequest, "Bad Request: invalid webhook URL specified")
	case !secretForm.MatchString(a.SecretToken):
		return refusal(http.StatusBadRequest, "Bad Request: secret token contains unallowed characters")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return refusal(http.StatusInternalServerError, "Internal Server Error: restart")
	}
	s.removeHook()
	if a.DropPendingUpdates {
		s.queue = nil
	}
	if a.URL == "" {
		return result{value: true}
	}
	if s.poll != nil {
		s.poll <- "Conflict: terminated by setWebhook request"
		s.poll = nil
	}
	s.allow(a.AllowedUpdates)
	h := &hook{server: s, url: a.URL, secret: a.SecretToken, most: min(max(cmp.Or(a.MaxConnections, 40), 1), 100), waiting: map[int64][]queued{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.slots = make(chan struct{}, h.most)
	s.hook = h
	for _, u := range s.queue {
		h.take(u)
	}
	return result{value: true}
}

// removeHook is called with the lock held.
func (s *Server) removeHook() {
	if s.hook != nil {
		s.hook.cancel()
		s.hook = nil
	}
}

func (s *Server) webhookInfo() result {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := map[string]any{"url": "", "has_custom_certificate": false, "pending_update_count": len(s.queue)}
	if h := s.hook; h != nil {
		info["url"], info["max_connections"], info["ip_address"] = h.url, h.most, "<unknown>"
		if u, err := url.Parse(h.url); err == nil && net.ParseIP(u.Hostname()) != nil {
			info["ip_address"] = u.Hostname()
		}
		if h.failure != "" {
			info["last_error_message"], info["last_error_date"] = h.failure, h.failed.Unix()
		}
	}
	if s.allowed != nil {
		info["allowed_updates"] = s.allowed
	}
	return result{value: info}
}

// take queues an update behind those of its chat. It is called with the lock held.
func (h *hook) take(u queued) {
	h.waiting[u.chat] = append(h.waiting[u.chat], u)
	if len(h.waiting[u.chat]) == 1 {
		h.server.sending.Go(func() { h.deliver(u.chat) })
	}
}

// deliver sends what waits of a chat, one after the other.
func (h *hook) deliver(chat int64) {
	for {
		h.server.mu.Lock()
		waiting := h.waiting[chat]
		h.server.mu.Unlock()
		if len(waiting) == 0 || !h.insist(waiting[0]) {
			return
		}
		h.server.mu.Lock()
		h.waiting[chat] = h.waiting[chat][1:]
		left := len(h.waiting[chat])
		id := waiting[0].id
		h.server.queue = slices.DeleteFunc(h.server.queue, func(u queued) bool { return u.id == id })
		h.server.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// insist sends an update until it is taken or expires; false: the webhook is gone.
func (h *hook) insist(u queued) bool {
	delay := int64(1) // seconds
	for fails := 0; h.ctx.Err() == nil; fails++ {
		failure, retryAfter := h.send(u)
		if failure == "" {
			return true
		}
		if h.ctx.Err() != nil {
			break
		}
		h.note(failure)
		wait := min(max(retryAfter, 0), 3600)
		if wait == 0 && fails > 0 {
			delay = min(delay*2, 60+rand.Int64N(61))
			wait = delay
		}
		if time.Now().Add(h.server.seconds(wait)).After(u.expires) {
			return true
		}
		pause(h.ctx, h.server.seconds(wait))
	}
	return false
}

func (h *hook) note(failure string) {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	h.failure, h.failed = failure, time.Now()
}

// send posts an update once. What it fails with is in Telegram's words.
func (h *hook) send(u queued) (failure string, retryAfter int64) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-h.ctx.Done():
		return "Webhook connection closed", 0
	}
	r, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url, strings.NewReader(u.body))
	if err != nil {
		return err.Error(), 0
	}
	r.Header.Set("Content-Type", "application/json")
	if h.secret != "" {
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", h.secret)
	}
	response, err := h.server.sender.Do(r)
	if err != nil {
		return inTelegramsWords(err), 0
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return "Webhook connection closed", 0
	}
	if response.StatusCode/100 != 2 {
		retryAfter, _ = strconv.ParseInt(response.Header.Get("Retry-After"), 10, 64)
		return "Wrong response from the webhook: " + response.Status, retryAfter
	}
	h.obey(body)
	return "", 0
}

// obey makes the method call that an answer carries.
func (h *hook) obey(body []byte) {
	var a struct {
		Method string `json:"method"`
		ID     string `json:"callback_query_id"`
	}
	if json.Unmarshal(body, &a) == nil && strings.EqualFold(a.Method, "answerCallbackQuery") {
		h.server.mu.Lock()
		defer h.server.mu.Unlock()
		h.server.buttons = append(h.server.buttons, a.ID)
	}
}

func inTelegramsWords(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, errElsewhere):
		return "Connection refused"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "SSL error {error:0A000086:SSL routines::certificate verify failed}"
	case errors.As(err, new(tls.RecordHeaderError)):
		return "SSL error {error:0A00010B:SSL routines::wrong version number}"
	case errors.As(err, &network) && network.Timeout():
		return "Read timeout expired"
	default:
		return "Webhook connection closed"
	}
}

var errElsewhere = errors.New("not on this machine")

// newSender posts to this machine only, and gives up after a minute as Telegram
// does.
func newSender(roots *x509.CertPool) *http.Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && !ip.IsLoopback() {
			return nil, fmt.Errorf("dial %s: %w", address, errElsewhere)
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if roots == nil {
		roots = x509.NewCertPool()
	}
	return &http.Client{
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 100},
	}
}
