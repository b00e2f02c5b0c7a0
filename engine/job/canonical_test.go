package job

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// value is a JSON value apart from any spelling of it.
type value struct {
	scalar  string   // true, false or null
	number  *decimal // or a number
	text    []uint16 // or a string, when isText: UTF-16 units, lone surrogates among them
	isText  bool
	array   []value // or an array, when isArray
	isArray bool
	members []property // or else an object
}

type property struct {
	name  []uint16
	value value
}

// decimal is digits × 10^exponent.
type decimal struct {
	digits   *big.Int
	exponent int
}

// equal is the test's own idea of equal documents.
func (v value) equal(w value) bool {
	switch {
	case v.scalar != "" || w.scalar != "":
		return v.scalar == w.scalar
	case v.number != nil || w.number != nil:
		return v.number != nil && w.number != nil && v.number.rational().Cmp(w.number.rational()) == 0
	case v.isText || w.isText:
		return v.isText == w.isText && slices.Equal(v.text, w.text)
	case v.isArray || w.isArray:
		return v.isArray == w.isArray && slices.EqualFunc(v.array, w.array, value.equal)
	}
	byName := func(a, b property) int { return slices.Compare(a.name, b.name) }
	a, b := slices.Clone(v.members), slices.Clone(w.members)
	slices.SortStableFunc(a, byName)
	slices.SortStableFunc(b, byName)
	return slices.EqualFunc(a, b, func(a, b property) bool { return slices.Equal(a.name, b.name) && a.value.equal(b.value) })
}

func (d decimal) rational() *big.Rat {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(d.exponent, -d.exponent))), nil)
	if d.exponent < 0 {
		return new(big.Rat).SetFrac(d.digits, power)
	}
	return new(big.Rat).SetInt(power.Mul(power, d.digits))
}

// units draws text of the characters that respelling could get wrong.
func units() *rapid.Generator[[]uint16] {
	unit := rapid.OneOf(
		rapid.SampledFrom(utf16.Encode([]rune("ab{}[],:\"\\/<>&\x00\x01\b\f\n\r\t\x7f é\u2028\u2029\ufeff\ufffd\uffff"))),
		rapid.SampledFrom([]uint16{0xd800, 0xd83d, 0xdbff, 0xdc00, 0xde00, 0xdfff}),
		rapid.Uint16(),
	)
	return rapid.SliceOfN(unit, 0, 6)
}

func decimals() *rapid.Generator[*decimal] {
	return rapid.Custom(func(t *rapid.T) *decimal {
		digits := rapid.OneOf(
			rapid.SampledFrom([]string{"0", "1", "10", "-10", "100", "9007199254740992", "9007199254740993", "123456789012345678901234567890"}),
			rapid.StringMatching(`-?[0-9]{1,25}`),
		).Draw(t, "digits")
		n, _ := new(big.Int).SetString(digits, 10)
		return &decimal{n, rapid.IntRange(-30, 30).Draw(t, "exponent")}
	})
}

func values(depth int) *rapid.Generator[value] {
	return rapid.Custom(func(t *rapid.T) value {
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		if depth == 0 {
			kind %= 3
		}
		switch kind {
		case 0:
			return value{isText: true, text: units().Draw(t, "text")}
		case 1:
			return value{number: decimals().Draw(t, "number")}
		case 2:
			return value{scalar: rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "scalar")}
		case 3:
			return value{isArray: true, array: rapid.SliceOfN(values(depth-1), 0, 4).Draw(t, "array")}
		}
		v := value{}
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			name := append(units().Draw(t, "name"), uint16('0'+i)) // none stands twice
			v.members = append(v.members, property{name, values(depth-1).Draw(t, "value")})
		}
		return v
	})
}

// speller writes a value in one of its many spellings.
type speller struct {
	*rand.Rand
	b strings.Builder
}

func spell(v value, seed uint64) string {
	s := speller{Rand: rand.New(rand.NewPCG(seed, 1))}
	s.value(v)
	return s.b.String()
}

func (s *speller) space() {
	for s.IntN(3) == 0 {
		s.b.WriteByte(" \t\r\n"[s.IntN(4)])
	}
}

