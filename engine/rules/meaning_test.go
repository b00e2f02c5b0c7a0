package rules_test

import (
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

// spoken is a message with something of everything.
func spoken(t testing.TB) job.Update {
	return private(t, 1, `"text":"/Start@shop_bot spring sale","entities":[{"type":"bot_command","offset":0,"length":15},{"type":"bold","offset":16,"length":6}],`+
		`"forward_origin":{"type":"hidden_user"},"price":12.5,"none":null,"yes":true,"nested":[[1,2],[3]]`)
}

// TestConditions: what an expression says of that message.
func TestConditions(t *testing.T) {
	u := spoken(t)
	for when, want := range map[string]bool{
		`command == "start" and args == "spring sale" and payload == args`:                                      true,
		`text contains "spring" and text startsWith "/" and text endsWith "sale"`:                               true,
		`text matches "(?i)^/start(@\\w+)? "`:                                                                   true,
		`kind == "message" && bot == 700000001`:                                                                 true,
		`kind in ["message", "poll"] and kind not in ["poll"]`:                                                  true,
		`chat.id in [5] and user.id == 5 and message_id == 1`:                                                   true,
		`user.name == "Ada Example" and user.language == "en"`:                                                  true,
		`is_private and forwarded and not has_photo and not has_voice and not has_document and not has_contact`: true,
		`lower(user.username) == "ada" and upper("é") == "É" and trim(" a ") == "a"`:                            true,
		`update.message.chat.id == 5`:                                                                           true,
		`update.message.price == 12.5`:                                                                          true,
		`update.message.nested[0][1] == 2`:                                                                      true,
		`update.message.nested[-1][0] == 3`:                                                                     true,
		`update["message"]["text"] == text`:                                                                     true,
		`any(update.message.entities, .type == "bold")`:                                                         true,
		`any(update.message.entities, #.type == "bold" and .offset == 16)`:                                      true,
		`count(update.message.entities, .length > 1) == 2`:                                                      true,
		`find(update.message.entities, .type == "bold").length == 6`:                                            true,
		`filter(update.message.entities, .type == "bold")[0].length == 6`:                                       true,
		`len(split(args, " ")) == 2 and split(args, " ")[1] == "sale"`:                                          true,
		`len(update.message) == 11 and len(text) == 27`:                                                         true,
		`string(update.message.price) == "12.5" and string(5) == "5" and string(nil) == ""`:                     true,
		`int("5") == 5 and float("1.5") == 1.5 and type(update.message.yes) == "bool"`:                          true,
		`update.message.yes`: true,
		`update.message.yes and update.message.yes ? true : false`: true,
		`(update.message.nothing ?? "x") == "x"`:                   true,
		`update?.message?.text == text`:                            true,

		// What is missing is nil, false, empty.
		`update.message.nothing`:                            false,
		`update.message.none`:                               false,
		`not update.message.nothing`:                        true,
		`update.message.nothing and true`:                   false,
		`false or update.message.nothing`:                   false,
		`update.message.nothing ? true : false`:             false,
		`update.callback_query.data == "x"`:                 false,
		`update.callback_query.message.chat.id == nil`:      true,
		`update.message.nested[7] == nil`:                   true,
		`update.message.text.text == nil`:                   true,
		`update.message.nothing contains "x"`:               false,
		`update.message.nothing matches "x"`:                false,
		`update.message.nothing in ["x"]`:                   false,
		`any(update.message.nothing, true)`:                 false,
		`any(update.message.entities, .nothing)`:            false,
		`all(update.message.nothing, false)`:                true,
		`lower(update.message.nothing) == ""`:               true,
		`len(update.message.nothing) == 0`:                  true,
		`split(args, " ")[7] == nil`:                        true,
		`first(update.message.nothing) == nil`:              true,
		`album == "" and data == "" and caption == ""`:      true,
		`has_contact or contact.own or contact.phone != ""`: false,
	} {
		s := compiled(t, lead(when))
		if x := s.Explain(u.Key(), u); (x.Rule == "lead") != want || x.Failed != "" {
			t.Errorf("%s: decided by %q %s", when, x.Rule, x.Failed)
		}
	}
}

// TestWhatCannotBeEvaluated ends as a dead letter that says which rule and repeats
// nothing; the explanation tells more.
func TestWhatCannotBeEvaluated(t *testing.T) {
	u := private(t, 1, `"text":"canary"`)
	for _, c := range []struct {
		rule rules.Rule
		want string
		told string
	}{
		{lead("update.message.nothing > 5"), "the rule lead: its condition cannot be evaluated", "rules[1].when: "},
		{lead("int(text) > 5"), "the rule lead: its condition cannot be evaluated", "rules[1].when: "},
		{lead("update.message.text"), "the rule lead: its condition cannot be evaluated", "rules[1].when: "},
		{lead("update.message.text and true"), "the rule lead: its condition cannot be evaluated", "a text is neither true nor false"},
		{lead("any(update.message.text, true)"), "the rule lead: its condition cannot be evaluated", "a text is no list"},
		{lead("lower(update.message.chat) == ''"), "the rule lead: its condition cannot be evaluated", "a group of members is no text"},
		{lead("split(text, update.x) == []"), "the rule lead: its condition cannot be evaluated", "split wants two texts"},
		{keyed("lead", "update.message.chat"), "the rule lead: its business key cannot be evaluated", "rules[1].business_key: the result is a group of members"},
		{keyed("lead", "update.message.nothing ?? 1.5"), "the rule lead: its business key cannot be evaluated", "the result is a number"},
		{keyed("lead", `"`+strings.Repeat("x", rules.MaxKey+1)+`"`), "the rule lead: its business key cannot be evaluated", "201 bytes, at most 200"},
		{onlyField("update.message.chat")[0], "the rule a: its field x cannot be evaluated", "rules[1].fields.x: "},
		{onlyField("a ${update.message.chat}")[0], "the rule a: its field x cannot be evaluated", "rules[1].fields.x: "},
	} {
		s := compiled(t, rules.Rule{Name: "before", When: "false", Action: rules.Ignore}, c.rule)
		x := s.Explain(u.Key(), u)
		if x.Plan.Undecodable != c.want || x.Plan.Effect || !strings.Contains(x.Failed, c.told) || x.Index != 1 || len(x.Passed) != 1 {
			t.Errorf("%+v: %+v", c.rule, x)
		}
	}
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	s := compiled(t,
		rules.Rule{Name: "spam", When: `kind == "message" and text contains "win" and is_private`, Action: rules.Ignore},
		keyed("person", "user.id"),
		rules.Rule{Name: "never", Action: rules.Ignore},
	)
	if p := plan(s, private(t, 1, `"text":"you win"`)); p.Effect || p.Reason != "the rule spam ignores it" {
		t.Errorf("%+v", p)
	}
	x := s.Explain(job.Key{Bot: bot, Update: 2}, private(t, 2, `"text":"hello"`))
	if x.Rule != "person" || x.Index != 1 || x.Plan.BusinessKey != `telegram/700000001/rule/person/"5"` {
		t.Errorf("%+v", x)
	}
	if len(x.Passed) != 1 || x.Passed[0] != (rules.Passed{Rule: "spam", Index: 0, Because: `text contains "win" is false`}) {
		t.Errorf("%+v", x.Passed)
	}
	x = compiled(t).Explain(job.Key{Bot: bot, Update: 2}, private(t, 2, `"text":"hello"`))
	if x.Rule != "" || x.Index != -1 || len(x.Passed) != 0 || !x.Plan.Effect {
		t.Errorf("%+v", x)
	}
}

// TestBusinessKeysDoNotCollide: not with another rule's, whatever people write into
// them, and not with any other key.
func TestBusinessKeysDoNotCollide(t *testing.T) {
	said := func(rule, text string) string {
		u := private(t, 1, `"text":`+text)
		return plan(compiled(t, keyed(rule, "text")), u).BusinessKey
	}
	keys := map[string]string{}
	for _, rule := range []string{"a", "b", "a_"} {
		for _, text := range []string{`"x"`, `"X"`, `"x "`, `"\"x"`, `"x\"/\"y"`, `"\u0000"`, `"a/\"x\""`, `"telegram/700000001/1"`, `"é"`} {
			key := said(rule, text)
			if before, taken := keys[key]; taken || !strings.HasPrefix(key, "telegram/700000001/rule/"+rule+`/"`) {
				t.Errorf("%s of %s is %s, as of %s", text, rule, key, before)
			}
			if _, err := job.ParseKey(key); err == nil {
				t.Errorf("%s is an event key", key)
			}
			if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%q is not in printable ASCII", key)
			}
			keys[key] = rule + text
		}
	}
	if key := plan(compiled(t, keyed("a", "album")), private(t, 1, `"text":"x"`)).BusinessKey; key != "telegram/700000001/1" {
		t.Errorf("an empty key is %s", key)
	}
	variant := job.Key{Bot: bot, Update: 1, Variant: "0123456789abcdef"}
	if key := compiled(t, keyed("a", "nil")).Plan(variant, private(t, 1, `"text":"x"`)).BusinessKey; key != variant.String() {
		t.Errorf("an empty key of a variant is %s", key)
	}
}

