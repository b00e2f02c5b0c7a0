package rules_test

import (
	"os"
	"sync"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
	"github.com/leadonce/leadonce/properties"
)

// TestMain gives the engine under drawn plans less time than a team would.
func TestMain(m *testing.M) {
	if os.Getenv(properties.TimeVariable) == "" {
		_ = os.Setenv(properties.TimeVariable, "700ms")
	}
	os.Exit(m.Run())
}

// shop are rules that use the whole of the language.
var shop = []rules.Rule{
	{Name: "spam", When: `text matches "(?i)\\bcasino\\b" or user.is_bot`, Action: rules.Ignore},
	{Name: "button", When: `kind == "callback_query" and data startsWith "buy"`, Action: rules.CreateLead, Fields: map[string]string{"wants": `trimPrefix(data, "buy:")`}},
	{Name: "campaign", When: `payload != ""`, Action: rules.CreateLead, BusinessKey: `string(user.id) + "/" + payload`, Fields: map[string]string{"campaign": "payload"}},
	{Name: "person", When: `kind == "business_message" or any(update.message.entities, .type in ["phone_number", "email"])`, Action: rules.CreateLead,
		BusinessKey: "user.id", Fields: map[string]string{"title": "${user.name}: ${text[0:50]}", "username": ""}},
	{Name: "joined", When: `update.my_chat_member.new_chat_member.status == "member"`, Action: rules.CreateLead, BusinessKey: "chat.id"},
	{Name: "checkout", When: `kind == "pre_checkout_query" and update.pre_checkout_query.total_amount >= 1000`, Action: rules.CreateLead,
		BusinessKey: "update.pre_checkout_query.invoice_payload", Fields: map[string]string{"amount": "update.pre_checkout_query.total_amount / 100"}},
	{Name: "album", When: `album != "" and caption != "no"`, Action: rules.CreateLead, BusinessKey: "album"},
}

var examples = [][]byte{
	[]byte(`{"update_id":1,"message":{"message_id":1,"chat":{"id":5,"type":"private"},"from":{"id":5},"text":"/start spring-sale"}}`),
	[]byte(`{"update_id":2,"pre_checkout_query":{"id":"q","from":{"id":5},"currency":"EUR","total_amount":1200,"invoice_payload":"chairs"}}`),
	[]byte(`{"update_id":3,"callback_query":{"id":"77","from":{"id":5},"message":{"message_id":1,"chat":{"id":5}},"chat_instance":"c","data":"buy:chairs"}}`),
	[]byte(`{"update_id":4,"message":{"message_id":1,"chat":{"id":5,"type":"private"},"from":{"id":5},"text":"ada@example.org","entities":[{"type":"email","offset":0,"length":15}]}}`),
}

// TestLaws: what the defaults, and rules, keep whatever arrives, and what the engine
// keeps over them.
func TestLaws(t *testing.T) {
	t.Run("defaults", func(t *testing.T) { properties.CheckRules(t, job.DefaultPlan, examples...) })
	t.Run("shop", func(t *testing.T) { properties.CheckRules(t, compiled(t, shop...).Plan, examples...) })
	everything := compiled(t, rules.Rule{Name: "all", Action: rules.CreateLead, BusinessKey: "text", Fields: map[string]string{"all": "text"}})
	t.Run("everything", func(t *testing.T) { properties.CheckRules(t, everything.Plan, examples...) })
}

// TestOneSetForAllWorkers: a set is used by many goroutines at a time.
func TestOneSetForAllWorkers(t *testing.T) {
	s := compiled(t, shop...)
	var updates []job.Update
	var want []string
	for _, raw := range examples {
		u := parse(t, string(raw))
		updates, want = append(updates, u), append(want, plan(s, u).BusinessKey)
	}
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 50 {
				for i, u := range updates {
					if got := plan(s, u).BusinessKey; got != want[i] || got == "" {
						t.Errorf("%q, alone %q", got, want[i])
					}
				}
			}
		})
	}
	workers.Wait()
}
