package job

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The reference reads JSON by the grammar of RFC 8259 into a tree and writes the
// tree in canonical form: slow, recursive, and without a line of canonical.go or
// of encoding/json, so that the three can be compared.
type reference struct {
	text  string
	at    int
	depth int

	// longest is how many digits a number's exponent may have; one with more is kept
	// as it is spelled, and with -1 each is.
	longest int
}

// The lengths of exponents.
const (
	asDocumented = 18 // by the comment of canonicalScalar
	respellable  = 17 // its neighbours, which another spelling may need, are shorter than that
	verbatim     = -1
)

var errNoJSON = errors.New("no JSON document")

// readReference is the document's tree.
func readReference(raw []byte, longest int) (v value, err error) {
	if !utf8.Valid(raw) {
		return value{}, errNoJSON
	}
	r := &reference{text: string(raw), longest: longest}
	defer func() {
		if recover() != nil { // past the end, or misfit
			v, err = value{}, errNoJSON
		}
	}()
	v = r.value()
	r.demand(r.at == len(r.text))
	return v, nil
}

func (r *reference) demand(ok bool) {
	if !ok {
		panic(errNoJSON)
	}
}

func (r *reference) space() {
	for r.at < len(r.text) && strings.Contains(" \t\n\r", r.text[r.at:r.at+1]) {
		r.at++
	}
}

// take reads the text if it comes next.
func (r *reference) take(text string) bool {
	if !strings.HasPrefix(r.text[r.at:], text) {
		return false
	}
	r.at += len(text)
	return true
}

func (r *reference) value() (v value) {
	r.space()
	defer r.space()
	switch r.text[r.at] {
	case '{':
		r.list('}', func() {
			r.space()
			name := r.string()
			r.space()
			r.demand(r.take(":"))
			v.members = append(v.members, property{name, r.value()})
		})
	case '[':
		v.isArray = true
		r.list(']', func() { v.array = append(v.array, r.value()) })
	case '"':
		v.isText, v.text = true, r.string()
	case 't', 'f', 'n':
		for _, word := range []string{"true", "false", "null"} {
			if r.take(word) {
				return value{scalar: word}
			}
		}
		r.demand(false)
	default:
		return r.number()
	}
	return v
}

// list reads what stands between brackets, which nest 10,000 deep at most.
func (r *reference) list(closing byte, item func()) {
	r.at++
	r.depth++
	r.demand(r.depth <= 10_000)
	r.space()
	if r.text[r.at] != closing {
		item()
		for r.take(",") {
			item()
		}
	}
	r.demand(r.text[r.at] == closing)
	r.at++
	r.depth--
}

func (r *reference) string() []uint16 {
	r.demand(r.take(`"`))
	units := []uint16{}
	for r.text[r.at] != '"' {
		c, size := utf8.DecodeRuneInString(r.text[r.at:])
		r.demand(c >= 0x20)
		r.at += size
		if c != '\\' {
			units = utf16.AppendRune(units, c)
			continue
		}
		escape := r.text[r.at]
		r.at++
		if escape == 'u' {
			hex := r.text[r.at : r.at+4]
			r.demand(strings.Trim(hex, "0123456789abcdefABCDEF") == "")
			unit, _ := strconv.ParseUint(hex, 16, 16)
			units = append(units, uint16(unit))
			r.at += 4
			continue
		}
		short := strings.IndexByte(`"\/bfnrt`, escape)
		r.demand(short >= 0)
		units = append(units, uint16("\"\\/\b\f\n\r\t"[short]))
	}
	r.at++
	return units
}

func (r *reference) digits() string {
	from := r.at
	for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
		r.at++
	}
	r.demand(r.at > from)
	return r.text[from:r.at]
}