func TestFields(t *testing.T) {
	s := compiled(t, rules.Rule{Name: "a", Action: rules.CreateLead, Fields: map[string]string{
		"text": `"told: " + text`, "username": "", "language": "nil", "kind": "kind", "count": "len(text)",
		"private": "is_private", "title": "${lower(user.first_name)}: {${text}} } ${'}'} ${{'a': 1}.a}$", "half": "text[0:1]",
	}})
	p := plan(s, private(t, 1, `"text":"éa"`))
	want := map[string]string{
		"source": "telegram", "bot_id": "700000001", "chat_id": "5", "user_id": "5", "name": "Ada Example", "sent_at": "2026-01-01T00:00:00Z",
		"text": "told: éa", "kind": "message", "count": "2", "private": "true", "title": "ada: {éa} } } 1$",
	}
	for name := range p.Fields {
		if p.Fields[name] != want[name] {
			t.Errorf("%s is %q, want %q", name, p.Fields[name], want[name])
		}
	}
	if len(p.Fields) != len(want) {
		t.Errorf("%v", p.Fields)
	}
	gone := map[string]string{}
	for name := range p.Fields {
		gone[name] = ""
	}
	gone["language"], gone["username"] = "", ""
	s = compiled(t, rules.Rule{Name: "a", Action: rules.CreateLead, Fields: gone})
	if p = plan(s, private(t, 1, `"text":"x"`)); len(p.Fields) != 1 || p.Fields["source"] != "telegram" {
		t.Errorf("with every field removed: %v", p.Fields)
	}
	big := rules.Rule{Name: "a", Action: rules.CreateLead, Fields: map[string]string{"x": "text + text + text + text + text"}}
	if p = plan(compiled(t, big), private(t, 1, `"text":"`+strings.Repeat("x", 5000)+`"`)); p.Effect || p.Undecodable == "" {
		t.Errorf("fields far larger than the update: %d bytes", len(p.Fields["x"]))
	}
}

