package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
)

const botToken = "700000001:canary-token_0123456789"

// botAPI is a Bot API whose seconds last a millisecond, for the site's commands.
func (s *site) botAPI(o botapitest.Options) *botapitest.Server {
	s.t.Helper()
	api, err := botapitest.New(botToken, o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(api.Close)
	s.env = append(s.env, "TELEGRAM_API_URL="+api.URL, "TELEGRAM_BOT_TOKEN="+botToken)
	return api
}

// webhook runs a webhook command, and demands a status and words.
func (s *site) webhook(status int, words string, args ...string) (stdout, stderr string) {
	s.t.Helper()
	got, stdout, stderr := s.run(append([]string{"webhook"}, args...)...)
	if all := stdout + stderr; got != status || !strings.Contains(all, words) || strings.Contains(all, "canary") {
		s.t.Errorf("webhook %v: status %d, want %d and %q; output:\n%s", args, got, status, words, all)
	}
	return stdout, stderr
}

func push(api *botapitest.Server, from, to int64) {
	for id := from; id <= to; id++ {
		api.PushRaw(id, id%3, string(message(id)))
	}
}

// From the first updates, which wait, to a lead for each: set, deliver, look, delete.
func TestWebhookIsSetAndDelivers(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.botAPI(botapitest.Options{})
	v := s.serve()
	push(api, 1, 3)
	s.webhook(1, "none is set", "check")
	out, _ := s.webhook(0, "kinds of update: 25 of 25; at most 7 connections", "set", v.url, "--max-connections", "7")
	if !strings.Contains(out, "the webhook is "+v.url+"/telegram/700000001\n") {
		t.Errorf("set prints %s", out)
	}
	push(api, 4, 9)
	s.account(9)
	if n := len(api.Pending()); n > 0 {
		t.Errorf("%d updates wait", n)
	}
	s.webhook(0, "it takes the configured one", "check", v.url)
	s.webhook(0, "it refuses deliveries without the secret", "check")
	s.webhook(1, "it is set to another address", "check", v.url+"/other/telegram/700000001")
	s.terminate(v.program)
	push(api, 10, 10)
	eventually(t, func() error {
		if _, out, _ := s.run("webhook", "info"); !strings.Contains(out, "Connection refused") {
			return fmt.Errorf("info prints %s", out)
		}
		return nil
	})
	s.webhook(0, "start leadonce or the proxy", "info")
	s.webhook(1, "nothing listens at that address", "check")
	s.webhook(0, "has no webhook", "delete")
	if n := len(api.Pending()); n != 1 {
		t.Errorf("%d updates wait, want the one that delete keeps", n)
	}
	s.webhook(0, "", "delete") // once more is no mistake
}

// Another secret in the process that runs than in the configuration.
func TestWebhookSecretsDiffer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.botAPI(botapitest.Options{})
	v := s.serve()
	s.env = append(s.env, "TELEGRAM_OTHER=another-secret")
	s.replaceInConfig("${TELEGRAM_WEBHOOK_SECRET}", "${TELEGRAM_OTHER}")
	s.webhook(0, "the webhook is", "set", v.url)
	push(api, 1, 1)
	eventually(t, func() error {
		if _, out, _ := s.run("webhook", "info"); !strings.Contains(out, "the server refuses the secret") {
			return fmt.Errorf("info prints %s", out)
		}
		return nil
	})
	s.webhook(1, "the process that runs there has another secret", "check", v.url)
}

// What is read back otherwise than it was given is found.
func TestWebhookIsReadBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	s.botAPI(botapitest.Options{Unknown: []string{"managed_bot", "guest_message"}})
	s.webhook(1, "not delivered are guest_message, managed_bot", "set", "http://127.0.0.1:1")
	s.webhook(0, "all but guest_message, managed_bot", "info")
	s.webhook(1, "not delivered: guest_message, managed_bot", "check")
	out, _ := s.webhook(0, "missing_updates", "info", "--output", "json")
	var d webhookDescription
	if err := json.Unmarshal([]byte(out), &d); err != nil || !slices.Equal(d.Missing, []string{"guest_message", "managed_bot"}) {
		t.Errorf("%+v, %v", d, err)
	}
	for want, answer := range map[string]string{
		"is another one":         `{"url":"http://127.0.0.1:2","max_connections":40}`,
		"max_connections is 100": `{"url":"http://127.0.0.1:1/telegram/700000001","max_connections":100}`,
	} {
		api := s.botAPI(botapitest.Options{})
		api.Fail("getWebhookInfo", botapitest.Fault{Status: 200, Body: `{"ok":true,"result":` + answer + `}`})
		s.webhook(1, want, "set", "http://127.0.0.1:1")
	}
}

