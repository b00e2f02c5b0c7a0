// Package yamlmistake says what is wrong with a YAML document, in one line for the
// person who wrote it. It repeats no value of the document: one could be a secret.
package yamlmistake

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// byteOrderMark is what some editors put before a text.
const byteOrderMark = "\ufeff"

// Text is the document without a byte order mark. When it is no text in UTF-8, or has
// a control character, line is the first such line, from 1.
func Text(document []byte) (text []byte, line int) {
	text = bytes.TrimPrefix(document, []byte(byteOrderMark))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		control := r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f
		if control || r == utf8.RuneError && size == 1 {
			return text, 1 + bytes.Count(text[:i], []byte("\n"))
		}
		i += size
	}
	return text, 0
}

// NoText is the problem and the mend of what Text finds.
const NoText = "this is no text in UTF-8; give a YAML file, and save it as UTF-8"

var (
	quoted     = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	definedAt  = regexp.MustCompile(`^mapping key "([a-z_-]{1,40})" already defined at \[(\d+):\d+\]$`)
	definedAs  = regexp.MustCompile(`^mapping key ".*" already defined at \[(\d+):\d+\]$`)
	wasUsed    = regexp.MustCompile(`^(\w+) was used where (\w+) is expected$`)
	belongings = map[string]string{"mapping": "a mapping of keys", "sequence": "a list", "string": "a text"}
)

// Explain says where in the document the library's error is, from 1, and what to do
// about it. The line is 0 when the error names none.
func Explain(err error) (line int, what string) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		return 0, "this is no YAML document; compare it with one that works"
	}
	line = e.GetToken().Position.Line
	message, _, _ := strings.Cut(e.GetMessage(), "\n")
	if m := definedAt.FindStringSubmatch(message); m != nil {
		return line, fmt.Sprintf("the key %q stands twice, first in line %s; keep one", m[1], m[2])
	}
	if m := definedAs.FindStringSubmatch(message); m != nil {
		return line, fmt.Sprintf("the key stands twice, first in line %s; keep one", m[1])
	}
	if m := wasUsed.FindStringSubmatch(message); m != nil && belongings[m[2]] != "" {
		return line, fmt.Sprintf("there is a %s; give %s", m[1], belongings[m[2]])
	}
	message = quoted.ReplaceAllString(strings.ReplaceAll(message, "\t", "tab"), `"…"`)
	return line, message + "; " + mend(message)
}

// mends are by what the library's message has in it; the first that fits counts.
var mends = []struct{ message, mend string }{
	{"tab character", "indent with spaces"},
	{"'tab'", "indent with spaces"},
	{"reserved character", "put quotes around the text"},
	{"escape character", "put the text in single quotes"},
	{"end character", "close the quote"},
	{"invalid header option", "write | or > alone, and the text in the lines below"},
	{"directive", "put quotes around a text that begins with %"},
	{"flow map", "close the brace, and put commas between the members"},
	{"']'", "close the bracket, and put commas between the elements"},
	{"'}'", "close the brace, and put commas between the members"},
	{"unexpected key name", "write it as key: value"},
	{"non-map value", "write it as key: value"},
	{"mapping value", "put quotes around a text with a colon in it, and check the indentation"},
	{"anchor", "write the value out, or put quotes around a text that begins with &"},
	{"alias", "write the value out, or put quotes around a text that begins with *"},
	{"tag", "leave it out, or put quotes around a text that begins with !"},
	{"", "check the quotes, the brackets and the indentation there and above"},
}

func mend(message string) string {
	for _, m := range mends {
		if strings.Contains(message, m.message) {
			return m.mend
		}
	}
	return ""
}
