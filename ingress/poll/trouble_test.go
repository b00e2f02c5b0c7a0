package poll_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
	"github.com/leadonce/leadonce/ingress/poll"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// Answers that break off, connections that drop, a proxy's page: no update is lost
// and none is doubled.
func TestBadWeather(t *testing.T) {
	s := newMemoryScene(t)
	s.api.Fail("getUpdates",
		botapitest.Fault{Cut: true}, botapitest.Fault{Drop: true}, botapitest.Fault{Status: 502, Body: "<html>" + token},
		botapitest.Fault{Status: 200, Body: `{"ok":true}`}, botapitest.Fault{Status: 200, Body: `{"ok":true,"result":{}}`},
		botapitest.Fault{Status: 302, Body: ""}, botapitest.Fault{}, botapitest.Fault{Cut: true}, botapitest.Fault{Cut: true})
	var ids []int64
	for i := range int64(150) {
		ids = append(ids, s.push(i))
	}
	s.start()
	s.awaitConfirmed()
	s.wantStored(ids...)
	if n := s.count(telegram.Duplicate); n > 0 {
		t.Errorf("%d duplicates", n)
	}
	s.awaitLine("updates are fetched again")
	failures := s.lines.with("updates are not fetched")
	if len(failures) != 8 {
		t.Fatalf("%d failures are logged, want 8:\n%s", len(failures), s.lines)
	}
	for i, want := range []string{"the answer broke off", "connection", "HTTP 502", "not of the kind", "not of the kind", "HTTP 302", "broke off", "broke off"} {
		if got := failures[i]["error"].(string); !strings.Contains(got, want) {
			t.Errorf("failure %d is %q, want %q", i, got, want)
		}
	}
	s.work()
	s.crm.want(t, 150)
}

// The pauses grow and are bounded; what the server asks for is obeyed.
func TestPauses(t *testing.T) {
	s := newMemoryScene(t)
	for range 9 {
		s.api.Fail("getUpdates", botapitest.Fault{Drop: true})
	}
	s.api.Fail("getUpdates", botapitest.Fault{RetryAfter: 17})
	id := s.push(1)
	s.start()
	s.awaitConfirmed()
	s.wantStored(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sleeps) != 10 {
		t.Fatalf("pauses %v", s.sleeps)
	}
	for i, d := range s.sleeps[:9] {
		bound := min(time.Second<<i, time.Minute)
		if d < bound/2 || d > bound+1 {
			t.Errorf("pause %d is %s, want %s to %s", i, d, bound/2, bound)
		}
	}
	if s.sleeps[9] != 17*time.Second {
		t.Errorf("the pause after a 429 is %s, want 17 s", s.sleeps[9])
	}
}

// A webhook that is set keeps a poller out; its line says the mend, and without the
// webhook it goes on by itself.
func TestWebhookIsSet(t *testing.T) {
	s := newMemoryScene(t)
	client, err := botapi.New(botapi.Config{Token: token, BaseURL: s.api.URL})
	s.must(err)
	defer client.Close()
	s.must(client.SetWebhook(t.Context(), botapi.Webhook{URL: "http://127.0.0.1:1/telegram/424242", AllowedUpdates: botapi.AllowedUpdates()}))
	id := s.push(1)
	s.start()
	s.awaitLine("`leadonce webhook delete`")
	s.must(client.DeleteWebhook(t.Context(), false))
	s.awaitConfirmed()
	s.wantStored(id)
	if line := s.lines.with("webhook delete")[0]; line["level"] != "ERROR" {
		t.Errorf("the line is %v", line)
	}
}

// Two processes on one log, fetching for one bot: each update is one job.
func TestT02_TwoPollers(t *testing.T) {
	s := newMemoryScene(t)
	other := sceneOn(t, s.log.Log, s.api)
	s.start()
	other.start()
	var ids []int64
	for range 20 {
		for i := range int64(10) {
			ids = append(ids, s.push(i))
		}
		s.awaitConfirmed()
	}
	s.await("a conflict", func() bool {
		return strings.Contains(s.lines.String()+other.lines.String(), "another program fetches this bot's updates")
	})
	s.wantStored(ids...)
	s.work()
	other.work()
	s.crm.mu.Lock()
	defer s.crm.mu.Unlock()
	if n := len(s.crm.made); n != len(ids) {
		t.Errorf("%d leads, want %d", n, len(ids))
	}
}

