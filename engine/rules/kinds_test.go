package rules_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

const (
	aUser    = `{"id":7,"is_bot":false,"first_name":"Ada","username":"ada"}`
	aMessage = `{"message_id":7,"date":1767225600,"chat":{"id":7,"type":"private"},"from":` + aUser + `,"text":"hello"}`
	aPost    = `{"message_id":7,"date":1767225600,"chat":{"id":-7,"type":"channel","title":"News"},"text":"hello"}`
	members  = `{"chat":{"id":-7,"type":"group","title":"Us"},"from":` + aUser + `,"date":1767225600,"old_chat_member":{"status":"left","user":` + aUser + `},"new_chat_member":{"status":"member","user":` + aUser + `}}`
)

// contents has one update of every kind of the Bot API, and of one that it will have.
var contents = map[string]string{
	"business_connection":       `{"id":"c","user":` + aUser + `,"user_chat_id":7,"date":1767225600,"is_enabled":true}`,
	"business_message":          aMessage,
	"callback_query":            `{"id":"1","from":` + aUser + `,"chat_instance":"c","data":"more","message":{"message_id":9,"date":1767225600,"chat":{"id":7,"type":"private"}}}`,
	"channel_post":              aPost,
	"chat_boost":                `{"chat":{"id":-7,"type":"channel"},"boost":{"boost_id":"b","add_date":1,"expiration_date":2,"source":{"source":"premium","user":` + aUser + `}}}`,
	"chat_join_request":         `{"chat":{"id":-7,"type":"group"},"from":` + aUser + `,"user_chat_id":7,"date":1767225600}`,
	"chat_member":               members,
	"chosen_inline_result":      `{"result_id":"r","from":` + aUser + `,"query":"shoes"}`,
	"deleted_business_messages": `{"business_connection_id":"c","chat":{"id":7,"type":"private"},"message_ids":[7]}`,
	"edited_business_message":   aMessage,
	"edited_channel_post":       aPost,
	"edited_message":            aMessage,
	"guest_message":             aMessage,
	"inline_query":              `{"id":"1","from":` + aUser + `,"query":"shoes","offset":""}`,
	"managed_bot":               `{"user":` + aUser + `,"bot":` + aUser + `}`,
	"message":                   aMessage,
	"message_reaction":          `{"chat":{"id":7,"type":"private"},"message_id":7,"user":` + aUser + `,"date":1,"old_reaction":[],"new_reaction":[{"type":"emoji","emoji":"x"}]}`,
	"message_reaction_count":    `{"chat":{"id":-7,"type":"channel"},"message_id":7,"date":1,"reactions":[]}`,
	"my_chat_member":            members,
	"poll":                      `{"id":"p","question":"?","options":[],"total_voter_count":0,"is_closed":false,"is_anonymous":true,"type":"regular","allows_multiple_answers":false}`,
	"poll_answer":               `{"poll_id":"p","user":` + aUser + `,"option_ids":[0]}`,
	"pre_checkout_query":        `{"id":"1","from":` + aUser + `,"currency":"EUR","total_amount":1200,"invoice_payload":"chairs"}`,
	"purchased_paid_media":      `{"from":` + aUser + `,"paid_media_payload":"x"}`,
	"removed_chat_boost":        `{"chat":{"id":-7,"type":"channel"},"boost_id":"b","remove_date":1,"source":{"source":"premium","user":` + aUser + `}}`,
	"shipping_query":            `{"id":"1","from":` + aUser + `,"invoice_payload":"chairs","shipping_address":{}}`,
	"future_kind":               `{"something":"new","user":` + aUser + `}`,
}

