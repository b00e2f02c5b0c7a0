package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// canaries stand for what must be seen in the log of events and the CRM only.
// Each of them contains "canary".
const (
	wrongSecret = "wrong-canary-91ab"
	urlPassword = "password-canary-5e0c"
	words       = "canary words of a person"
	phone       = "+canary4915112345"
)

// What is delivered, good and bad, and what becomes of it.
var deliveries = []struct {
	path, body string
	headers    map[string]string
	want       int
}{
	{"", `{"update_id":1,"message":{"message_id":1,"chat":{"id":5,"title":"canary"},"from":{"id":6,"first_name":"canary"},"text":"` + words + `"}}`, nil, 200},
	{"", `{"update_id":2,"message":{"chat":{"id":5},"from":{"id":6},"contact":{"phone_number":"` + phone + `","first_name":"canary"}}}`, nil, 200},
	{"", `{"update_id":2,"message":{"chat":{"id":5},"from":{"id":6},"contact":{"phone_number":"` + phone + `","first_name":"canary"}}}`, nil, 200},
	{"", `{"update_id":2,"message":{"text":"another ` + words + `"}}`, nil, 200},
	{"", `{"update_id":3,"callback_query":{"data":"canary","from":{"id":6}}}`, nil, 200},
	{"", `{"update_id":4,"message":"` + words + `"}`, nil, 200},
	{"", `{"update_id":5,"message":{"text":"hello","from":{"first_name":{"canary":"canary"}}}}`, nil, 200},
	{"", `{"update_id":6,"message":{"photo":"canary"}}`, nil, 200},
	{"", `{"update_id":"canary"}`, nil, 400},
	{"", `{"update_id":7,"update_id":8,"message":{"text":"canary"}}`, nil, 400},
	{"", `not JSON canary`, nil, 400},
	{"", `{"update_id":9,"message":{"text":"` + words, nil, 400},
	{"", `{"update_id":10}`, map[string]string{"Content-Encoding": "canary"}, 400},
	{"", `{"update_id":11,"message":{"text":"` + strings.Repeat("canary", 200_000) + `"}}`, nil, 413},
	{"", `{"update_id":12,"message":{"text":"canary"}}`, map[string]string{"X-Telegram-Bot-Api-Secret-Token": wrongSecret}, 401},
	{"", `{"update_id":13,"message":{"text":"canary"}}`, map[string]string{"X-Telegram-Bot-Api-Secret-Token": secret + "x"}, 401},
	{"?token=700000001:canary", `{"update_id":14,"poll":{"question":"canary"}}`, map[string]string{
		"User-Agent": "canary", "Referer": "http://canary/", "X-Forwarded-For": "canary", "X-Request-Id": "canary"}, 200},
	{"/700000001:canary-token", `{"update_id":15}`, nil, 404},
	{"/../../bot700000001:canary-token/getMe", `{"update_id":16}`, nil, 404},
}

// Nothing that a person wrote, and no secret, is in the output, the read models,
// the snapshot, the metrics or what commands print.
func TestCanariesStayInTheLog(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "unique_create", brief, "--faults", "0.5")
			s.replaceInConfig("http://", "http://user:"+urlPassword+"@")
			v := s.serve("--logging-format", format)
			for _, d := range deliveries {
				s.send(v, d.path, d.body, d.headers, d.want)
			}
			s.sendMalformed(v, "GET /bot700000001:canary-token HTTP/9.9\r\ncanary\r\n\r\n")
			s.sendMalformed(v, "\x16\x03\x01canary")
			eventually(t, s.allClosed)
			for _, path := range []string{"/metrics", "/readyz", "/healthz", "/canary"} {
				_, body, err := get(v.url + path)
				clean(t, path, body, err)
			}
			s.terminate(v.program)
			text, _ := v.output()
			clean(t, "the output", text, nil)
			files, err := filepath.Glob(s.path("data/[^l]*")) // but log.db
			if err != nil || len(files) < 2 {
				t.Fatalf("files %v, %v", files, err)
			}
			for _, name := range files {
				data, err := os.ReadFile(name)
				clean(t, name, string(data), err)
			}
			for _, command := range [][]string{
				{"job", "list"}, {"job", "list", "--output", "json"}, {"job", "show", "telegram/700000001/1"},
				{"audit", "verify"}, {"config", "check"}, {"projections", "rebuild"},
			} {
				_, out, failure := s.run(command...)
				clean(t, strings.Join(command, " "), out+failure, nil)
			}
			s.canariesAreKept()
			if format == "json" {
				complete(t, text)
			}
		})
	}
}

