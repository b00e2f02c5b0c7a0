package job

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func planOf(t testing.TB, raw string) Plan {
	t.Helper()
	u := mustParse(t, 7, raw)
	return DefaultPlan(u.Key(), u)
}

func TestT46_OnlyANewMessageAsksForALead(t *testing.T) {
	for kind, u := range sampleUpdates(t) {
		plan := DefaultPlan(u.Key(), u)
		if plan.Undecodable != "" {
			t.Errorf("a %s is undecodable: %s", kind, plan.Undecodable)
		}
		if plan.Effect != (kind == "message") {
			t.Errorf("a %s is planned as %+v", kind, plan)
		}
		if !plan.Effect && !strings.Contains(plan.Reason, kind) {
			t.Errorf("the reason %q does not name the kind %s", plan.Reason, kind)
		}
	}
}

func TestT42_EqualTextsAreTwoOperationsAndT43_EditsNone(t *testing.T) {
	const message = `"chat":{"id":5},"from":{"id":6},"message_id":9,"text":"x"`
	one := planOf(t, `{"update_id":1,"message":{`+message+`}}`)
	two := planOf(t, `{"update_id":2,"message":{`+message+`}}`)
	if !one.Effect || !two.Effect || one.BusinessKey == two.BusinessKey {
		t.Errorf("two messages are planned as %+v and %+v", one, two)
	}
	if edit := planOf(t, `{"update_id":3,"edited_message":{`+message+`,"edit_date":5}}`); edit.Effect {
		t.Errorf("an edit is planned as %+v", edit)
	}
}

func TestMessagesThatAskForALead(t *testing.T) {
	tests := map[string]map[string]string{ // content → its fields
		`"text":"Hello"`:                                  {"text": "Hello"},
		`"caption":"Look"`:                                {"text": "Look"},
		`"photo":[]`:                                      nil,
		`"photo":[{"file_id":"small"}]`:                   {"attachment": "photo", "file_id": "small"},
		`"voice":{"file_id":"v"}`:                         {"attachment": "voice", "file_id": "v"},
		`"document":{"file_id":"d"}`:                      {"attachment": "document", "file_id": "d"},
		`"document":{},"caption":"x"`:                     {"attachment": "document", "text": "x"},
		`"sticker":{"file_id":"s"}`:                       nil,
		`"text":""`:                                       nil,
		`"text":null`:                                     nil,
		`"new_chat_title":"x"`:                            nil,
		`"contact":{}`:                                    {},
		`"text":"x","date":1781136000`:                    {"text": "x", "sent_at": "2026-06-11T00:00:00Z"},
		`"text":"x","date":-1`:                            {"text": "x"},
		`"text":"x","from":{"id":8}`:                      {"text": "x", "user_id": "8"},
		`"text":"x","chat":{"id":-1005,"type":"private"}`: {"text": "x", "chat_id": "-1005"},
		`"photo":[{"file_id":"small"},{"file_id":"large"}],"caption":"x"`:                                                          {"attachment": "photo", "file_id": "large", "text": "x"},
		`"text":"x","from":{"id":8,"first_name":"Ann","last_name":"Lee","username":"al","language_code":"de"}`:                     {"text": "x", "user_id": "8", "name": "Ann Lee", "username": "al", "language": "de"},
		`"from":{"id":8,"last_name":"Lee"},"contact":{"phone_number":"+49","first_name":"Bob","last_name":"Ray"}`:                  {"user_id": "8", "name": "Lee", "phone": "+49", "contact_name": "Bob Ray"},
		`"from":{"id":8,"first_name":"Ann"},"contact":{"phone_number":"+49","first_name":"Bob","user_id":9223372036854775807}`:     {"user_id": "8", "name": "Ann", "phone": "+49", "contact_name": "Bob", "contact_user_id": "9223372036854775807"},
		`"voice":{"file_id":"v"},"document":{"file_id":"d"},"photo":[{"file_id":"p"}],"text":"x","audio":[{"file_id":"not read"}]`: {"attachment": "voice", "file_id": "v", "text": "x"},
	}
	for content, want := range tests {
		plan := planOf(t, `{"update_id":1,"message":{`+content+`}}`)
		if plan.Effect != (want != nil) || plan.Undecodable != "" {
			t.Errorf("%s is planned as %+v", content, plan)
		}
		if want == nil {
			continue
		}
		fields := map[string]string{"source": "telegram", "bot_id": "7", "chat_id": "0"}
		maps.Copy(fields, want)
		if !maps.Equal(plan.Fields, fields) || plan.Action != CreateLead || plan.BusinessKey != "telegram/7/1" {
			t.Errorf("%s is planned as %+v, want fields %v", content, plan, fields)
		}
	}
}