func (s *speller) value(v value) {
	s.space()
	switch {
	case v.scalar != "":
		s.b.WriteString(v.scalar)
	case v.number != nil:
		s.b.WriteString(s.number(*v.number))
	case v.isText:
		s.text(v.text)
	case v.isArray:
		s.list("[]", len(v.array), func(i int) { s.value(v.array[i]) })
	default:
		order := s.order(v.members)
		s.list("{}", len(order), func(i int) {
			m := v.members[order[i]]
			s.space()
			s.text(m.name)
			s.space()
			s.b.WriteByte(':')
			s.value(m.value)
		})
	}
	s.space()
}

// order permutes members, but those of one name: their order says something.
func (s *speller) order(members []property) []int {
	order := s.Perm(len(members))
	for i := range order {
		for j := range i {
			if order[j] > order[i] && slices.Equal(members[order[i]].name, members[order[j]].name) {
				order[i], order[j] = order[j], order[i]
			}
		}
	}
	return order
}

func (s *speller) list(brackets string, n int, item func(int)) {
	s.b.WriteByte(brackets[0])
	s.space()
	for i := range n {
		if i > 0 {
			s.b.WriteByte(',')
		}
		item(i)
	}
	s.b.WriteByte(brackets[1])
}

// text writes each character raw or escaped, as JSON allows.
func (s *speller) text(units []uint16) {
	s.b.WriteByte('"')
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if i+1 < len(units) && utf16.DecodeRune(r, rune(units[i+1])) != utf8.RuneError && s.IntN(2) == 0 {
			s.b.WriteRune(utf16.DecodeRune(r, rune(units[i+1])))
			i++
			continue
		}
		short := strings.IndexRune("\"\\/\b\f\n\r\t", r)
		switch {
		case short >= 0 && s.IntN(2) == 0:
			s.b.WriteString(`\` + `"\/bfnrt`[short:short+1])
		case r < ' ' || r == '"' || r == '\\' || utf16.IsSurrogate(r) || s.IntN(3) == 0:
			fmt.Fprintf(&s.b, []string{`\u%04x`, `\u%04X`}[s.IntN(2)], r)
		default:
			s.b.WriteRune(r)
		}
	}
	s.b.WriteByte('"')
}

// number moves the point, pads with zeros and changes the exponent's spelling.
func (s *speller) number(d decimal) string {
	digits, exponent := new(big.Int).Abs(d.digits).String(), d.exponent
	sign := ""
	if d.digits.Sign() < 0 || d.digits.Sign() == 0 && s.IntN(2) == 0 {
		sign = "-"
	}
	zeros := s.IntN(3)
	digits, exponent = digits+strings.Repeat("0", zeros), exponent-zeros
	fraction := s.IntN(len(digits) + 2)
	if fraction >= len(digits) {
		digits = strings.Repeat("0", fraction-len(digits)+1) + digits
	}
	point := len(digits) - fraction
	text, exponent := strings.TrimLeft(digits[:point-1], "0")+digits[point-1:point], exponent+fraction
	if fraction > 0 {
		text += "." + digits[point:]
	}
	if exponent == 0 && s.IntN(2) == 0 {
		return sign + text
	}
	e := []string{"e", "E"}[s.IntN(2)]
	if exponent < 0 {
		return sign + text + e + "-" + []string{"", "0", "00"}[s.IntN(3)] + fmt.Sprint(-exponent)
	}
	return sign + text + e + []string{"", "+", "0", "+00"}[s.IntN(4)] + fmt.Sprint(exponent)
}

func fingerprint(t testing.TB, content string) string {
	t.Helper()
	return mustParse(t, 1, `{"update_id":7,"x":`+content+`}`).Fingerprint
}

func rapidFingerprint(t *rapid.T, content string) string {
	u, err := ParseUpdate(1, []byte(`{"update_id":7,"x":`+content+`}`))
	if err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	return u.Fingerprint
}

func TestT12_EverySpellingOfADocumentHasOneFingerprint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "document")
		one, two := spell(v, rapid.Uint64().Draw(t, "one")), spell(v, rapid.Uint64().Draw(t, "two"))
		if rapidFingerprint(t, one) != rapidFingerprint(t, two) {
			t.Fatalf("taken for another update, and so for a second lead:\n%s\n%s", one, two)
		}
	})
}

