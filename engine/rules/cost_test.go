package rules_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/rules"
)

// TestCostlyRulesOverHostileUpdates bounds what one update of the largest size that
// is let in can cost under the worst expressions that are let in. The bounds are far
// above what is measured, and far below what a loop in a loop needs.
func TestCostlyRulesOverHostileUpdates(t *testing.T) {
	if testing.Short() {
		t.Skip("about time and memory, which the race detector multiplies")
	}
	const mib = 1 << 20
	updates := map[string]string{
		"a long text":     `{"chat":{"id":5},"text":"` + strings.Repeat("a", mib-100) + `"}`,
		"a matched text":  `{"chat":{"id":5},"text":"` + strings.Repeat("a", 60<<10) + `","a":[1` + strings.Repeat(",1", 255) + `]}`,
		"a long list":     `{"chat":{"id":5},"text":"a","a":[0` + strings.Repeat(",0", 500_000) + `]}`,
		"many members":    `{"chat":{"id":5},"text":"a","a":{"":0` + strings.Repeat(`,"":0`, 200_000) + `}}`,
		"9,998 levels":    `{"chat":{"id":5},"text":"a","a":` + strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990) + `}`,
		"many digits":     `{"chat":{"id":5},"text":"a","a":` + strings.Repeat("9", mib-100) + `}`,
		"a long exponent": `{"chat":{"id":5},"text":"a","a":1e` + strings.Repeat("9", mib-100) + `}`,
		"a tiny number":   `{"chat":{"id":5},"text":"a","a":1e-999999999}`,
		"tiny numbers":    `{"chat":{"id":5},"text":"a","a":[0` + strings.Repeat(",1e-999999", 90_000) + `]}`,
		"a huge number":   `{"chat":{"id":5},"text":"a","a":1e999999999}`,
		"a long fraction": `{"chat":{"id":5},"text":"a","a":1.` + strings.Repeat("0", mib-100) + `}`,
	}
	costly := map[string][]rules.Rule{
		"pattern":        {lead(`text matches "(a{1,150}){3}b$"`)},
		"pieces":         {lead(`any(split(text, "a"), text endsWith "b")`)},
		"pieces of one":  {lead(`any(split(text, "a"), # + "b" + text == text)`)},
		"search":         {lead(`any(update.message.a, text contains "aaaaaaaaaaaaaaaaaaaaaaaab")`)},
		"sums of texts":  {lead(strings.Repeat("text + ", 20) + `text == ""`)},
		"deep":           {lead(`update.message.a == update.message.a and update.message.a[0][0] != 1`)},
		"whole":          {lead(`update == {} or update in [update, 1]`)},
		"field":          {{Name: "a", Action: rules.CreateLead, Fields: map[string]string{"x": "${text}${text}${update.message.a}"}}},
		"hundred checks": many100(`lower(text) contains "b" and upper(text) contains "c"`),
	}
	for name, list := range costly {
		s := compiled(t, list...)
		for what, content := range updates {
			u := update(t, 1, "message", content)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			plan(s, u)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) / mib
			if took > time.Second || allocated > 100 {
				t.Logf("%s over %s: %s, %d MiB", name, what, took, allocated)
			}
			if took > 20*time.Second || allocated > 2_000 {
				t.Errorf("%s over %s took %s and allocated %d MiB", name, what, took, allocated)
			}
		}
	}
}

func many100(when string) (list []rules.Rule) {
	for i := range rules.MaxRules {
		r := lead(when)
		r.Name += string(rune('a'+i/26)) + string(rune('a'+i%26))
		list = append(list, r)
	}
	return list
}