// TestWhatIsTooLargeToSearch: Telegram sends nothing of that size.
func TestWhatIsTooLargeToSearch(t *testing.T) {
	for when, content := range map[string]string{
		`text matches "x"`:             `"text":"` + strings.Repeat("a", 64<<10+1) + `"`,
		`any(update.message.a, # > 1)`: `"a":[0` + strings.Repeat(",0", 256) + `]`,
	} {
		if p := plan(compiled(t, lead(when)), private(t, 1, content)); p.Undecodable == "" {
			t.Errorf("%s: %.200v", when, p)
		}
	}
	for when, content := range map[string]string{
		`text matches "a$"`:             `"text":"` + strings.Repeat("a", 64<<10) + `"`,
		`len(split(text, "b")) == 256`:  `"text":"` + strings.Repeat("b", 1000) + `"`,
		`all(update.message.a, # == 0)`: `"a":[0` + strings.Repeat(",0", 255) + `]`,
	} {
		u := private(t, 1, content)
		if x := compiled(t, lead(when)).Explain(u.Key(), u); x.Rule != "lead" || !x.Plan.Effect {
			t.Errorf("%s: %.200v", when, x)
		}
	}
}

// TestAnUpdateThatIsNone: the planner is given what the log holds, which is what
// ParseUpdate took; anything else is no reason to panic.
func TestAnUpdateThatIsNone(t *testing.T) {
	s := compiled(t, lead(""))
	for _, raw := range []string{"", "null", "[]", "{", `{"message":{}} x`, `{}{}`} {
		for _, kind := range []string{"message", "poll"} {
			if p := s.Plan(job.Key{}, job.Update{Kind: kind, Raw: []byte(raw)}); p.Effect || p.Undecodable == "" {
				t.Errorf("%s %q: %+v", kind, raw, p)
			}
		}
	}
}