func TestDifferentDocumentsHaveDifferentFingerprints(t *testing.T) {
	different := 0
	rapid.Check(t, func(t *rapid.T) {
		a := values(2).Draw(t, "a")
		b := values(2).Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = near(t, a)
		}
		one, two := spell(a, rapid.Uint64().Draw(t, "one")), spell(b, rapid.Uint64().Draw(t, "two"))
		if same := rapidFingerprint(t, one) == rapidFingerprint(t, two); same != a.equal(b) {
			t.Fatalf("equal %t, one fingerprint %t:\n%s\n%s", a.equal(b), same, one, two)
		}
		if !a.equal(b) {
			different++
		}
	})
	if different < 10 {
		t.Errorf("only %d pairs were different", different)
	}
}

// near is v with one small thing changed somewhere.
func near(t *rapid.T, v value) value {
	switch {
	case v.number != nil && rapid.Bool().Draw(t, "shift"):
		return value{number: &decimal{v.number.digits, v.number.exponent + 1}}
	case v.number != nil:
		return value{number: &decimal{new(big.Int).Add(v.number.digits, big.NewInt(1)), v.number.exponent}}
	case v.isText:
		text := slices.Clone(v.text)
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		return value{isText: true, text: slices.Insert(text, at, units().Draw(t, "inserted")...)}
	case v.isArray && len(v.array) > 0:
		w := value{isArray: true, array: slices.Clone(v.array)}
		at := rapid.IntRange(0, len(w.array)-1).Draw(t, "at")
		w.array[at] = near(t, w.array[at])
		return w
	case len(v.members) > 0:
		w := value{members: slices.Clone(v.members)}
		at := rapid.IntRange(0, len(w.members)-1).Draw(t, "at")
		w.members[at].value = near(t, w.members[at].value)
		return w
	}
	return value{isArray: true, array: []value{v}}
}

func TestFingerprintsTellNeighboursApart(t *testing.T) {
	groups := [][]string{ // documents in a group are equal, those in two groups are not
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1E+1`, `1000E-0003`},
		{`-1`, `-1.0`}, {`0`, `-0`, `0.0`, `0e5`, `-0E-99999999999999999999`}, {`10`, `1e1`, `1E+01`}, {`"1"`, `"\u0031"`},
		{`9007199254740992`}, {`9007199254740993`, `9007199254740993.0`, `9.007199254740993e15`},
		{`1e999999999999999999`}, {`1e99999999999999999999`}, {`1e99999999999999999998`}, {`-1e99999999999999999998`},
		{`""`}, {`"\u0000"`}, {`"\u0000\u0000"`}, {`"\\u0000"`}, {`"\u2028"`, "\"\u2028\""}, {`"\u2029"`, "\"\u2029\""}, {`" "`},
		{`"<>&"`, `"\u003c\u003E\u0026"`}, {`"&lt;>&"`}, {`"\/"`, `"/"`}, {`"\\/"`}, {`"\b\f"`, `"\u0008\u000C"`},
		{`"\ud83d\ude00"`, `"\uD83D\uDE00"`, `"😀"`}, {`"\ud83d"`, `"\uD83D"`}, {`"\ude00"`}, {`"\ude00\ud83d"`}, {`"\ud83dx"`, `"\uD83D\u0078"`},
		{`"{"`}, {`"}"`}, {`["]"]`}, {`{"{":"["}`}, {`[["}"],"]"]`}, {`{"a":"[","b":[1]}`},
		{`"\ud83dxude00"`}, {`"\ud83d\\de00"`}, // what looks like the second of a pair, and is none
		{`"\ud800"`}, {`"\ud801"`}, {`"\ufffd"`, `"�"`}, {`"\ufffd\ud83d\ude00"`, `"�😀"`}, {`"\\ud83d"`}, {`"\ud83d\ud83d\ude00"`, `"\ud83d😀"`},
		{`"\u00e9"`, `"é"`}, {`"e\u0301"`, "\"e\u0301\""}, {`"\u007f"`, "\"\x7f\""}, {`"\ufeff"`, "\"\ufeff\""},
		{`true`, ` true `}, {`"true"`}, {`null`}, {`[]`, `[ ]`}, {`{}`, `{ }`}, {`[null]`}, {`[[]]`},
		{`[1,2]`, `[ 1 , 2 ]`}, {`[2,1]`}, {`[12]`}, {`["1,2"]`},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"\u0062" : 2 , "\u0061" : 1}`}, {`{"a":2,"b":1}`}, {`{"a":1}`}, {`{"a":1,"b":2,"c":null}`},
		{`{"a":1,"a":2}`, `{"\u0061":1,"a":2}`}, {`{"a":2,"a":1}`}, {`{"a":1,"a":1}`}, {`{"a":{"b":1}}`}, {`{"a":"{\"b\":1}"}`},
		{`{"":1}`}, {`{"A":1}`}, {`{"\ud800":1}`, `{"\uD800":1}`}, {`{"\udbff":1}`},
	}
	known := map[string]string{}
	for _, group := range groups {
		first := fingerprint(t, group[0])
		if other, twice := known[first]; twice {
			t.Errorf("%s and %s have one fingerprint", group[0], other)
		}
		known[first] = group[0]
		for _, spelling := range group[1:] {
			if fingerprint(t, spelling) != first {
				t.Errorf("%s and %s have two fingerprints", group[0], spelling)
			}
		}
	}
}