// A token that Telegram does not know ends the program at its start, with a line
// that does not show it.
func TestTokenIsRefused(t *testing.T) {
	api, err := botapitest.New("424242:another", botapitest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	client, err := botapi.New(botapi.Config{Token: token, BaseURL: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	err = poll.Run(t.Context(), poll.Config{Bots: []*botapi.Client{client}, Accepter: nothing{}})
	if err == nil || !strings.Contains(err.Error(), "bot 424242: its token is refused") || strings.Contains(err.Error(), "canary") {
		t.Errorf("it ended with %v", err)
	}
}

// One that is revoked later must not take the other bots down.
func TestTokenIsRevoked(t *testing.T) {
	s := newMemoryScene(t)
	first := s.push(1)
	s.start()
	s.awaitConfirmed()
	s.api.Fail("getUpdates", botapitest.Fault{Status: 401, Body: `{"ok":false,"error_code":401,"description":"Unauthorized"}`})
	s.awaitLine("it was revoked")
	second := s.push(1)
	s.awaitConfirmed()
	s.wantStored(first, second)
}

func TestConfigIsChecked(t *testing.T) {
	client, err := botapi.New(botapi.Config{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]poll.Config{
		"no accepter":     {Bots: []*botapi.Client{client}},
		"no bot":          {Accepter: nothing{}},
		"424242 is there": {Accepter: nothing{}, Bots: []*botapi.Client{client, client}},
	} {
		if err := poll.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it ended with %v, want %s", err, want)
		}
	}
}

type nothing struct{ telegram.Accepter }

func (nothing) Accept(_ context.Context, u job.Update) (job.Key, engine.Acceptance, error) {
	return u.Key(), engine.Stored, nil
}

// Whoever pressed a button gets an answer once the update is stored; that an answer
// fails holds up nothing.
func TestButtonsAreAnswered(t *testing.T) {
	s := newScene(t, memory.New())
	s.api.Fail("answerCallbackQuery", botapitest.Fault{Drop: true})
	first := s.api.Push("callback_query", 1, `{"id":"81","message":{"chat":{"id":1}}}`)
	second := s.api.Push("callback_query", 1, `{"id":"82","message":{"chat":{"id":1}}}`)
	third := s.api.Push("callback_query", 1, `{"message":{"chat":{"id":1}}}`)
	s.start()
	s.awaitConfirmed()
	s.wantStored(first, second, third)
	got := s.api.AnsweredButtons()
	if len(got) != 1 || !slices.Contains([]string{"81", "82"}, got[0]) {
		t.Errorf("answered are %v, want one of 81 and 82", got)
	}
	if n := s.api.Calls("answerCallbackQuery"); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

func TestNoButtonIsAnsweredBeforeItIsStored(t *testing.T) {
	s := newMemoryScene(t)
	s.log.set(func(string) error { return eventlog.ErrUnavailable }, nil)
	s.api.Push("callback_query", 1, `{"id":"81"}`)
	s.start()
	s.await("some tries", func() bool { return s.count(telegram.Unavailable) > 3 })
	if n := s.api.Calls("answerCallbackQuery"); n > 0 {
		t.Errorf("%d calls", n)
	}
	s.log.set(nil, nil)
	s.awaitConfirmed()
	if n := len(s.api.AnsweredButtons()); n != 1 {
		t.Errorf("%d buttons are answered, want one", n)
	}
}

// Every kind of update is asked for, in every call.
func TestEveryKindIsAskedFor(t *testing.T) {
	s := newMemoryScene(t)
	s.start()
	s.await("a call", func() bool { return s.api.Calls("getUpdates") > 0 })
	var want []int64
	s.await("chat_member is let through", func() bool {
		if id := s.api.Push("chat_member", 1, `{"chat":{"id":1}}`); id > 0 {
			want = append(want, id)
		}
		return len(want) > 0
	})
	want = append(want, s.api.Push("message_reaction", 1, `{"chat":{"id":1}}`))
	s.awaitConfirmed()
	s.wantStored(want...)
}
