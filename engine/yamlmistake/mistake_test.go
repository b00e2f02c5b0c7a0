package yamlmistake_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/leadonce/leadonce/engine/yamlmistake"
)

// TestExplain: the line, and a mend that is about the mistake; no value.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		document string
		line     int
		want     string
	}{
		{"a: 1\n\tb: 2", 2, "indent with spaces"},
		{"a: 1\nb: [hunter2", 2, "close the bracket"},
		{"a: 1\nb: {hunter2", 2, "close the brace"},
		{"a: 'hunter2", 1, "close the quote"},
		{"a: \"hunter2\\q\"", 1, "put the text in single quotes"},
		{"a: @hunter2", 1, "put quotes around the text"},
		{"a: b: hunter2", 1, "put quotes around a text with a colon"},
		{"a: 1\nhunter2", 2, "write it as key: value"},
		{"a: |hunter2\n  x", 1, "write | or > alone"},
		{"a: %hunter2", 1, "begins with %"},
		{"a: 1\n\n\na: hunter2", 4, `the key "a" stands twice, first in line 1; keep one`},
		{"a: 1\n\"hunter2 \": 1\n\"hunter2 \": 2", 3, `the key stands twice, first in line 2; keep one`},
		{"a: *hunter2", 1, "write the value out"},
		{"a:\n  b: 1\n c: hunter2", 3, "check the quotes, the brackets and the indentation"},
	} {
		err := yaml.UnmarshalWithOptions([]byte(c.document), new(any), yaml.Strict())
		line, what := yamlmistake.Explain(err)
		if err == nil || line != c.line || !strings.Contains(what, c.want) || strings.ContainsAny(what, "\n\r") || strings.Contains(what, "hunter2") {
			t.Errorf("%q: line %d: %s (%v)", c.document, line, what, err)
		}
	}
	var list struct{ A []string }
	err := yaml.UnmarshalWithOptions([]byte("a: hunter2"), &list, yaml.Strict())
	if line, what := yamlmistake.Explain(err); line != 1 || !regexp.MustCompile(`^there is a \w+; give a list$`).MatchString(what) {
		t.Errorf("%d: %s", line, what)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		document string
		line     int
	}{
		{"", 0}, {"a: ä\r\n\tb", 0}, {"\ufeffa: b", 0}, {"a: \ufffd", 0},
		{"a\nb\x00", 2}, {"\xff\xfea", 1}, {"a: 1\n\nb: \xe4", 3}, {"\x1b[1m", 1}, {"\x7f", 1},
	} {
		text, line := yamlmistake.Text([]byte(c.document))
		if line != c.line || strings.HasPrefix(string(text), "\ufeff") {
			t.Errorf("%q: line %d, want %d", c.document, line, c.line)
		}
	}
}
