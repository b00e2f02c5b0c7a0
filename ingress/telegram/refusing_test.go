package telegram_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/ingress"
	"github.com/leadonce/leadonce/ingress/telegram"
)

func TestT24_BodiesThatAreNoUpdate(t *testing.T) {
	s := newScene(t, setup{})
	long := `{"update_id":9024,"message":{"text":"` + strings.Repeat("canary", 400_000) + `"}}`
	for _, c := range []struct {
		name   string
		status int
		body   string
	}{
		{"empty", 400, ""},
		{"blank", 400, " \n"},
		{"truncated", 400, message(9024, text)[:60]},
		{"2 MiB", 413, long[:2<<20]},
		{"a byte over 1 MiB", 413, long[:1<<20+1]},
		{"nested 100,000 deep", 400, `{"update_id":9024,"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`},
		{"invalid UTF-8", 400, "{\"update_id\":9024,\"message\":{\"text\":\"canary\xff\"}}"},
		{"BOM in front", 400, "\ufeff" + message(9024, text)},
		{"two documents", 400, message(9024, text) + message(9025, text)},
		{"gzip without saying so", 400, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaaV*-HI,I\x8d\xcfLQ\xb2R\xb02\xa8\x05\x04\x00\x00\xff\xff"},
		{"a form", 400, "update_id=9024&message=canary"},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %t", c.name, chunked), func(t *testing.T) {
				s.want(c.status, s.send(c.body, chunked, nil))
			})
		}
	}
	s.want(400, s.send(message(9024, text), false, http.Header{"Content-Encoding": {"gzip"}}))
	s.wantStreams(0)
	s.want(200, s.send(message(9024, text), true, nil))
	s.wantStreams(1)
}

// send delivers with the secret of the first bot.
func (s *scene) send(body string, chunked bool, header http.Header) response {
	s.Helper()
	var reader io.Reader = strings.NewReader(body)
	if chunked {
		reader = io.MultiReader(reader) // hides the length
	}
	r, err := s.request(http.MethodPost, fmt.Sprintf("/telegram/%d", bot), reader)
	s.must(err)
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set(telegram.SecretHeader, secret)
	return s.do(r)
}

// What is refused must not stay in memory, nor be read when its length says
// enough.
func TestT24_MemoryStaysFlat(t *testing.T) {
	s := newScene(t, setup{})
	long := strings.Repeat("[", 2<<20)
	heap := func() (live, allocated uint64) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.TotalAlloc
	}
	s.send(long, true, nil)
	const rounds = 50
	live, allocated := heap()
	for range rounds {
		s.want(413, s.send(long, false, nil))
	}
	_, allocatedAfter := heap()
	if per := (allocatedAfter - allocated) / rounds; per > 512<<10 {
		t.Errorf("%d KiB allocated for a refusal by length", per>>10)
	}
	for range rounds {
		s.want(413, s.send(long, true, nil))
	}
	liveAfter, _ := heap()
	if grown := int64(liveAfter) - int64(live); grown > 8<<20 {
		t.Errorf("the heap grew by %d KiB over %d refusals", grown>>10, 2*rounds)
	}
}

func TestT25_SecretHeader(t *testing.T) {
	s := newScene(t, setup{})
	header := telegram.SecretHeader + ": "
	for name, lines := range map[string]string{
		"missing":             "",
		"empty":               header + "\r\n",
		"wrong":               header + "canary-Secret_wrong\r\n",
		"of another bot":      header + secondBots + "\r\n",
		"right but twice":     header + secret + "\r\n" + header + secret + "\r\n",
		"right, then wrong":   header + secret + "\r\n" + header + "x\r\n",
		"both right":          header + secret + "\r\n" + header + otherSecret + "\r\n",
		"257 characters":      header + strings.Repeat("S", 257) + "\r\n",
		"non-ASCII":           header + secret + "é\r\n",
		"a space inside":      header + "canary-Secret_ current\r\n",
		"a no-break space":    header + secret + "\u00a0\r\n",
		"right and a comma":   header + secret + ",\r\n",
		"in quotes":           header + `"` + secret + `"` + "\r\n",
		"under another name":  "X-Telegram-Bot-Api-Secret: " + secret + "\r\n",
		"as a bearer":         "Authorization: Bearer " + secret + "\r\n",
		"another letter case": header + strings.ToUpper(secret) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s.want(401, s.raw(lines, message(9025, text)))
		})
	}
	s.wantStreams(0)
	s.want(200, s.raw(header+secret+"\r\n", message(9025, text)))
	s.want(200, s.raw(strings.ToLower(header)+secret+"\r\n", message(9025, text)))
	s.wantStreams(1)
	if !strings.Contains(s.lines.String(), `"result":"unauthorized"`) {
		t.Error("the log has no line of what was refused")
	}
}

// Nobody without the secret makes the server wait for a body.
func TestT25_AnswersBeforeTheBody(t *testing.T) {
	s := newScene(t, setup{server: func(c *ingress.ServerConfig) { c.ReadTimeout = time.Hour }})
	for path, status := range map[string]int{fmt.Sprintf("/telegram/%d", bot): 401, "/telegram/1": 404} {
		c, err := net.Dial("tcp", s.addr)
		s.must(err)
		defer c.Close()
		s.must(c.SetDeadline(time.Now().Add(10 * time.Second)))
		_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\n%s: canary-Secret_wrong\r\nContent-Length: 100\r\n\r\n", path, telegram.SecretHeader)
		s.must(err)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		s.must(err)
		readAll(t, answer.Body)
		if answer.StatusCode != status {
			t.Errorf("%s: status %d, want %d", path, answer.StatusCode, status)
		}
	}
}

// A space around a value is no part of it in HTTP (RFC 9110, 5.5), and the
// server takes it away before any handler sees it. A value that has one
// nevertheless, from a front that is no HTTP/1.1 server, is a wrong secret.
func TestT25_SecretWithASpace(t *testing.T) {
	handler, err := telegram.New(telegram.Config{Bots: []telegram.Bot{{ID: bot, Secrets: []string{secret}}}, Accepter: accepterOf(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{secret + " ", " " + secret, secret + "\t"} {
		r, w := request(message(9025, text)), &answerWriter{}
		r.Header[telegram.SecretHeader] = []string{value}
		handler.ServeHTTP(w, r)
		if w.status != 401 {
			t.Errorf("%q: status %d, want 401", value, w.status)
		}
	}
}

// raw sends bytes that no client of net/http would.
func (s *scene) raw(headers, body string) response {
	s.Helper()
	c, err := net.Dial("tcp", s.addr)
	s.must(err)
	defer c.Close()
	s.must(c.SetDeadline(time.Now().Add(10 * time.Second)))
	_, err = fmt.Fprintf(c, "POST /telegram/%d HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", bot, headers, len(body), body)
	s.must(err)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	s.must(err)
	got := response{answer.StatusCode, answer.Header, readAll(s.T, answer.Body)}
	s.check(got)
	return got
}