func (r *reference) number() value {
	from := r.at
	negative := r.take("-")
	whole, fraction := r.digits(), ""
	r.demand(whole == "0" || whole[0] != '0')
	if r.take(".") {
		fraction = r.digits()
	}
	sign, power := "", "0"
	if r.take("e") || r.take("E") {
		if r.take("-") {
			sign = "-"
		} else {
			r.take("+")
		}
		power = r.digits()
	}
	n, _ := new(big.Int).SetString(whole+fraction, 10)
	if negative {
		n.Neg(n)
	}
	power = strings.TrimLeft(power, "0")
	switch {
	case r.longest == verbatim, n.Sign() != 0 && len(power) > r.longest:
		return value{scalar: r.text[from:r.at]}
	case n.Sign() == 0:
		return value{number: &decimal{n, 0}}
	}
	exponent, _ := strconv.Atoi(sign + "0" + power)
	return value{number: &decimal{n, exponent - len(fraction)}}
}

// canonicalReference is the tree in canonical form.
func canonicalReference(v value) string {
	switch {
	case v.scalar != "":
		return v.scalar
	case v.number != nil:
		return canonicalDecimal(*v.number)
	case v.isText:
		return canonicalUnits(v.text)
	case v.isArray:
		items := make([]string, len(v.array))
		for i, item := range v.array {
			items[i] = canonicalReference(item)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	type named struct{ name, value string }
	var list []named
	for _, m := range v.members {
		list = append(list, named{canonicalUnits(m.name), canonicalReference(m.value)})
	}
	bare := func(n named) string { return n.name[1 : len(n.name)-1] }
	slices.SortStableFunc(list, func(a, b named) int { return strings.Compare(bare(a), bare(b)) })
	var items []string
	for _, n := range list {
		items = append(items, n.name+":"+n.value)
	}
	return "{" + strings.Join(items, ",") + "}"
}

func canonicalDecimal(d decimal) string {
	text, exponent := d.digits.String(), d.exponent
	if text == "0" {
		return text
	}
	for strings.HasSuffix(text, "0") {
		text, exponent = text[:len(text)-1], exponent+1
	}
	if exponent == 0 {
		return text
	}
	return fmt.Sprintf("%se%d", text, exponent)
}

func canonicalUnits(units []uint16) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		switch {
		case r == '"', r == '\\':
			b.WriteString(`\` + string(r))
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		case !utf16.IsSurrogate(r):
			b.WriteRune(r)
		case i+1 < len(units) && utf16.DecodeRune(r, rune(units[i+1])) != utf8.RuneError:
			b.WriteRune(utf16.DecodeRune(r, rune(units[i+1])))
			i++
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// first is the value of the first member with the name.
func (v value) first(name string) (value, bool) {
	for _, m := range v.members {
		if string(utf16.Decode(m.name)) == name {
			return m.value, true
		}
	}
	return value{}, false
}

// changed is the document with one thing in it that another document says: a
// value, a member or an item, chosen by chance.
func changed(v value, random *rand.Rand) value {
	if inner := len(v.array) + len(v.members); inner > 0 && random.IntN(4) > 0 {
		at := random.IntN(inner)
		w := value{isArray: v.isArray, array: slices.Clone(v.array), members: slices.Clone(v.members)}
		switch {
		case v.isArray:
			w.array[at] = changed(v.array[at], random)
		case random.IntN(4) == 0:
			w.members[at].name = slices.Insert(slices.Clone(v.members[at].name), 0, 'x')
		default:
			w.members[at].value = changed(v.members[at].value, random)
		}
		return w
	}
	switch {
	case v.number != nil && v.number.digits.Sign() != 0 && random.IntN(2) == 0:
		return value{number: &decimal{v.number.digits, v.number.exponent - 1}}
	case v.number != nil:
		return value{number: &decimal{new(big.Int).Add(v.number.digits, big.NewInt(1)), v.number.exponent}}
	case v.isText:
		unit := []uint16{0, ' ', '"', 'a', 0x2028, 0xd800, 0xdfff, 0xfffd}[random.IntN(8)]
		return value{isText: true, text: slices.Insert(slices.Clone(v.text), random.IntN(len(v.text)+1), unit)}
	case v.isArray:
		return value{isArray: true, array: slices.Insert(slices.Clone(v.array), random.IntN(len(v.array)+1), value{scalar: "null"})}
	case v.scalar != "" && v.scalar != "null":
		return value{scalar: "null"}
	case v.scalar != "":
		return value{} // an empty object
	}
	return value{members: append(slices.Clone(v.members), property{[]uint16{'y'}, value{scalar: "null"}})}
}
