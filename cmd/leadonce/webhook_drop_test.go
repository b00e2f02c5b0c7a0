package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
)

const dropAll = "--drop-pending-updates"

// signed is a drop with who and why.
func signed(args ...string) []string {
	return append(args, dropAll, "--by", "ann", "--reason", "a flood of spam")
}

// Pending updates are lost only when asked for, by somebody with a reason, and never
// before the log says so.
func TestWebhookDropsOnlyWhenToldAndRecorded(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.botAPI(botapitest.Options{})
	push(api, 1, 5)
	s.webhook(0, "pending: 5", "set", "http://127.0.0.1:1")
	s.webhook(0, "pending: 5", "delete")
	s.webhook(2, "--by and --reason are needed", "set", "http://127.0.0.1:1", dropAll, "--by", "ann")
	s.webhook(2, "--by and --reason are needed", "delete", dropAll)
	s.webhook(2, "no log there", signed("set", "http://127.0.0.1:1")...)
	s.webhook(2, "no log there", signed("delete")...)
	s.terminate(s.serve().program) // it makes the log
	api.Fail("getWebhookInfo", botapitest.Fault{Drop: true})
	s.webhook(1, "nothing is dropped, since the pending updates cannot be counted", signed("set", "http://127.0.0.1:1")...)
	s.replaceInConfig("data_dir: data", "data_dir: data\nlog: memory")
	s.webhook(2, "memory can be seen by its own", signed("delete")...)
	s.replaceInConfig("log: memory", "")
	if n := len(api.Pending()); n != 5 {
		t.Fatalf("%d updates wait, want 5", n)
	}
	if _, out, _ := s.run("webhook", "drops"); strings.Contains(out, "ann") {
		t.Errorf("drops are recorded that were not tried:\n%s", out)
	}

	_, stderr := s.webhook(0, "5 pending updates were dropped", signed("set", "http://127.0.0.1:1")...)
	if !strings.Contains(stderr, "level=WARN") || !strings.Contains(stderr, "bot=700000001 count=5 by=ann") {
		t.Errorf("the log says %q", stderr)
	}
	push(api, 6, 7)
	out, _ := s.webhook(0, `"dropped": 2`, signed("delete", "--output", "json")...)
	var o webhookOutcome
	if err := json.Unmarshal([]byte(out), &o); err != nil || o.Webhook.URL != "" || o.Webhook.PendingUpdateCount != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	s.webhook(0, "5      ann  a flood of spam", "drops")
	out, _ = s.webhook(0, "", "drops", "--output", "json", "--bot", "700000001")
	var drops []droppedUpdates
	if err := json.Unmarshal([]byte(out), &drops); err != nil || len(drops) != 2 || drops[0].Count != 5 || drops[1].Count != 2 || drops[1].Reason != "a flood of spam" {
		t.Errorf("%+v, %v", drops, err)
	}
	if _, out, _ := s.run("audit", "verify"); !strings.Contains(out, "7 updates that waited at Telegram were dropped by a person, in 2 commands") || !strings.Contains(out, "nothing is wrong") {
		t.Errorf("the audit says\n%s", out)
	}
}

// The request that drops leaves only behind the record: when it fails, the record is
// there, and so is what waits.
func TestWebhookDropIsRecordedFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, "unique_create", brief)
	api := s.botAPI(botapitest.Options{})
	s.terminate(s.serve().program)
	push(api, 1, 3)
	for method, args := range map[string][]string{"setWebhook": signed("set", "http://127.0.0.1:1"), "deleteWebhook": signed("delete")} {
		api.Fail(method, botapitest.Fault{Drop: true})
		s.webhook(1, method, args...)
	}
	if n := len(api.Pending()); n != 3 {
		t.Errorf("%d updates wait, want 3", n)
	}
	out, _ := s.webhook(0, "", "drops")
	if strings.Count(out, "ann") != 2 {
		t.Errorf("drops prints\n%s", out)
	}
}