func TestWebhookPolling(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.botAPI(botapitest.Options{})
	s.webhook(0, "none was seen", "check", "--poll")
	api.Fail("getUpdates", botapitest.Fault{Status: 409,
		Body: `{"ok":false,"error_code":409,"description":"Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}`})
	s.webhook(1, "a program fetches this bot's updates", "check", "--poll")
	s.webhook(0, "", "set", "http://127.0.0.1:1")
	s.webhook(1, "leadonce webhook delete", "check", "--poll")
	out, _ := s.webhook(1, `"ok": false`, "check", "--poll", "--output", "json")
	var report struct{ Findings []botapi.Finding }
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Findings) < 3 {
		t.Errorf("%+v, %v", report, err)
	}
	if slices.ContainsFunc(api.Offsets(), func(o int64) bool { return o != 0 }) {
		t.Errorf("check confirmed updates: offsets %v", api.Offsets())
	}
}

// Where the configuration says that updates are fetched, nobody is told to set a
// webhook.
func TestWebhookOfABotThatPolls(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	s.botAPI(botapitest.Options{})
	s.webhook(1, "where `leadonce serve --poll` fetches, check with --poll", "check")
	s.replaceInConfig("data_dir: data", "data_dir: data\npoll: true")
	out, _ := s.webhook(0, "none was seen", "check")
	if strings.Contains(out, "webhook set") {
		t.Errorf("check prints %s", out)
	}
}

// An address at which nothing of leadonce may be is set, for a proxy or a local Bot API
// server may make it right, and is told.
func TestWebhookAddressIsOdd(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	s.botAPI(botapitest.Options{})
	s.webhook(0, "its path is not /telegram/700000001", "set", "https://leads.example.com/bot")
	s.webhook(0, "delivered over https only: give an https address; a local Bot API server may", "set", "http://127.0.0.1:1")
	s.webhook(0, "443, 80, 88 and 8443 only", "set", "https://127.0.0.1:444")
	if _, stderr := s.webhook(0, "the webhook is", "set", "https://leads.example.com"); stderr != "" {
		t.Errorf("nothing is odd, and it says %s", stderr)
	}
}

// Mistakes are one line that names the mend; none reaches Telegram.
func TestWebhookMistakes(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.botAPI(botapitest.Options{})
	real := "--api=" + botapi.Official
	for _, c := range []struct {
		want string
		args []string
	}{
		{"takes [URL]", []string{"set"}},
		{"URL: give one such as", []string{"set", "leads.example.com"}},
		{"over https only", []string{"set", "http://leads.example.com", real}},
		{"ports 443, 80, 88 and 8443", []string{"set", "https://leads.example.com:444", real}},
		{"--max-connections: 101", []string{"set", "https://leads.example.com", "--max-connections", "101"}},
		{"--bot: 5 is not in the configuration", []string{"info", "--bot", "5"}},
		{"unencrypted", []string{"info", "--api", "http://api.telegram.org"}},
		{"--output: \"xml\"", []string{"delete", "--output", "xml"}},
		{"either delivered or fetched", []string{"check", "https://leads.example.com", "--poll"}},
		{"at most one URL", []string{"check", "a", "b"}},
	} {
		_, stderr := s.webhook(2, c.want, c.args...)
		if strings.Count(stderr, "\n") != 1 {
			t.Errorf("webhook %v prints %q, want one line", c.args, stderr)
		}
	}
	for want, env := range map[string]string{
		"TELEGRAM_BOT_TOKEN is not set":            "TELEGRAM_BOT_TOKEN=",
		"the token is of bot 7, and bot 700000001": "TELEGRAM_BOT_TOKEN=7:canary",
		"not <number>": "TELEGRAM_BOT_TOKEN=canary token",
		"TELEGRAM_BOT_TOKEN_700000001: the token is o": "TELEGRAM_BOT_TOKEN_700000001=8:canary",
	} {
		other := *s
		other.env = append(slices.Clone(s.env), env)
		other.webhook(2, want, "info")
	}
	if n := api.Calls("getWebhookInfo") + api.Calls("setWebhook") + api.Calls("deleteWebhook"); n > 0 {
		t.Errorf("%d calls", n)
	}
	s.env = append(s.env, "TELEGRAM_BOT_TOKEN=700000001:canary-revoked")
	s.webhook(1, "the token is refused", "info")
}
