package rules_test

import (
	"fmt"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

const bot = 700000001

// update is one of the bot's, with the member kind.
func update(t testing.TB, id int64, kind, content string) job.Update {
	t.Helper()
	return parse(t, fmt.Sprintf(`{"update_id":%d,%q:%s}`, id, kind, content))
}

func parse(t testing.TB, raw string) job.Update {
	t.Helper()
	u, err := job.ParseUpdate(bot, []byte(raw))
	if err != nil {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return u
}

// private is a message in a private chat, with the extra members.
func private(t testing.TB, id int64, extra string) job.Update {
	t.Helper()
	return update(t, id, "message", fmt.Sprintf(`{"message_id":%d,"date":1767225600,"chat":{"id":5,"type":"private"},`+
		`"from":{"id":5,"is_bot":false,"first_name":"Ada","last_name":"Example","username":"ada","language_code":"en"},%s}`, id, extra))
}

func compiled(t testing.TB, list ...rules.Rule) *rules.Set {
	t.Helper()
	s, err := rules.New("test.yaml", list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lead is a rule that makes one.
func lead(when string) rules.Rule {
	return rules.Rule{Name: "lead", When: when, Action: rules.CreateLead}
}

// keyed is a rule that makes one for every value of the key.
func keyed(name, key string) rules.Rule {
	return rules.Rule{Name: name, Action: rules.CreateLead, BusinessKey: key}
}

func plan(s *rules.Set, u job.Update) job.Plan { return s.Plan(u.Key(), u) }