func TestNumbersOfAnyLengthComeThrough(t *testing.T) {
	u := mustParse(t, 7000000001, `{"update_id":1,"message":{"chat":{"id":9002000000001},"from":{"id":6000000002},"contact":{"user_id":6000000003},"date":1}}`)
	want := map[string]string{
		"source": "telegram", "bot_id": "7000000001", "chat_id": "9002000000001", "user_id": "6000000002",
		"contact_user_id": "6000000003", "sent_at": "1970-01-01T00:00:01Z",
	}
	if got := DefaultPlan(u.Key(), u).Fields; !maps.Equal(got, want) {
		t.Errorf("fields are %v, want %v", got, want)
	}
}

func TestAReasonSaysWhichMemberIsOdd(t *testing.T) {
	for raw, want := range map[string]string{
		`{"text":7}`:                           "message: message.text is a number",
		`{"from":{"id":"x"}}`:                  "message: message.from.id is a string",
		`{"message_id":99999999999999999999}`:  "message: message.message_id is a number",
		`null`:                                 "message: null",
		`{"sticker":{},"media_group_id":true}`: "message: message.media_group_id is a bool",
	} {
		if plan := planOf(t, `{"update_id":1,"message":`+raw+`}`); plan.Undecodable != want {
			t.Errorf("%s: %+v, want %s", raw, plan, want)
		}
	}
	if plan := planOf(t, `{"update_id":1,"message":{"sticker":{}}}`); plan.Reason != "a message without text, caption, contact, photo, document or voice asks for no lead" {
		t.Errorf("a sticker: %+v", plan)
	}
}

func TestT49_ALeadSaysWhoseContactItIs(t *testing.T) {
	plan := planOf(t, `{"update_id":1,"message":{"from":{"id":8,"first_name":"Ann"},"contact":{"phone_number":"+49","first_name":"Bob","user_id":9}}}`)
	if f := plan.Fields; f["user_id"] != "8" || f["contact_user_id"] != "9" || f["name"] == f["contact_name"] {
		t.Errorf("sender and owner of the contact are mixed up: %v", f)
	}
}

// secret stands for what a person wrote. It must not come into a reason, which
// operators and logs see.
const secret = "my-private-words"

func TestAWrongShapeIsUndecodableAndNotRepeated(t *testing.T) {
	fields := []string{
		"text", "caption", "media_group_id", "message_id", "date", "contact", "photo", "document", "voice", "from",
		"contact.phone_number", "contact.first_name", "contact.user_id", "photo.file_id", "document.file_id", "voice.file_id",
		"from.id", "from.first_name", "from.username", "from.language_code",
	}
	values := []string{`"` + secret + `"`, `{"` + secret + `":"` + secret + `"}`, `["` + secret + `"]`, `1.5`, `99999999999999999999`, `true`}
	wrong := 0
	for _, field := range fields {
		for _, v := range values {
			content := `"` + field + `":` + v
			if outer, inner, nested := strings.Cut(field, "."); nested {
				content = `"` + outer + `":{"` + inner + `":` + v + `}`
				if outer == "photo" {
					content = `"photo":[{"` + inner + `":` + v + `}]`
				}
			}
			if plan := planOf(t, `{"update_id":1,"message":{`+content+`,"text":"`+secret+`"}}`); !plan.Effect || !strings.Contains(plan.Fields["text"], secret) {
				t.Errorf("%s: an enquiry with text is lost for it: %+v", content, plan)
			}
			plan := planOf(t, `{"update_id":1,"message":{`+content+`}}`)
			if said := plan.Undecodable + plan.Reason; strings.Contains(said, secret) || strings.Contains(said, "9999") {
				t.Errorf("%s: the reason repeats what a person wrote: %+v", content, plan)
			}
			if plan.Undecodable == "" {
				continue
			}
			wrong++
			if plan.Effect || len(plan.Fields) > 0 {
				t.Errorf("%s is undecodable and has an effect: %+v", content, plan)
			}
			if !strings.Contains(plan.Undecodable, "message") {
				t.Errorf("%s: %q does not say where", content, plan.Undecodable)
			}
		}
	}
	if wrong < 30 {
		t.Errorf("only %d shapes were wrong", wrong)
	}
	for _, raw := range []string{`"` + secret + `"`, `["` + secret + `"]`, "7", "null", "true"} {
		plan := planOf(t, `{"update_id":1,"message":`+raw+`}`)
		if plan.Undecodable == "" || plan.Effect || strings.Contains(plan.Undecodable, secret) {
			t.Errorf("T23: message %s is planned as %+v", raw, plan)
		}
		events := Start(plan)
		if len(events) != 1 || events[0] != (JobDeadLettered{Reason: "undecodable: " + plan.Undecodable}) {
			t.Errorf("T23: message %s starts with %v", raw, events)
		}
	}
	if plan := DefaultPlan(Key{}, Update{Kind: "message", Raw: []byte(secret)}); plan.Undecodable != "message: not the shape of the Bot API" {
		t.Errorf("a body that is no JSON is planned as %+v", plan)
	}
}

func TestAnyMessageIsPlannedWithoutPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for _, name := range []string{"text", "caption", "contact", "photo", "document", "voice", "from", "chat", "date", "media_group_id", "message_id"} {
			if rapid.Bool().Draw(t, name) {
				fmt.Fprintf(&b, `,%q:%s`, name, spell(values(2).Draw(t, "value"), 1))
			}
		}
		u, err := ParseUpdate(7, []byte(`{"update_id":1,"message":{`+strings.TrimPrefix(b.String(), ",")+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		plan := DefaultPlan(u.Key(), u)
		if outcomes := count(plan.Effect, plan.Reason != "", plan.Undecodable != ""); outcomes != 1 {
			t.Fatalf("%s has %d outcomes: %+v", u.Raw, outcomes, plan)
		}
		if plan.Effect && (plan.Action == "" || plan.BusinessKey == "" || plan.Fields["source"] == "") {
			t.Fatalf("%s is planned as %+v", u.Raw, plan)
		}
		for name, v := range plan.Fields {
			if v == "" {
				t.Fatalf("field %s is empty", name)
			}
		}
	})
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

func TestDefaultsAreForPrivateChats(t *testing.T) {
	for chat, want := range map[string]bool{
		`{"id":5,"type":"private"}`:     true,
		`{"id":5}`:                      true, // an id of a person
		`{"id":-5}`:                     false,
		`{"id":-5,"type":"group"}`:      false,
		`{"id":-5,"type":"supergroup"}`: false,
		`{"id":-5,"type":"channel"}`:    false,
		`{"id":5,"type":"group"}`:       false,
		`{}`:                            true, // no enquiry is lost for an odd shape
		`"private"`:                     true,
	} {
		u := mustParse(t, 7, `{"update_id":1,"message":{"message_id":1,"chat":`+chat+`,"text":"hello"}}`)
		if p := DefaultPlan(u.Key(), u); p.Effect != want || p.Undecodable != "" {
			t.Errorf("%s: %+v", chat, p)
		}
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string][2]string{
		"/start": {"start", ""}, "/Start ad-7": {"start", "ad-7"}, "/start@Shop_bot  ad": {"start", "ad"}, "/help\nme": {"help", "me"},
		"/start@b": {}, "/": {}, "//": {}, "/a/b": {}, "start": {}, " /start": {}, "/ a": {}, "/start<b>": {},
	} {
		name, args := Command(text)
		if [2]string{name, args} != want {
			t.Errorf("%q is %q with %q, want %q", text, name, args, want)
		}
		u := mustParse(t, 7, fmt.Sprintf(`{"update_id":1,"message":{"chat":{"id":5},"text":%q}}`, text))
		if p := DefaultPlan(u.Key(), u); p.Effect != (name == "" || name == "start" && args != "") {
			t.Errorf("%q is planned as %+v", text, p)
		}
	}
}