// TestTheCanonicalFormNeverChanges: another form would take each update that is
// delivered again after the upgrade for another one.
func TestTheCanonicalFormNeverChanges(t *testing.T) {
	const (
		document = ` { "update_id" : 7.0e0, "b":[ true , null,{}, [] ,-10.50e+2,"a\/\"\\\u0000\b\n\u001F\u007f\u00e9\u2028<&>\ud83d\ude00\uD83D"], "a":{"z":1,"\u0041":100,"z":0} } `
		want     = `{"a":{"A":1e2,"z":1,"z":0},"b":[true,null,{},[],-105e1,"a/\"\\\u0000\u0008\u000a\u001f` + "\x7f\u00e9\u2028" + `<&>😀\ud83d"],"update_id":7}`
	)
	doc := outline([]byte(document))
	if got := string(doc.canonical()); got != want {
		t.Errorf("the canonical form is\n%q, want\n%q", got, want)
	}
	again := outline([]byte(want))
	if got := string(again.canonical()); got != want {
		t.Errorf("the canonical form of a canonical form is\n%q", got)
	}
	u := mustParse(t, 1, `{"update_id":7,"message":{"text":"<é 😀>","date":1.0}}`)
	if want := "d8cab3abce61cdc0a7d6b0a1eab6686efdd4d11bd898b0282bbcc26fcd437398"; u.Fingerprint != want {
		t.Errorf("the fingerprint is %s, want %s", u.Fingerprint, want)
	}
}

func TestMembersAreSortedByNameAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[ab"]{0,2}`), 0, 8).Draw(t, "names")
		var b strings.Builder
		for i, name := range names {
			fmt.Fprintf(&b, `,%q:%d`, name, i)
		}
		raw := "{" + strings.TrimPrefix(b.String(), ",") + "}"
		got := outline(fmt.Append(nil, string(outline([]byte(raw)).canonical())))
		list := slices.Collect(got.members(0))
		if !slices.IsSortedFunc(list, func(a, b member) int {
			return cmp.Or(strings.Compare(string(a.name), string(b.name)), cmp.Compare(a.start, b.start))
		}) || len(list) != len(names) {
			t.Fatalf("%s has members %v", raw, list)
		}
	})
}

// TestMembersOfOneNameStayInOrder: a sort that is not stable mixes them, when there
// are many.
func TestMembersOfOneNameStayInOrder(t *testing.T) {
	var raw, want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&raw, `,"%c":"%d"`, 'a'+i*7%5, i)
	}
	for name := range 5 {
		for i := range 300 {
			if i*7%5 == name {
				fmt.Fprintf(&want, `,"%c":"%d"`, 'a'+name, i)
			}
		}
	}
	if got := string(outline([]byte("{" + raw.String()[1:] + "}")).canonical()); got != "{"+want.String()[1:]+"}" {
		t.Errorf("%s became %s", raw.String(), got)
	}
}
