package rules_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

// The cases from the field that rules take part in, by their numbers.

func operation(s *rules.Set, u job.Update) string {
	p := plan(s, u)
	if !p.Effect {
		return ""
	}
	return job.OperationID(u.Bot, p.Action, p.BusinessKey)
}

func TestT10TwoBotsWithOneRuleAndKey(t *testing.T) {
	s := compiled(t, keyed("person", "user.id"))
	one := private(t, 1, `"text":"hello"`)
	other, err := job.ParseUpdate(bot+1, one.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := plan(s, one).BusinessKey, plan(s, other).BusinessKey; a == b || a == "" {
		t.Errorf("both are %q", a)
	}
}

func TestT12AnotherSpellingIsTheSamePlan(t *testing.T) {
	s := compiled(t, rules.Rule{Name: "order", When: `text startsWith "grü" and update.message.n == 5`, Action: rules.CreateLead,
		BusinessKey: "update.message.n", Fields: map[string]string{"n": "update.message.n", "all": `"${update.message.n} ${text}"`}})
	one := parse(t, `{"update_id":1,"message":{"chat":{"id":5,"type":"private"},"n":5,"text":"grün"}}`)
	two := parse(t, `{"message" : {"text":"gr\u00fcn", "n":50e-1, "chat":{"type":"private","id":5}}, "update_id":1}`)
	a, b := plan(s, one), plan(s, two)
	if one.Fingerprint != two.Fingerprint || !a.Effect || a.BusinessKey != b.BusinessKey || !maps.Equal(a.Fields, b.Fields) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestT13IdsAreExact(t *testing.T) {
	s := compiled(t, rules.Rule{Name: "ids", When: "chat.id == -1001234567890123 and update.message.chat.id == chat.id and user.id in [4503599627370495]",
		Action: rules.CreateLead, BusinessKey: "update.message.big", Fields: map[string]string{"id": "update.message.chat.id"}})
	u := update(t, 1, "message", `{"chat":{"id":-1001234567890123},"from":{"id":4503599627370495},"big":9007199254740993,"text":"x"}`)
	p := plan(s, u)
	if p.BusinessKey != `telegram/700000001/rule/ids/"9007199254740993"` || p.Fields["id"] != "-1001234567890123" {
		t.Errorf("%+v", p)
	}
}

func TestT40ADoubleTapIsOneOperation(t *testing.T) {
	s := compiled(t, lead(`kind == "callback_query" and data == "buy" and message_id > 0`))
	tap := func(id int64, message int, data string) job.Update {
		return update(t, id, "callback_query", fmt.Sprintf(`{"id":"%d","from":{"id":5},"data":%q,"message":{"message_id":%d,"date":0,"chat":{"id":5}}}`, id, data, message))
	}
	first, second := operation(s, tap(1, 9, "buy")), operation(s, tap(2, 9, "buy"))
	if first == "" || first != second {
		t.Errorf("%q and %q", first, second)
	}
	if operation(s, tap(3, 10, "buy")) == first {
		t.Error("the button of another message is the same operation")
	}
	if got := operation(s, tap(4, 9, "more")); got != "" {
		t.Errorf("another button is operation %s", got)
	}
	empty := compiled(t, keyed("empty", `""`))
	if a, b := operation(empty, tap(1, 9, "buy")), operation(empty, tap(2, 9, "buy")); a == "" || a != b {
		t.Errorf("with an empty business key: %q and %q", a, b)
	}
}

func TestT42TwoEqualTextsAreTwoLeads(t *testing.T) {
	for name, s := range map[string]*rules.Set{"defaults": compiled(t), "a rule": compiled(t, lead(`text == "hello"`))} {
		a, b := operation(s, private(t, 1, `"text":"hello"`)), operation(s, private(t, 2, `"text":"hello"`))
		if a == "" || b == "" || a == b {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
}

func TestT43AnEditIsNoLead(t *testing.T) {
	s := compiled(t, lead(""))
	for _, kind := range []string{"edited_message", "edited_channel_post", "edited_business_message", "edited_future"} {
		if p := plan(s, update(t, 1, kind, aMessage)); p.Effect || p.Reason == "" {
			t.Errorf("%s: %+v", kind, p)
		}
	}
}

// TestT44AnAlbumIsOneLead: whatever the order, the member with the caption is asked
// first; the rest of it is the engine's, over reservations.
func TestT44AnAlbumIsOneLead(t *testing.T) {
	sets := map[string]*rules.Set{
		"defaults":            compiled(t),
		"a rule":              compiled(t, lead("has_photo")),
		"for the caption":     compiled(t, lead(`caption contains "flat"`)),
		"a key of its own":    compiled(t, keyed("album", "album")),
		"a key that is empty": compiled(t, keyed("empty", `caption == "" ? "" : nil`)),
	}
	for name, s := range sets {
		for _, kind := range []string{"message", "business_message", "channel_post"} {
			if kind != "message" && (name == "defaults" || name == "for the caption") {
				continue
			}
			keys := map[string]int{}
			for i := range 5 {
				caption, wait := "", 5*time.Second
				if i == 2 {
					caption, wait = `"caption":"my flat",`, 0
				}
				p := plan(s, update(t, int64(i), kind, fmt.Sprintf(`{"message_id":%d,"chat":{"id":5,"type":"private"},%s"media_group_id":"g","photo":[{"file_id":"f"}]}`, i, caption)))
				keys[p.BusinessKey]++
				if !p.Effect || p.Defer != wait {
					t.Errorf("%s: %s: member %d: %+v", name, kind, i, p)
				}
			}
			if len(keys) != 1 {
				t.Errorf("%s: %s: %v", name, kind, keys)
			}
		}
	}
}

// TestT45AMigrationIsNoLead: the service messages of a group that becomes a
// supergroup ask for nothing, and rules see both ids.
func TestT45AMigrationIsNoLead(t *testing.T) {
	s := compiled(t, rules.Rule{Name: "moved", When: "update.message.migrate_to_chat_id == -1005 or update.message.migrate_from_chat_id == -5", Action: rules.Ignore})
	for _, content := range []string{
		`{"message_id":1,"chat":{"id":-5,"type":"group"},"migrate_to_chat_id":-1005}`,
		`{"message_id":1,"chat":{"id":-1005,"type":"supergroup"},"migrate_from_chat_id":-5}`,
	} {
		u := update(t, 1, "message", content)
		if p := job.DefaultPlan(u.Key(), u); p.Effect || p.Undecodable != "" {
			t.Errorf("%+v", p)
		}
		if x := s.Explain(u.Key(), u); x.Rule != "moved" {
			t.Errorf("decided by %q: %+v", x.Rule, x)
		}
	}
}

func TestT47CallbacksHaveASensibleKey(t *testing.T) {
	s := compiled(t, lead(`kind == "callback_query"`))
	for content, want := range map[string]string{
		`{"id":"1","from":{"id":5},"data":"buy","message":{"message_id":9,"date":0,"chat":{"id":5}}}`: `telegram/700000001/callback/"5"/"9"/"data:buy"`,
		`{"id":"1","from":{"id":5},"data":"buy","inline_message_id":"i"}`:                             `telegram/700000001/callback-inline/"i"/"data:buy"`,
		`{"id":"1","from":{"id":5},"message":{"message_id":9,"date":0,"chat":{"id":5}}}`:              `telegram/700000001/callback/"5"/"9"/"game:"`,
		`{"id":"1","from":{"id":5}}`: `telegram/700000001/1`,
	} {
		if p := plan(s, update(t, 1, "callback_query", content)); p.BusinessKey != want || p.Fields["user_id"] != "5" {
			t.Errorf("%s: %+v", content, p)
		}
	}
}

func TestT48MessageIdsOfTwoChats(t *testing.T) {
	s := compiled(t, keyed("message", `string(chat.id) + ":" + string(message_id)`))
	a := plan(s, update(t, 1, "message", `{"message_id":0,"chat":{"id":5},"text":"x"}`))
	b := plan(s, update(t, 2, "message", `{"message_id":0,"chat":{"id":6},"text":"x"}`))
	if a.BusinessKey == b.BusinessKey || !a.Effect || !b.Effect {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestT49WhoseContactItIs(t *testing.T) {
	s := compiled(t, rules.Rule{Name: "contact", When: "has_contact and not contact.own", Action: rules.CreateLead,
		Fields: map[string]string{"name": "contact.name", "told_by": "${user.name} (@${user.username})"}})
	p := plan(s, private(t, 1, `"contact":{"phone_number":"+1","first_name":"Bob","last_name":"B","user_id":6}`))
	if p.Fields["name"] != "Bob B" || p.Fields["told_by"] != "Ada Example (@ada)" || p.Fields["phone"] != "+1" || p.Fields["contact_user_id"] != "6" {
		t.Errorf("%+v", p)
	}
	if p = plan(s, private(t, 2, `"contact":{"phone_number":"+1","first_name":"Ada","user_id":5}`)); p.Fields["told_by"] != "" || p.Fields["name"] != "Ada Example" {
		t.Errorf("her own: %+v", p)
	}
	if p = plan(s, private(t, 3, `"contact":{"phone_number":"+1","first_name":"Bob"}`)); !strings.HasPrefix(p.Fields["told_by"], "Ada") {
		t.Errorf("of nobody on Telegram: %+v", p)
	}
}

func TestT45TheChatKeepsItsFirstId(t *testing.T) {
	s := compiled(t, keyed("chat", "chat.origin"))
	before := update(t, 1, "message", `{"chat":{"id":-5,"type":"group"},"text":"hello"}`)
	after := update(t, 2, "message", `{"chat":{"id":-1001,"type":"supergroup"},"text":"hello"}`)
	after.Origin = -5 // as the engine knows it
	if a, b := operation(s, before), operation(s, after); a == "" || a != b {
		t.Errorf("%q and %q", a, b)
	}
}

func TestASeriesIsAskedForByItsRule(t *testing.T) {
	forwarded := `"forward_origin":{"type":"hidden_user"},"text":"x"`
	s := compiled(t, rules.Rule{Name: "forwards", When: "forwarded", Action: rules.CreateLead, Series: 2 * time.Minute})
	u := private(t, 1, forwarded)
	want := job.Series{Name: "forwards", Window: 2 * time.Minute, SentAt: time.Unix(1767225600, 0).UTC()}
	if p := plan(s, u); p.Series != want || p.BusinessKey != u.Key().String() {
		t.Errorf("%+v", p)
	}
	for name, u := range map[string]job.Update{
		"not forwarded": private(t, 1, `"text":"x"`), "an album, which has a key of its own": private(t, 1, `"media_group_id":"1",`+forwarded),
		"without a time": update(t, 1, "message", `{"chat":{"id":5,"type":"private"},"from":{"id":5},`+forwarded+`}`),
		"of nobody":      update(t, 1, "message", `{"date":1,"chat":{"id":5,"type":"private"},`+forwarded+`}`),
	} {
		if p := plan(s, u); p.Series != (job.Series{}) || !p.Effect {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for name, r := range map[string]rules.Rule{
		"too short": {Series: time.Millisecond}, "too long": {Series: 25 * time.Hour}, "negative": {Series: -time.Minute},
		"ignoring": {Series: time.Minute, Action: rules.Ignore}, "with a key": {Series: time.Minute, BusinessKey: "text"},
	} {
		r.Name = "r"
		if r.Action == "" {
			r.Action = rules.CreateLead
		}
		if _, err := rules.New("rules.yaml", []rules.Rule{r}); err == nil || !strings.HasPrefix(err.Error(), "rules.yaml: rules[0].series: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
