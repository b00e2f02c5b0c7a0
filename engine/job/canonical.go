package job

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// document is valid JSON of less than 2 GiB, and where its objects and arrays
// end. Nothing scans a value twice to find its end, so reading a document takes
// time linear in its length, however deep it nests.
type document struct {
	raw  []byte
	ends []int32 // at the offset of each opening bracket: the offset behind its closing one
}

// member is one name and value of a JSON object.
type member struct {
	name       []byte // in canonical spelling, without its quotes
	start, end int    // of the value
}

// outline reads raw, which must be valid JSON.
func outline(raw []byte) document {
	d := document{raw: raw, ends: make([]int32, len(raw))}
	var open []int
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = d.stringEnd(i) - 1
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			d.ends[open[len(open)-1]] = int32(i + 1)
			open = open[:len(open)-1]
		}
	}
	return d
}

// skip is the offset of the first byte at or behind at that is neither white
// space nor a comma; the end of the document at the latest.
func (d document) skip(at int) int {
	for at < len(d.raw) && strings.IndexByte(" \t\r\n,", d.raw[at]) >= 0 {
		at++
	}
	return at
}

// stringEnd is the offset behind the string literal that starts at at.
func (d document) stringEnd(at int) int {
	for at++; d.raw[at] != '"'; at++ {
		if d.raw[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// valueEnd is the offset behind the value that starts at at.
func (d document) valueEnd(at int) int {
	switch d.raw[at] {
	case '"':
		return d.stringEnd(at)
	case '{', '[':
		return int(d.ends[at])
	}
	for at < len(d.raw) && strings.IndexByte(" \t\r\n,]}", d.raw[at]) < 0 {
		at++
	}
	return at
}

// members are those of the object that starts at at, in document order.
func (d document) members(at int) iter.Seq[member] {
	return func(yield func(member) bool) {
		for at := d.skip(at + 1); d.raw[at] != '}'; {
			nameEnd := d.stringEnd(at)
			start := d.skip(d.skip(nameEnd) + 1) // the colon
			m := member{canonicalText(d.raw[at+1 : nameEnd-1]), start, d.valueEnd(start)}
			if !yield(m) {
				return
			}
			at = d.skip(m.end)
		}
	}
}

// child is where the value of the member name starts in the object that starts
// at at; false when there is none, or no object.
func (d document) child(at int, name string) (int, bool) {
	if d.raw[at] != '{' {
		return 0, false
	}
	for m := range d.members(at) {
		if string(m.name) == name {
			return m.start, true
		}
	}
	return 0, false
}

// kind names the type of the value that starts at at.
func (d document) kind(at int) string {
	switch d.raw[at] {
	case '{':
		return "object"
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

// canonical is the document in one form for all equal documents: members sorted
// by name, no spacing, one spelling per string and per number. Numbers are kept
// exact. A member that stands twice is kept twice, in document order.
//
// Duplicates of updates that are already stored are known by this form: it is
// written here byte by byte and by no library, so that no release of one can
// change it.
func (d document) canonical() []byte {
	return d.appendValue(make([]byte, 0, len(d.raw)), d.skip(0))
}

// appendValue recurses once a level. Valid JSON nests at most 10,000 deep
// (encoding/json).
func (d document) appendValue(out []byte, at int) []byte {
	switch d.raw[at] {
	case '{':
		return d.appendObject(out, at)
	case '[':
		return d.appendArray(out, at)
	case '"':
		return appendText(out, d.raw[at+1:d.stringEnd(at)-1])
	default:
		return append(out, canonicalScalar(string(d.raw[at:d.valueEnd(at)]))...)
	}
}

func (d document) appendObject(out []byte, at int) []byte {
	list := slices.AppendSeq(make([]member, 0, 8), d.members(at))
	slices.SortFunc(list, func(a, b member) int {
		return cmp.Or(bytes.Compare(a.name, b.name), cmp.Compare(a.start, b.start))
	})
	out = append(out, '{')
	for i, m := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), m.name...), '"', ':')
		out = d.appendValue(out, m.start)
	}
	return append(out, '}')
}

func (d document) appendArray(out []byte, at int) []byte {
	out = append(out, '[')
	first := d.skip(at + 1)
	for at = first; d.raw[at] != ']'; at = d.skip(d.valueEnd(at)) {
		if at != first {
			out = append(out, ',')
		}
		out = d.appendValue(out, at)
	}
	return append(out, ']')
}

func appendText(out, text []byte) []byte {
	return append(append(append(out, '"'), canonicalText(text)...), '"')
}

// canonicalText respells what stands between the quotes of a string literal.
// Escaped are only quotes, backslashes, control characters and lone surrogates,
// which have no UTF-8 form.
func canonicalText(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text // raw control characters are no valid JSON
	}
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		plain := bytes.IndexByte(text, '\\')
		if plain < 0 {
			plain = len(text)
		}
		out, text = append(out, text[:plain]...), text[plain:]
		if len(text) > 0 {
			var r rune
			r, text = unescape(text)
			out = appendCanonicalRune(out, r)
		}
	}
	return out
}

// unescape reads the escape sequence at the start of text; two of them for a
// pair of surrogates.
func unescape(text []byte) (rune, []byte) {
	if text[1] != 'u' {
		if i := strings.IndexByte("bfnrt", text[1]); i >= 0 {
			return rune("\b\f\n\r\t"[i]), text[2:]
		}
		return rune(text[1]), text[2:]
	}
	r, rest := hexUnit(text), text[6:]
	if utf16.IsSurrogate(r) && len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
		if pair := utf16.DecodeRune(r, hexUnit(rest)); pair != utf8.RuneError {
			return pair, rest[6:]
		}
	}
	return r, rest
}

// hexUnit is the UTF-16 code unit of the \uXXXX at the start of text.
func hexUnit(text []byte) rune {
	unit, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // valid JSON: four hexadecimal digits
	return rune(unit)
}

func appendCanonicalRune(out []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(out, '\\', byte(r))
	case r < ' ' || utf16.IsSurrogate(r):
		return fmt.Appendf(out, `\u%04x`, r)
	default:
		return utf8.AppendRune(out, r)
	}
}

// canonicalScalar gives a number the form [-]digits[e<exponent>] without
// trailing zeros, so that 1, 1.0 and 10e-1 agree; true, false and null stay. A
// number whose exponent has more than 18 digits keeps its spelling: adding to it
// would take a time that its sender chooses.
func canonicalScalar(literal string) string {
	if c := literal[0]; c != '-' && (c < '0' || c > '9') {
		return literal
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(literal), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	exponent, ok := smallExponent(power)
	if !ok {
		return literal
	}
	if exponent += len(digits) - len(trimmed) - len(fraction); exponent != 0 {
		trimmed += "e" + strconv.Itoa(exponent)
	}
	if negative {
		return "-" + trimmed
	}
	return trimmed
}

// smallExponent reads a number's exponent, empty for none, of up to 18 digits.
func smallExponent(power string) (int, bool) {
	power, negative := strings.CutPrefix(power, "-")
	power = strings.TrimLeft(strings.TrimPrefix(power, "+"), "0")
	if len(power) > 18 {
		return 0, false
	}
	exponent, _ := strconv.Atoi("0" + power)
	if negative {
		exponent = -exponent
	}
	return exponent, true
}

// wholeNumber reads a JSON integer of 64 bits; 1.0, 1e3 and "1" are none.
func wholeNumber(literal []byte) (int64, error) {
	n, err := strconv.ParseInt(string(literal), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s is not a whole number of 64 bits", literal)
	}
	return n, nil
}
