package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// member is one name and value of a JSON object, in document order.
type member struct {
	name  string
	value []byte // as it stands in the document
}

// canonical is the document in one form for all equal documents: members sorted
// by name, no spacing, one spelling per string and per number. Numbers are kept
// exact, whatever their size. A member that stands twice is kept twice. The
// input must be valid JSON.
func canonical(raw []byte) []byte {
	w := canonicalWriter{rest: raw}
	w.value()
	return w.out
}

type canonicalWriter struct {
	rest []byte
	out  []byte
}

// value moves one value from rest to out. Valid JSON nests at most 10,000 deep
// (encoding/json), so the recursion is bounded.
func (w *canonicalWriter) value() {
	w.skipSpace()
	switch w.rest[0] {
	case '{':
		w.object()
	case '[':
		w.array()
	case '"':
		w.out = append(w.out, canonicalString(w.take(stringEnd(w.rest)))...)
	default:
		w.out = append(w.out, canonicalScalar(w.take(scalarEnd(w.rest)))...)
	}
}

func (w *canonicalWriter) object() {
	type entry struct{ name, value []byte }
	var entries []entry
	start := len(w.out)
	w.take(1)
	for w.skipSpace() != '}' {
		if w.rest[0] == ',' {
			w.take(1)
			w.skipSpace()
		}
		name := canonicalString(w.take(stringEnd(w.rest)))
		w.skipSpace()
		w.take(1) // the colon
		at := len(w.out)
		w.value()
		entries = append(entries, entry{name, bytes.Clone(w.out[at:])})
		w.out = w.out[:at]
	}
	w.take(1)
	sort.SliceStable(entries, func(i, j int) bool { return bytes.Compare(entries[i].name, entries[j].name) < 0 })
	w.out = append(w.out[:start], '{')
	for i, e := range entries {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(append(append(w.out, e.name...), ':'), e.value...)
	}
	w.out = append(w.out, '}')
}

func (w *canonicalWriter) array() {
	w.take(1)
	w.out = append(w.out, '[')
	for w.skipSpace() != ']' {
		if w.rest[0] == ',' {
			w.take(1)
			w.out = append(w.out, ',')
		}
		w.value()
	}
	w.take(1)
	w.out = append(w.out, ']')
}

func (w *canonicalWriter) skipSpace() byte {
	w.rest = bytes.TrimLeft(w.rest, " \t\r\n")
	return w.rest[0]
}

func (w *canonicalWriter) take(n int) []byte {
	taken := w.rest[:n]
	w.rest = w.rest[n:]
	return taken
}

// stringEnd is the length of the string literal at the start of b.
func stringEnd(b []byte) int {
	for i := 1; ; i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// scalarEnd is the length of the number, true, false or null at the start of b.
func scalarEnd(b []byte) int {
	if i := bytes.IndexAny(b, " \t\r\n,]}"); i >= 0 {
		return i
	}
	return len(b)
}

// canonicalString spells the literal without needless escapes. A lone surrogate
// has no UTF-8 form: such a literal keeps its own spelling, so that two of them
// stay different.
func canonicalString(literal []byte) []byte {
	if !bytes.ContainsAny(literal, "\\\u2028\u2029") {
		return literal
	}
	s, ok := unquote(literal)
	if !ok || (strings.ContainsRune(s, utf8.RuneError) && bytes.Contains(bytes.ToLower(literal), []byte(`\ud`))) {
		return literal
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return literal
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func unquote(literal []byte) (string, bool) {
	var s string
	err := json.Unmarshal(literal, &s)
	return s, err == nil
}

// canonicalScalar gives a number the form [-]digits[e<exponent>] without
// trailing zeros, so that 1, 1.0 and 10e-1 agree; other scalars stay.
func canonicalScalar(literal []byte) []byte {
	if c := literal[0]; c != '-' && (c < '0' || c > '9') {
		return literal
	}
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(string(literal)), "e")
	exponent := new(big.Int)
	if exponentText != "" {
		exponent.SetString(strings.TrimPrefix(exponentText, "+"), 10)
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	trimmed := strings.TrimRight(digits, "0")
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(trimmed))))
	if trimmed == "" {
		return []byte("0")
	}
	if exponent.Sign() == 0 {
		return []byte(sign + trimmed)
	}
	return []byte(sign + trimmed + "e" + exponent.String())
}

// members lists the members of the object raw, which must be valid JSON.
func members(raw []byte) ([]member, error) {
	w := canonicalWriter{rest: raw}
	if w.skipSpace() != '{' {
		return nil, fmt.Errorf("JSON %s, want an object", kindOf(w.rest[0]))
	}
	w.take(1)
	var list []member
	for w.skipSpace() != '}' {
		if w.rest[0] == ',' {
			w.take(1)
			w.skipSpace()
		}
		name, _ := unquote(w.take(stringEnd(w.rest)))
		w.skipSpace()
		w.take(1)
		w.skipSpace()
		list = append(list, member{name, w.take(valueEnd(w.rest))})
	}
	return list, nil
}

// valueEnd is the length of the value at the start of b.
func valueEnd(b []byte) int {
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
	default:
		return scalarEnd(b)
	}
	depth := 0
	for i := 0; ; i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			i += stringEnd(b[i:]) - 1
		}
	}
}

func kindOf(first byte) string {
	switch first {
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

// wholeNumber reads a JSON integer of 64 bits; 1.0, 1e3 and "1" are none.
func wholeNumber(literal []byte) (int64, error) {
	n, err := strconv.ParseInt(string(literal), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s is not a whole number of 64 bits", literal)
	}
	return n, nil
}
