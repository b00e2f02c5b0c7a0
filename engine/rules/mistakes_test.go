package rules_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/rules"
)

func onlyWhen(when string) []rules.Rule {
	return []rules.Rule{{Name: "a", When: when, Action: rules.Ignore}}
}

func onlyField(value string) []rules.Rule {
	return []rules.Rule{{Name: "a", Action: rules.CreateLead, Fields: map[string]string{"x": value}}}
}

// mend is how every mistake ends: with what to do.
var mend = regexp.MustCompile(`: ([a-z ,;]*\b(give|write|mend|make|compare|search|leave|name|use)\b|a text stands|the names are|the functions are|chat has|user has|contact has|a condition is)[^:]*`)

// TestMistakes: each is one line with its place and a mend, and no literal in it.
func TestMistakes(t *testing.T) {
	create := rules.CreateLead
	for _, c := range []struct {
		list []rules.Rule
		want string
	}{
		{onlyWhen(`txet == "canary"`), `^f.yaml: rules\[0\].when: line 1 column 1: unknown name txet: the names are kind, bot, `},
		{onlyWhen("kind ==\n  txet"), `rules\[0\].when: line 2 column 3: unknown name txet: `},
		{onlyWhen(`kind == "a" and chat.tpye == "canary"`), `line 1 column 22: type chat has no field tpye: chat has id, `},
		{onlyWhen(`user.nmae == "canary"`), `type user has no field nmae: user has id, `},
		{onlyWhen(`contact.telephone == "canary"`), `type contact has no field telephone: contact has phone, `},
		{onlyWhen(`text`), `line 1 column 1: expected bool, but got string: a condition is true or false`},
		{onlyWhen(`text ==`), `line 1 column 7: unexpected token EOF: mend the expression`},
		{onlyWhen(`text == "canary" "canary"`), `line 1 column 18: unexpected text: `},
		{onlyWhen(`text == 'canary`), `literal not terminated`},
		{onlyWhen(`text matches "(canary"`), `line 1 column 6: error parsing regexp: missing closing \): mend`},
		{onlyWhen("text matches '(`\\n)(canary`\\n'"), `line 1 column 6: error parsing regexp: missing closing \): mend`},
		{onlyWhen(`chat.id == "canary"`), `mismatched types int64 and string`},
		{onlyWhen(`text matches data`), `line 1 column 14: the pattern of matches is no literal: write it in quotes`},
		{onlyWhen(`text matches "((a{50}){10}){2}"`), `patterns of more than 1000 steps`},
		{onlyWhen(`chat.id == 0xcanary`), `line 1 column \d+: bad number syntax: "…": mend`},
		{onlyWhen(`let a = text; a == ""`), `variables cannot be declared`},
		{onlyWhen(`text == ""; true`), `variables cannot be declared|unexpected`},
		{onlyWhen(`any(1..100000, # == 5)`), `ranges cannot be used: compare`},
		{onlyWhen(`any(update.a, any(update.b, # == 5))`), `one list is searched for every element of another`},
		{onlyWhen(`any(update.a, len(filter(update.b, # == 5)) > 0)`), `one list is searched for every element of another`},
		{onlyWhen(`update.a.b()`), `only functions can be called`},
		{onlyWhen(`$env.text == ""`), `\$env cannot be used`},
		{onlyWhen(`split(text) == []`), `not enough arguments to call split`},
		{onlyWhen(strings.Repeat(" ", rules.MaxSource) + "1"), `rules\[0\].when: 2001 bytes long: give at most 2000`},
		{onlyWhen("1" + strings.Repeat("*1", 600) + " == 1"), `exceeds maximum allowed nodes`},
		{onlyWhen("text" + strings.Repeat("+text", 21) + " == ''"), `\+ stands more than 20 times`},
		{onlyWhen("lower(txet) == ''"), `line 1 column 7: unknown name txet`},
		{onlyWhen("lower(trim(chat.tpye)) == ''"), `type chat has no field tpye`},
		{onlyWhen("lower(chat.id) == ''"), `cannot use int64 as argument`},
		{onlyField("shop"), `rules\[0\].fields.x: line 1 column 1: unknown name shop: a text stands in quotes, as in '"shop"'`},
		{onlyField("a ${text} ${nmae}"), `rules\[0\].fields.x: line 1 column 13: unknown name nmae`},
		{onlyField("é\n  ${text} ${nmae}"), `rules\[0\].fields.x: line 2 column 13: unknown name nmae`},
		{onlyField("canary ${text"), `line 1 column 8: \$\{ without its \}`},
		{onlyField("${" + strings.Repeat(" ", rules.MaxSource) + "}"), `bytes long: give at most`},
		{onlyField("split(text, ' ')"), `it is a list, want a text, a number, true or false`},
		{onlyField("chat"), `it is a group of members`},
		{[]rules.Rule{{Name: "a", Action: create, BusinessKey: "is_private"}}, `rules\[0\].business_key: line 1 column 1: it is a bool, want a text or a whole number`},
		{[]rules.Rule{{Name: "a", Action: create, BusinessKey: "1.5"}}, `it is a fraction, want a text or a whole number`},
		{[]rules.Rule{{Name: "a", Action: "creat_lead"}}, `rules\[0\].action: not an action: give create_lead or ignore`},
		{[]rules.Rule{{Name: "a", Action: rules.Ignore, BusinessKey: "text"}}, `rules\[0\].business_key: a rule that ignores`},
		{[]rules.Rule{{Name: "a", Action: rules.Ignore, Fields: map[string]string{"x": "text"}}}, `rules\[0\].fields: a rule that ignores`},
		{[]rules.Rule{{Name: "a", Action: create}, {Name: "a", Action: create}}, `rules\[1\].name: a stands twice`},
		{[]rules.Rule{{Action: create}}, `rules\[0\].name: not a rule's name`},
		{[]rules.Rule{{Name: "a/b", Action: create}}, `rules\[0\].name: not a rule's name`},
		{[]rules.Rule{{Name: strings.Repeat("a", 65), Action: create}}, `rules\[0\].name: not a rule's name`},
		{[]rules.Rule{{Name: "a", Action: create, Fields: map[string]string{"canary!": "text"}}}, `rules\[0\].fields: not a field's name`},
		{[]rules.Rule{{Name: "a", Action: create, Fields: many(rules.MaxFields + 1)}}, `rules\[0\].fields: 51 fields: give at most 50`},
		{make([]rules.Rule, rules.MaxRules+1), `f.yaml: rules: 101 rules: give at most 100`},
	} {
		_, err := rules.New("f.yaml", c.list)
		if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("want %s, got %v", c.want, err)
			continue
		}
		if !mend.MatchString(err.Error()) {
			t.Errorf("no mend: %s", err)
		}
		if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "canary") || len(text) > 700 || !errors.As(err, new(*rules.Error)) {
			t.Errorf("%q", text)
		}
	}
}

