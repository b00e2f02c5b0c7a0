package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

func reply(t testing.TB, text string) *rules.Reply {
	t.Helper()
	r, err := rules.NewReply("test.yaml", "reply", "done", text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplies(t *testing.T) {
	said := private(t, 7, `"text":"hello ${x}"`)
	pressed := update(t, 8, "callback_query", `{"id":"1","from":{"id":5,"first_name":"Ada"},"data":"buy","message":{"message_id":70,"chat":{"id":5,"type":"private"}}}`)
	byBot := update(t, 9, "message", `{"message_id":9,"chat":{"id":-5,"type":"group"},"from":{"id":6,"is_bot":true,"first_name":"Bo"},"text":"hi"}`)
	for _, c := range []struct {
		text  string
		u     job.Update
		crmID string
		want  rules.Letter
	}{
		{"Thank you, ${user.first_name}. We will call you.", said, "", rules.Letter{Text: "Thank you, Ada. We will call you.", MessageID: 7}},
		{"no expression: \"quoted\" {x} $5", said, "", rules.Letter{Text: "no expression: \"quoted\" {x} $5", MessageID: 7}},
		{"${crm_id}", said, "L-1", rules.Letter{Text: "L-1", MessageID: 7}},
		{" Number ${crm_id ?? \"none\"}\n", said, "", rules.Letter{Text: "Number", MessageID: 7}},
		{`${is_private ? "" : "not here"}`, said, "", rules.Letter{MessageID: 7}},
		{"you said ${text}", said, "", rules.Letter{Text: "you said hello ${x}", MessageID: 7}}, // nobody else's expression is evaluated
		{"${data} it is, ${user.name}", pressed, "", rules.Letter{Text: "buy it is, Ada"}},
		{"hello bot", byBot, "", rules.Letter{}},
	} {
		if got, err := reply(t, c.text).Write(c.u, c.crmID); err != nil || got != c.want {
			t.Errorf("%q for %s gives %+v (%v), want %+v", c.text, c.u.Raw, got, err, c.want)
		}
	}
	if l, err := reply(t, "${update.message.chat}").Write(said, ""); err == nil || strings.Contains(err.Error(), "Ada") {
		t.Errorf("a group of members as a text gives %+v, %v", l, err)
	}
}

func TestMistakesInReplies(t *testing.T) {
	for text, want := range map[string]string{
		"Hello ${user.nam}":               "test.yaml: reply.done: line 1 column 14: type user has no field nam: user has id,",
		"${lead_id}":                      "unknown name lead_id: the names are kind,",
		"a\n ${ crm_id":                   "line 2 column 2: ${ without its }",
		"${now()}":                        "unknown name now",
		"${1 +}":                          "check it with `leadonce config check`",
		strings.Repeat("x", 2001):         "2001 bytes long: give at most 2000",
		"${[1]}":                          "it is a list",
		"${lower(text, 1)} secret-canary": "test.yaml: reply.done: line 1 column",
	} {
		_, err := rules.NewReply("test.yaml", "reply", "done", text)
		var mistake *rules.Error
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	_, err := rules.NewReply("test.yaml", "reply", "done", "${lead_id}")
	if err == nil || !strings.Contains(err.Error(), ", update, crm_id; the functions") {
		t.Errorf("crm_id is not among the names: %v", err)
	}
	if _, err := rules.New("test.yaml", []rules.Rule{lead(`crm_id == "1"`)}); err == nil || !strings.Contains(err.Error(), "unknown name crm_id") {
		t.Errorf("a rule that asks for the lead's id: %v", err)
	}
}
