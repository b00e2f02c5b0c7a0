package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
)

// replying lets the site's processes reply, with the text of the enquiry in it.
func (s *site) replying() *botapitest.Server {
	s.t.Helper()
	api := s.botAPI(botapitest.Options{})
	s.replaceInConfig("logging:", "reply:\n  done: \"canary thanks for ${text}, lead ${crm_id}\"\n  dead_letter: \"canary sorry\"\nlogging:")
	return api
}

var thanked = regexp.MustCompile(`^canary thanks for (enquiry [0-9]+), lead \S+$`)

// thanks counts the messages about each enquiry. Any other message fails the test.
func (s *site) thanks(api *botapitest.Server) map[string]int {
	s.t.Helper()
	about := map[string]int{}
	for _, m := range api.Messages() {
		found := thanked.FindStringSubmatch(m.Text)
		if found == nil || m.Chat != 5 || "enquiry "+fmt.Sprint(m.ReplyTo) != found[1] {
			s.t.Errorf("somebody got %+v", m)
			continue
		}
		about[found[1]]++
	}
	return about
}

// thankedOnce demands one message about each of the updates 1 to n.
func (s *site) thankedOnce(api *botapitest.Server, n int64) {
	s.t.Helper()
	eventually(s.t, func() error {
		if got := len(api.Messages()); got < int(n) {
			return fmt.Errorf("%d messages, want %d", got, n)
		}
		return nil
	})
	about := s.thanks(api)
	for id := range n {
		if got := about[textOf(id+1)]; got != 1 {
			s.t.Errorf("%d messages about update %d, want 1", got, id+1)
		}
	}
}

// From the delivery to the message, over restarts, a lost checkpoint and a duplicate.
func TestServeReplies(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.replying()
	v := s.serve()
	for id := int64(1); id <= 3; id++ {
		s.deliver(v, id)
	}
	s.account(3)
	s.thankedOnce(api, 3)
	s.deliver(v, 2) // again
	eventually(t, func() error {
		_, body, err := get(v.url + "/metrics")
		if err == nil && !strings.Contains(body, `leadonce_replies_total{result="sent"} 3`) {
			err = fmt.Errorf("the metrics are\n%s", body)
		}
		return err
	})
	s.terminate(v.program)
	text, _ := v.output()
	if !regexp.MustCompile(`msg=reply result=sent bot=700000001 update_id=1 chat=5 outcome=done`).MatchString(text) || strings.Contains(text, "canary") || strings.Contains(text, "enquiry") {
		t.Errorf("the output is\n%s", text)
	}
	files, err := filepath.Glob(s.path("data/reply-700000001.json"))
	if err != nil || len(files) != 1 {
		t.Errorf("checkpoints: %v, %v", files, err)
	}
	s.write("data/reply-700000001.json", "damaged")
	v = s.serve()
	s.deliver(v, 4)
	s.account(4)
	s.thankedOnce(api, 4)
	s.terminate(v.program)
	_, out, _ := s.run("job", "show", "telegram/700000001/1")
	if !regexp.MustCompile(`(?m)^reply\.state +sent$`).MatchString(out) || !regexp.MustCompile(`(?m)^reply\.message_id +[0-9]+$`).MatchString(out) {
		t.Errorf("job show prints\n%s", out)
	}
	_, out, _ = s.run("job", "show", "telegram/700000001/1", "--output", "json")
	if !strings.Contains(out, `"event_key": "telegram/700000001/1"`) || !strings.Contains(out, `"reply": {`) {
		t.Errorf("job show prints\n%s", out)
	}
	if _, out, _ = s.run("audit", "verify"); !strings.Contains(out, "replies: 4 sent, 0 refused, 0 unknown, 0 claimed\n") {
		t.Errorf("the audit prints\n%s", out)
	}
	if _, out, _ = s.run("config", "check"); !strings.Contains(out, "replies: done, dead_letter; within 10m0s\n") {
		t.Errorf("config check prints\n%s", out)
	}
}

// Without a text nobody is written to, and no token is asked for.
func TestRepliesAreOffByDefault(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.botAPI(botapitest.Options{})
	s.env = append(s.env, "TELEGRAM_BOT_TOKEN=")
	v := s.serve()
	s.deliver(v, 1)
	s.account(1)
	s.terminate(v.program)
	if n := api.Calls("sendMessage"); n > 0 {
		t.Errorf("%d requests", n)
	}
	if _, out, _ := s.run("job", "show", "telegram/700000001/1"); strings.Contains(out, "reply") {
		t.Errorf("job show prints\n%s", out)
	}
}

