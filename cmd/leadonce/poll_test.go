package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
)

// Updates are fetched instead of delivered, by a process that is killed while it does:
// each is one lead, and none waits at Telegram in the end.
func TestServePolls(t *testing.T) {
	t.Parallel()
	const updates = 60
	s := newSite(t, "unique_create", brief)
	api := s.botAPI(botapitest.Options{})
	v := s.servePolling()
	for from := int64(1); from <= updates; from += 20 {
		push(api, from, from+19)
		s.await(v.program, "JobClaimed")
		v.kill()
		v = s.servePolling()
	}
	s.account(updates)
	eventually(t, func() error { return pendingAt(api) })
	if _, err := v.await(`serving.*updates="fetched by long polling"`); err != nil {
		t.Error(err)
	}
	refusal := bytes.NewReader(message(updates + 1))
	if response, err := http.Post(v.url+"/telegram/700000001", "application/json", refusal); err != nil {
		t.Error(err)
	} else {
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusNotFound || !strings.Contains(string(body), "fetches the updates itself") {
			t.Errorf("a delivery is answered %s: %s; want 404: nothing is delivered here", response.Status, body)
		}
	}
	s.terminate(v.program)
}

// Nothing is fetched while a webhook is set. Whoever watches the process can see it.
func TestServePollsBesideAWebhook(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	s.botAPI(botapitest.Options{})
	s.webhook(0, "the webhook is", "set", "https://bot.example.org")
	v := s.servePolling()
	scraped := func(pattern string) {
		t.Helper()
		eventually(t, func() error {
			_, body, err := get(v.url + "/metrics")
			if err == nil && !regexp.MustCompile(pattern).MatchString(body) {
				err = fmt.Errorf("/metrics has no %s", pattern)
			}
			return err
		})
	}
	scraped(`leadonce_poll_failures_total{bot="700000001",kind="webhook_set"} [1-9]`)
	scraped(`leadonce_poll_silence_seconds{bot="700000001"} [0-9.]+`)
	if _, body, err := get(v.url + "/readyz"); err != nil || !strings.Contains(body, `"name":"poll","ok":true`) {
		t.Errorf("readyz answers %s (%v)", body, err)
	}
	s.terminate(v.program)
}

// A token that Telegram does not know, and none at all, end it with the mend.
func TestServePollsWithAWrongToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	if status, _, failure := s.run("serve", "--poll", "--listen", "127.0.0.1:0"); status != 2 || !strings.Contains(failure, "TELEGRAM_BOT_TOKEN") {
		t.Errorf("without a token: status %d, %s", status, failure)
	}
	s.replaceInConfig("data_dir: data", "data_dir: data\npoll: true")
	if status, out, failure := s.run("config", "check"); status != 0 || !strings.Contains(out, "bot 700000001: its updates are fetched by long polling\n") {
		t.Errorf("config check: status %d, %s%s", status, out, failure)
	}
	s.botAPI(botapitest.Options{})
	s.env = append(s.env, "TELEGRAM_BOT_TOKEN=700000001:wrong-canary")
	if status, _, failure := s.run("serve", "--poll", "--listen", "127.0.0.1:0"); status == 0 || !strings.Contains(failure, "BotFather") || strings.Contains(failure, "canary") {
		t.Errorf("with a wrong token: status %d, %s", status, failure)
	}
}

func (s *site) servePolling() server {
	s.t.Helper()
	p, err := launch(s.dir, own(s.env...), "leadonce", "serve", "--poll", "--listen", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.kill)
	found, err := p.await(`serving.*(http://[0-9.:]+)`)
	if err != nil {
		s.t.Fatal(err)
	}
	return server{p, found[1]}
}

// pendingAt is an error while updates wait.
func pendingAt(api *botapitest.Server) error {
	if n := len(api.Pending()); n > 0 {
		return fmt.Errorf("%d updates wait at Telegram", n)
	}
	return nil
}
