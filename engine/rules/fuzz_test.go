package rules_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/engine/rules"
)

// FuzzCompile: an expression is taken or refused in one line, and what is taken can
// be evaluated over every kind of update, to the same plan each time.
func FuzzCompile(f *testing.F) {
	for _, r := range shop {
		f.Add(r.When, r.BusinessKey, strings.Join([]string{r.Fields["title"], r.Fields["amount"], r.Fields["wants"]}, ""))
	}
	f.Add(`any(update.message.entities, .type == "url") and not has_photo`, `string(chat.id) + "/" + data`, "from ${user.name ?? 'nobody'}")
	f.Add("let x = 1; x == 1", "1..9", "${")
	f.Add(`text[1:-1] in ["a"] ? split(text, "")[0] == "x" : true`, "len(update)", "${{'a': 1}.a}")
	f.Fuzz(func(t *testing.T, when, key, field string) {
		set, err := rules.New("f.yaml", []rules.Rule{{Name: "a", When: when, Action: rules.CreateLead, BusinessKey: key, Fields: map[string]string{"x": field}}})
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || len(text) > 1000 || !errors.As(err, new(*rules.Error)) {
				t.Fatalf("%q", text)
			}
			return
		}
		for kind, content := range contents {
			checkPlan(t, set, update(t, 1, kind, content))
		}
	})
}

// FuzzPlan: whatever the update is, the plan is the same each time, and bounded.
func FuzzPlan(f *testing.F) {
	set, err := rules.New("", shop)
	if err != nil {
		f.Fatal(err)
	}
	for kind, content := range contents {
		f.Add(fmt.Appendf(nil, `{"update_id":1,%q:%s}`, kind, content))
	}
	for _, raw := range examples {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		u, err := job.ParseUpdate(bot, raw)
		if err != nil {
			u = job.Update{Kind: "message", Raw: raw}
		}
		checkPlan(t, set, u)
	})
}

func checkPlan(t *testing.T, set *rules.Set, u job.Update) {
	t.Helper()
	before := string(u.Raw)
	p, again := plan(set, u), plan(set, u)
	x := set.Explain(u.Key(), u)
	if !reflect.DeepEqual(p, again) || !reflect.DeepEqual(p, x.Plan) || string(u.Raw) != before {
		t.Fatalf("%+v, then %+v, explained as %+v", p, again, x.Plan)
	}
	size := 0
	for name, text := range p.Fields {
		size += len(name) + len(text)
	}
	allowed := 4*len(u.Raw) + 1024
	switch {
	case p.Effect && (p.BusinessKey == "" || len(p.Fields) == 0 || p.Undecodable != ""):
		t.Fatalf("incomplete: %+v", p)
	case !p.Effect && p.Undecodable == "" && p.Reason == "":
		t.Fatalf("no reason: %+v", p)
	case p.Effect && strings.HasPrefix(u.Kind, "edited_"):
		t.Fatalf("an edit: %+v", p)
	case size > allowed || len(p.BusinessKey) > allowed || len(p.Undecodable) > 300:
		t.Fatalf("too large: %+v", p)
	}
}