// T31: whatever becomes of the reply, the delivery is answered 200, before and behind
// it, and the job is as it is without replies.
func TestT31_ReplyFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.replying()
	faults := []struct {
		fault botapitest.Fault
		want  job.ReplyPhase
	}{
		{botapitest.Refused(403, "Forbidden: bot was blocked by the user"), job.ReplyIsRefused},
		{botapitest.Refused(401, "Unauthorized"), job.ReplyIsRefused},
		{botapitest.Fault{Drop: true}, job.ReplyIsUnknown},
		{botapitest.Fault{Cut: true}, job.ReplyIsUnknown},
		{botapitest.Refused(500, "Internal Server Error: restart"), job.ReplyIsUnknown},
		{botapitest.Fault{RetryAfter: 3600}, job.ReplyIsRefused}, // the last: the bot is left alone for an hour
	}
	v := s.serve()
	for i, f := range faults {
		id := int64(i + 1)
		api.Fail("sendMessage", f.fault)
		s.deliver(v, id)
		want := regexp.MustCompile(`"state": "` + string(f.want) + `"`)
		eventually(t, func() error {
			if _, out, failure := s.run("job", "show", fmt.Sprintf("telegram/700000001/%d", id), "--output", "json"); !want.MatchString(out) {
				return fmt.Errorf("update %d is\n%s%s", id, out, failure)
			}
			return nil
		})
		s.deliver(v, id)
	}
	s.account(int64(len(faults)))
	if got := s.thanks(api); got[textOf(4)] != 1 || len(got) != 1 { // the one whose answer was cut
		t.Errorf("messages: %v", got)
	}
	for i := range faults {
		_, out, _ := s.run("job", "replay", fmt.Sprintf("telegram/700000001/%d", i+1))
		if strings.Contains(out, "Reply") || strings.Contains(out, "illegal") {
			t.Errorf("a reply is on the job's stream:\n%s", out)
		}
	}
	s.terminate(v.program)
}

// An hour that Telegram asks for, and a Telegram that does not answer, hold up neither
// deliveries nor leads.
func TestAReplyThatHangsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.replying()
	api.Fail("sendMessage", botapitest.Fault{Hang: true})
	v := s.serve()
	for id := int64(1); id <= 10; id++ {
		s.deliver(v, id)
	}
	s.account(10)
	if n := api.Calls("sendMessage"); n != 1 {
		t.Errorf("%d requests, want the one that hangs", n)
	}
	s.terminate(v.program) // the grace ends the request
	if _, out, _ := s.run("audit", "verify"); !strings.Contains(out, "replies: 0 sent, 0 refused, 1 unknown, 0 claimed") {
		t.Errorf("the audit prints\n%s", out)
	}
}

// One process accepts, and two make leads over one log: each person is told once, and
// the intake needs no token.
func TestTwoProcessesReplyOnce(t *testing.T) {
	t.Parallel()
	const updates = 30
	s := newSite(t, "unique_create", brief)
	api := s.replying()
	withToken := s.env
	s.env = nil
	intake := s.serve("--role", "ingress")
	s.env = withToken
	first, second := s.serve("--role", "worker"), s.serve("--role", "worker")
	for id := int64(1); id <= updates; id++ {
		s.deliver(intake, id)
	}
	s.account(updates)
	s.thankedOnce(api, updates)
	for _, v := range []server{first, second, intake} {
		s.terminate(v.program)
	}
	if n := len(api.Messages()); n != updates {
		t.Errorf("%d messages, want %d", n, updates)
	}
	s.audited()
}

// SIGKILL at random moments, and a Bot API that breaks off: at most one message about
// an enquiry, and one exactly where the log says sent.
func TestKilledWhileReplying(t *testing.T) {
	t.Parallel()
	const updates = 40
	kills := 8
	if testing.Short() {
		kills = 3
	}
	s := newSite(t, "unique_create", brief)
	api := s.replying()
	for range updates / 4 {
		api.Fail("sendMessage", botapitest.Fault{Cut: true}, botapitest.Fault{}, botapitest.Fault{Late: http.StatusBadGateway, Body: "<html>"}, botapitest.Fault{Drop: true})
	}
	v := s.deliverUnderKills(updates, kills)
	s.account(updates)
	sent := 0
	eventually(t, func() error {
		_, out, _ := s.run("audit", "verify")
		var refused, unknown, claimed int
		counted := regexp.MustCompile(`replies: .*`).FindString(out)
		if _, err := fmt.Sscanf(counted, "replies: %d sent, %d refused, %d unknown, %d claimed", &sent, &refused, &unknown, &claimed); err != nil {
			return err
		}
		if n := sent + refused + unknown + claimed; n != updates || claimed > kills {
			return fmt.Errorf("%s", counted)
		}
		return nil
	})
	s.terminate(v.program)
	for about, n := range s.thanks(api) {
		if n > 1 {
			t.Errorf("%d messages about %s", n, about)
		}
	}
	if n := len(api.Messages()); n < sent {
		t.Errorf("%d messages, and the log says that %d were sent", n, sent)
	}
}