// TestEveryKind: by default a private message is a lead and nothing else is (T22,
// T43, T46); a rule may ask for one of every kind but an edit.
func TestEveryKind(t *testing.T) {
	always := compiled(t, lead(""))
	known := 0
	for kind, content := range contents {
		if job.KnownKind(kind) {
			known++
		}
		t.Run(kind, func(t *testing.T) {
			u := update(t, 1, kind, content)
			p := job.DefaultPlan(u.Key(), u)
			if want := kind == "message"; p.Effect != want || p.Undecodable != "" || !want && p.Reason == "" {
				t.Errorf("by default: %+v", p)
			}
			p = plan(always, u)
			if edit := strings.HasPrefix(kind, "edited_"); p.Effect == edit || p.Undecodable != "" {
				t.Errorf("with a rule for everything: %+v", p)
			}
			if p.Effect && (p.Fields["source"] != "telegram" || p.Fields["bot_id"] != "700000001") {
				t.Errorf("the lead has %v", p.Fields)
			}
			own := compiled(t, rules.Rule{Name: "own", When: `kind == "` + kind + `"`, Action: rules.Ignore}, lead(""))
			if x := own.Explain(u.Key(), u); x.Rule != "own" && !strings.HasPrefix(kind, "edited_") {
				t.Errorf("decided by %q", x.Rule)
			}
		})
	}
	if len(contents) != 26 || known != 25 {
		t.Errorf("%d kinds, %d of them known", len(contents), known)
	}
}

// TestEveryKindHasPeopleAndPlaces: chat and user are found wherever a kind has them.
func TestEveryKindHasPeopleAndPlaces(t *testing.T) {
	without := map[string][]string{
		"user.id == 7":             {"channel_post", "chat_boost", "deleted_business_messages", "message_reaction_count", "poll", "removed_chat_boost"},
		"user.username == \"ada\"": {"channel_post", "chat_boost", "deleted_business_messages", "message_reaction_count", "poll", "removed_chat_boost"},
		"chat.id in [7, -7]":       {"chosen_inline_result", "inline_query", "managed_bot", "poll", "poll_answer", "pre_checkout_query", "purchased_paid_media", "shipping_query", "future_kind"},
		"chat.type in [\"private\", \"group\", \"channel\"]": {"business_connection", "chosen_inline_result", "inline_query", "managed_bot", "poll", "poll_answer", "pre_checkout_query", "purchased_paid_media", "shipping_query", "future_kind"},
	}
	for when, none := range without {
		s := compiled(t, lead(when))
		for _, kind := range slices.Sorted(maps.Keys(contents)) {
			if strings.HasPrefix(kind, "edited_") {
				continue
			}
			u := update(t, 1, kind, contents[kind])
			if x := s.Explain(u.Key(), u); (x.Rule == "lead") == slices.Contains(none, kind) || x.Failed != "" {
				t.Errorf("%s of %s: decided by %q %s", when, kind, x.Rule, x.Failed)
			}
		}
	}
}

// TestDefaults: which messages are a lead without any rule.
func TestDefaults(t *testing.T) {
	for content, want := range map[string]bool{
		`"text":"hello"`: true,
		`"contact":{"phone_number":"+1","first_name":"Bob"}`: true,
		`"photo":[{"file_id":"f"}]`:                          true,
		`"photo":[{"file_id":"f"}],"caption":"/start"`:       true, // commands are texts
		`"document":{"file_id":"f"}`:                         true,
		`"voice":{"file_id":"f"}`:                            true,
		`"video":{"file_id":"f"},"caption":"look"`:           true,
		`"sticker":{"file_id":"f"}`:                          false,
		`"location":{"latitude":1,"longitude":2}`:            false,
		`"text":""`:                            false,
		`"photo":[]`:                           false,
		`"text":"/start"`:                      false,
		`"text":"/start  "`:                    false,
		`"text":"/start@shop_bot"`:             false,
		`"text":"/help me"`:                    false,
		`"text":"/START"`:                      false,
		`"text":"/start spring-sale"`:          true,
		`"text":"/Start spring-sale"`:          true,
		`"text":"/start@shop_bot spring-sale"`: true,
		`"text":"/started spring-sale"`:        false,
		`"text":"/ start"`:                     true,
		`"text":"/usr/bin/env"`:                true,
		`"text":"tell me /help"`:               true,
		`"text":" /help"`:                      true,
		`"text":"/help, please"`:               false,
	} {
		u := private(t, 1, content)
		p := job.DefaultPlan(u.Key(), u)
		if p.Effect != want || p.Undecodable != "" || !want && p.Reason == "" {
			t.Errorf("%s: %+v", content, p)
		}
		if was := job.DefaultPlan(u.Key(), u); p.Effect && (!maps.Equal(p.Fields, was.Fields) || p.BusinessKey != was.BusinessKey || p.Action != was.Action) {
			t.Errorf("%s: the lead is %+v, and without rules %+v", content, p, was)
		}
	}
}
