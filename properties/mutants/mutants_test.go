package main

import (
	"go/format"
	"slices"
	"strings"
	"testing"
)

const tiny = "properties/mutants/testdata/tiny"

// tinySurvivors are the mutants that the tests of the tiny package cannot notice.
var tinySurvivors = []string{
	`Forgotten: a + b → zero`, `Forgotten: a + b → -`, `Forgotten: a == b → false`, `Forgotten: a == b → true`,
	`Forgotten: return 0, errors.New("the same") → left out`,
	`Forgotten: errors.New("the same") → zero`,
	`Pass.Valid: now.Before(p.Until) → or at the same instant`,
	`Sell: note(zone) → zero`, `Sell: zone → zero #2`,
	`note: "city" → zero`, `note: "country" → zero`, `note: return "city" → left out`, `note: return "country" → left out`,
}

// tinyLate are those that never end.
var tinyLate = []string{`Countdown: n > 0 → true`, `Countdown: n-- → left out`}

// TestTheMachinery mutates a package whose mutants are known.
func TestTheMachinery(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	p := project{
		root: root, targets: []target{{folder: tiny}}, suites: []suite{{folder: tiny}}, atOnce: 2,
		wants: func(Mutant) bool { return true }, say: func(s string) { said.WriteString(s) },
	}
	r, err := p.run()
	if err != nil {
		t.Fatal(err)
	}
	got := map[verdict][]string{}
	for _, f := range r.fates {
		got[f.verdict] = append(got[f.verdict], strings.TrimPrefix(f.mutant.Key(), tiny+"/tiny.go "))
	}
	for v, want := range map[verdict][]string{passed: tinySurvivors, late: tinyLate} {
		slices.Sort(got[v])
		want = slices.Sorted(slices.Values(want))
		if !slices.Equal(got[v], want) {
			t.Errorf("verdict %d:\n got %s\nwant %s", v, strings.Join(got[v], "\n     "), strings.Join(want, "\n     "))
		}
	}
	if n := len(got[failed]); n < 20 {
		t.Errorf("only %d mutants are killed: %v", n, got[failed])
	}
	if r.broken != 1 || !strings.Contains(said.String(), "TestBroken") {
		t.Errorf("%d tests were left out, want the one that fails as it is:\n%s", r.broken, said.String())
	}
	if text := r.String(); !strings.Contains(text, "Countdown: n-- → left out") || !strings.Contains(text, "tiny.go") {
		t.Errorf("the report does not tell:\n%s", text)
	}
}

// TestTheEngineHasMutants: those of the engine can be found, their copies are Go, and
// every entry of the list of equivalents is one of them.
func TestTheEngineHasMutants(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	p := project{root: root, targets: targets, equivalents: "equivalent.txt"}
	files, all, _, err := p.mutants()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2000 {
		t.Errorf("only %d mutants", len(all))
	}
	for _, s := range files {
		text, _ := s.instrument(nil)
		if _, err := format.Source(text); err != nil {
			t.Errorf("%s: %v", s.path, err)
		}
		plain, _ := s.instrument(everything(all))
		if string(s.text) != withoutHelpers(string(plain)) {
			t.Errorf("%s is another one without its mutants:\n%s", s.path, plain)
		}
	}
}

func everything(all []Mutant) map[int]bool {
	ids := map[int]bool{}
	for _, m := range all {
		ids[m.ID] = true
	}
	return ids
}

// withoutHelpers takes off what every copy needs.
func withoutHelpers(text string) string {
	text = strings.Replace(text, `; import mutant "`+helpers+`"`, "", 1)
	text = strings.TrimSuffix(text, "\nvar _ = mutant.On\n")
	for {
		from := strings.Index(text, "return *new(")
		if from < 0 {
			return text
		}
		to := strings.Index(text[from:], "}")
		text = text[:from] + text[from+to:]
	}
}

func TestTheListOfEquivalentsIsJudged(t *testing.T) {
	m := Mutant{ID: 7, File: "a.go", Func: "F", Text: "x < y", Change: "<="}
	for _, c := range []struct {
		list []equivalent
		want string
	}{
		{[]equivalent{{m.Key(), "they are never equal"}}, ""},
		{[]equivalent{{m.Key(), ""}}, "it is not said why"},
		{[]equivalent{{"a.go F: x → y", "so"}}, "no such mutant"},
		{[]equivalent{{m.Key(), "so"}, {m.Key(), "and so"}}, "twice"},
	} {
		found, complaints := match(c.list, []Mutant{m})
		if text := strings.Join(complaints, "\n"); c.want == "" != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%v: %q, want %q", c.list, text, c.want)
		}
		if c.want == "" && found[7] == "" {
			t.Errorf("%v: nothing found", c.list)
		}
	}
}

// TestAMutationThatDoesNotCompileIsDropped.
func TestAMutationThatDoesNotCompileIsDropped(t *testing.T) {
	text := "package p\n\nvar a = f(1, x)\nvar b = 2\n"
	at := strings.Index(text, "f(1")
	p := placed{[]byte(text), []span{{1, at, at + 7}, {2, at + 5, at + 6}, {3, strings.Index(text, "2"), strings.Index(text, "2") + 1}}}
	for _, c := range []struct {
		complaint complaint
		want      int
	}{
		{complaint{line: 3, column: 14}, 2}, // the innermost
		{complaint{line: 3, column: 9}, 1},
		{complaint{line: 4, column: 5}, 3}, // somewhere in the line
	} {
		b := built{dropped: map[int]bool{}}
		b.drop(p, c.complaint)
		if len(b.dropped) != 1 || !b.dropped[c.want] {
			t.Errorf("%+v drops %v, want %d", c.complaint, b.dropped, c.want)
		}
	}
}
