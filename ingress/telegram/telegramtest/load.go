// Package telegramtest delivers updates as Telegram does, for benchmarks. Its
// client shares the machine with the server it loads, so it costs next to
// nothing: one request is one write, one answer is one read, and nothing is
// parsed but the status.
package telegramtest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// SecretHeader carries the secret_token of setWebhook.
const SecretHeader = "X-Telegram-Bot-Api-Secret-Token"

// FirstID is the smallest update_id that a Sender delivers; the largest has nine
// digits too, so that every delivery has the same size.
const FirstID = 100_000_000

// Delivery is a request of about 1 KB as Telegram makes it, and where in it the
// nine digits of the update_id are.
func Delivery(bot int64, secret string) (request []byte, id int) {
	const place = "100000000"
	body := `{"update_id":` + place + `,"message":{"message_id":48213,"from":{"id":5812345678,"is_bot":false,"first_name":"Анна","last_name":"Ковальчук",` +
		`"username":"anna_koval","language_code":"uk","is_premium":true},"chat":{"id":5812345678,"first_name":"Анна","last_name":"Ковальчук",` +
		`"username":"anna_koval","type":"private"},"date":1782900000,"reply_to_message":{"message_id":48211,"from":{"id":424242,"is_bot":true,` +
		`"first_name":"Orders","username":"orders_bot"},"chat":{"id":5812345678,"first_name":"Анна","type":"private"},"date":1782899950,` +
		`"text":"What would you like to know?"},"text":"Добрый день! Интересует тариф для команды из двадцати человек: сколько стоит в год, есть ли скидка, и можно ли получить счёт на компанию? Мой сайт https:\/\/example.com\/team\u2026",` +
		`"entities":[{"offset":142,"length":24,"type":"url"}]}}`
	head := fmt.Sprintf("POST /telegram/%d HTTP/1.1\r\nHost: bots.example.com\r\nContent-Type: application/json\r\n%s: %s\r\nContent-Length: %d\r\n\r\n",
		bot, SecretHeader, secret, len(body))
	return []byte(head + body), len(head) + strings.Index(body, place)
}

// Sender delivers one update after the other over one connection, which it keeps.
type Sender struct {
	conn    net.Conn
	answers *bufio.Reader
	request []byte
	id      []byte // of the request
}

// Dial connects to a server of webhooks.
func Dial(addr string, bot int64, secret string) (*Sender, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	request, id := Delivery(bot, secret)
	return &Sender{c, bufio.NewReaderSize(c, 1<<10), request, request[id : id+9]}, nil
}

// Close ends the connection.
func (s *Sender) Close() error { return s.conn.Close() }

// Deliver delivers the update and waits for its 200; any other answer is an
// error, after which the Sender is of no use.
func (s *Sender) Deliver(id int64) error {
	if id < FirstID || id >= 10*FirstID {
		return fmt.Errorf("update_id %d has not nine digits", id)
	}
	for i, rest := len(s.id)-1, id; i >= 0; i, rest = i-1, rest/10 {
		s.id[i] = byte('0' + rest%10)
	}
	if _, err := s.conn.Write(s.request); err != nil {
		return err
	}
	return s.skipOK()
}

// skipOK reads one answer, which must be a 200 without a body.
func (s *Sender) skipOK() error {
	line, err := s.answers.ReadSlice('\n')
	if err == nil && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		return fmt.Errorf("answered %q", line)
	}
	for err == nil && len(line) > 2 {
		line, err = s.answers.ReadSlice('\n')
	}
	return err
}

// Load is a server under load: each update is new to it.
type Load struct {
	Addr   string
	Bot    int64
	Secret string

	next    atomic.Int64 // update_id, less FirstID
	mu      sync.Mutex
	took    []time.Duration
	elapsed time.Duration
}

// Skip leaves out n update_ids.
func (l *Load) Skip(n int64) { l.next.Add(n) }

// Run delivers over so many connections for a while, on each as fast as the
// server answers. It may be called again.
func (l *Load) Run(connections int, during time.Duration) error {
	var all sync.WaitGroup
	var failure atomic.Pointer[error]
	began := time.Now()
	until := began.Add(during)
	for range connections {
		all.Go(func() {
			if err := l.connection(until); err != nil {
				failure.Store(&err)
			}
		})
	}
	all.Wait()
	l.elapsed += time.Since(began)
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *Load) connection(until time.Time) error {
	s, err := Dial(l.Addr, l.Bot, l.Secret)
	if err != nil {
		return err
	}
	defer s.Close()
	var took []time.Duration
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.took = append(l.took, took...)
	}()
	for began := time.Now(); began.Before(until); began = time.Now() {
		if err := s.Deliver(FirstID + l.next.Add(1)); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	return nil
}

// Accepted is how many deliveries were answered 200.
func (l *Load) Accepted() int { return len(l.took) }

// Rate is the accepted updates in a second.
func (l *Load) Rate() float64 { return float64(len(l.took)) / l.elapsed.Seconds() }

// Quantile is the time within which the given share of the answers came.
func (l *Load) Quantile(share float64) time.Duration {
	if len(l.took) == 0 {
		return 0
	}
	slices.Sort(l.took)
	return l.took[min(int(share*float64(len(l.took))), len(l.took)-1)]
}