// canariesAreKept shows that the test looks for what is there.
func (s *site) canariesAreKept() {
	s.t.Helper()
	_, out, _ := s.run("job", "replay", "telegram/700000001/1")
	if !strings.Contains(out, words) {
		s.t.Errorf("the update is not in the log of events:\n%s", out)
	}
	if s.leads()[words] != 1 {
		s.t.Errorf("the words are not in the CRM: %v", s.leads())
	}
}

func clean(t *testing.T, name, text string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if at := strings.Index(text, "canary"); at >= 0 {
		t.Errorf("%s shows %q", name, text[max(0, at-100):min(len(text), at+100)])
	}
}

func (s *site) replaceInConfig(old, replacement string) {
	s.t.Helper()
	data, err := os.ReadFile(s.path("leadonce.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("leadonce.yaml", strings.Replace(string(data), old, replacement, 1))
}

func (s *site) send(v server, path, body string, headers map[string]string, want int) {
	s.t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/telegram/700000001" + path
	}
	r, err := http.NewRequest(http.MethodPost, v.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		if want != http.StatusRequestEntityTooLarge { // the server hangs up, at times before the client has read
			s.t.Errorf("%.60s: %v", body, err)
		}
		return
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if want != http.StatusBadRequest { // that one quotes the sender to itself
		clean(s.t, "the answer to "+body[:min(len(body), 60)], string(answer), err)
	}
	if response.StatusCode != want {
		s.t.Errorf("%.60s: status %d, want %d", body, response.StatusCode, want)
	}
}

func (s *site) sendMalformed(v server, text string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, conn) // until the server hangs up
}

func (s *site) allClosed() error {
	for id, j := range s.jobs() {
		if !j.Phase.Final() && !j.Human {
			return fmt.Errorf("update %d is %s", id, j.Phase)
		}
	}
	return nil
}

// happenings are the lines about what happened to a job, by their first letter:
// the names of events, and of requests.
var happenings = regexp.MustCompile(`^(CRM called|step failed|[A-Z][a-z]+[A-Z])`)

// complete demands that each line about a job says which, whose and how it
// stands, and from the first claim on which operation it is about.
func complete(t *testing.T, output string) {
	t.Helper()
	seen := map[string]bool{}
	claimed := map[any]bool{}
	lines := bufio.NewScanner(strings.NewReader(output))
	for lines.Scan() {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("no JSON: %s", lines.Text())
			continue
		}
		name, _ := line["msg"].(string)
		if !happenings.MatchString(name) {
			continue
		}
		seen[name] = true
		want := []string{"bot", "update_id", "chat", "user", "kind", "phase"}
		job := fmt.Sprint(line["update_id"], line["variant"])
		// A note of a delivery tells the job as its handler read it, which may be before
		// the claim whose line is above.
		note := name == "DeliveryRepeated" || name == "KeyConflicted"
		if claimed[job] = claimed[job] || name == "JobClaimed"; claimed[job] && !note {
			want = append(want, "attempt", "business_key", "operation_id")
		}
		if name == "LeadConfirmed" {
			want = append(want, "crm_id", "how")
		}
		for _, attr := range want {
			if _, ok := line[attr]; !ok {
				t.Errorf("a line lacks %s: %s", attr, lines.Text())
			}
		}
	}
	for _, name := range []string{"UpdateReceived", "DeliveryRepeated", "KeyConflicted", "JobClaimed", "CRM called", "LeadConfirmed", "NoEffectNeeded", "JobDeadLettered"} {
		if !seen[name] {
			t.Errorf("no line about %s", name)
		}
	}
}