func many(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("f%d", i)] = "text"
	}
	return m
}

// TestFunctionsThatMultiplyOrLookAround are not there.
func TestFunctionsThatMultiplyOrLookAround(t *testing.T) {
	for _, call := range []string{
		"now()", `date("2020-01-01")`, `duration("1s")`, `timezone("UTC")`, // a clock, or files of the machine
		`replace(text, "a", text)`, `repeat(text, 9)`, `join(split(text, "a"), text)`, "toJSON(text)", "fromJSON(text)",
		"toBase64(text)", "fromBase64(text)", "map(update.a, text)", "reduce(update.a, #acc + text)", "flatten(update.a)", "concat(update.a, update.a)",
		"keys(update)", "values(update)", "toPairs(update)", "fromPairs(update.a)", "groupBy(update.a, #)", "uniq(update.a)",
		"sort(update.a)", "sortBy(update.a, #)", "sum(update.a)", "get(update, 'a')", "findIndex(update.a, #)", "findLast(update.a, #)",
	} {
		_, err := rules.New("", onlyWhen("string("+call+`) == ""`))
		if err == nil || !strings.Contains(err.Error(), "unknown name") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestTheLimitsThemselvesAreAllowed(t *testing.T) {
	list := make([]rules.Rule, rules.MaxRules)
	for i := range list {
		list[i] = rules.Rule{Name: fmt.Sprintf("r%d", i), Action: rules.CreateLead, Fields: maps.Clone(many(rules.MaxFields))}
	}
	list[0].Name = strings.Repeat("a", 64)
	list[0].When = strings.Repeat(" ", rules.MaxSource-4) + "true"
	if _, err := rules.New("", list); err != nil {
		t.Error(err)
	}
}
