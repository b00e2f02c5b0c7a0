package main

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/leadonce/leadonce/engine/yamlmistake"
)

// decodeStrict lays one YAML document over c. It refuses unknown and repeated
// keys and values of another type. No error repeats a value: it could be a
// secret that is in the wrong place.
func decodeStrict(d document, c *config) error {
	dec := yaml.NewDecoder(bytes.NewReader(d.data), yaml.Strict())
	switch err := decode(dec, c); {
	case errors.Is(err, errPanic):
		return noDocument(d)
	case errors.Is(err, io.EOF):
		return mistake("%s: the file is empty; write one with `leadonce init`", d.name)
	case err != nil:
		return explain(d, err)
	}
	if err := decode(dec, new(any)); !errors.Is(err, io.EOF) {
		return mistake("%s: more than one YAML document; keep everything in one, without ---", d.at(d.second()))
	}
	return checkNumbers(d)
}

var errPanic = errors.New("the YAML library panics")

// decode is the library's, which panics over some documents, such as "bots: !".
func decode(dec *yaml.Decoder, into any) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return dec.Decode(into)
}

func noDocument(d document) error {
	return mistake("%s: not a YAML document of leadonce; compare it with what `leadonce init` writes", d.name)
}

// keyForm is of every key there is. What stands where a key belongs can be a text
// of several lines.
var keyForm = regexp.MustCompile(`^[a-z_]+$`)

// explain words the library's error for the person who wrote the document.
func explain(d document, err error) error {
	at := badDuration(d.data)
	var located yaml.Error
	if errors.As(err, &located) && located.GetToken() != nil {
		at = located.GetToken()
	}
	if at == nil {
		return noDocument(d)
	}
	where := d.at(at.Position.Line)
	if key := keyBefore(at); keyForm.MatchString(key) {
		where += ": " + key
	}
	var unknown *yaml.UnknownFieldError
	var mismatch *yaml.TypeError
	var overflow *yaml.OverflowError
	switch {
	case errors.As(err, &unknown):
		return mistake("%s: unknown key %.40q; the keys are in the file that `leadonce init` writes", where, unknown.Token.Value)
	case errors.As(err, &mismatch):
		return misfit(where, mismatch.DstType)
	case errors.As(err, &overflow):
		return misfit(where, overflow.DstType)
	case located == nil:
		return misfit(where, reflect.TypeFor[time.Duration]())
	}
	_, what := yamlmistake.Explain(err)
	if strings.Contains(what, "must be specified") && bareHole(d.line(at.Position.Line)) {
		what = "a text with ${…} in it stands within {} or []; put quotes around it"
	}
	return mistake("%s: %s", where, what)
}

// bareHole reports whether the line has a ${ outside of quotes, whose brace YAML takes
// for its own within {} and [].
func bareHole(line string) bool {
	var quote rune
	for i, r := range line {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case r == quote:
			quote = 0
		case quote == 0 && strings.HasPrefix(line[i:], "${"):
			return true
		}
	}
	return false
}

// misfit says what belongs where another thing stands.
func misfit(where string, want reflect.Type) error {
	thing := "a mapping of keys"
	switch {
	case want == reflect.TypeFor[time.Duration]():
		thing = "a duration such as 500ms, 20s or 10m"
	case want.Kind() == reflect.Bool:
		thing = "true or false"
	case want.Kind() == reflect.Slice:
		thing = "a list"
	case want.Kind() == reflect.String:
		thing = "a text"
	case want.Kind() == reflect.Int || want.Kind() == reflect.Int64:
		thing = "a whole number of at most 64 bits"
	}
	return mistake("%s: give %s", where, thing)
}

// keyBefore is the key whose value the token begins; "" when it begins none.
func keyBefore(t *token.Token) string {
	if t == nil || t.Prev == nil || t.Prev.Type != token.MappingValueType || t.Prev.Prev == nil {
		return ""
	}
	return t.Prev.Prev.Value
}

// badDuration finds the duration that cannot be read; the library does not say
// which one it is.
func badDuration(data []byte) *token.Token {
	for _, t := range lexer.Tokenize(string(data)) {
		switch keyBefore(t) {
		case "lease", "call_timeout", "clock_skew", "first", "max", "settle", "key_validity", "within", "series":
			if _, err := time.ParseDuration(t.Value); err != nil {
				return t
			}
		}
	}
	return nil
}

// plainTypes are those of plain texts that are none: the library passes over a key of
// such a type, and over the keys beside it.
var plainTypes = []token.Type{
	token.FloatType, token.InfinityType, token.NanType, token.IntegerType, token.BinaryIntegerType,
	token.OctetIntegerType, token.HexIntegerType, token.BoolType, token.NullType,
}

// checkNumbers refuses what the library would change in silence: a secret that
// YAML takes for a number (0123 would become 83), and a fraction for a whole one.
func checkNumbers(d document) error {
	key := ""
	for _, t := range lexer.Tokenize(string(d.data)) {
		if t.Next != nil && t.Next.Type == token.MappingValueType {
			key = t.Value
			if t.CharacterType == token.CharacterTypeMiscellaneous && slices.Contains(plainTypes, t.Type) {
				return mistake("%s: a key is a number, true, false or null; put quotes around it, or leave it out", d.at(t.Position.Line))
			}
			continue
		}
		where := d.at(t.Position.Line) + ": " + key
		switch t.Type {
		case token.FloatType, token.InfinityType, token.NanType:
			switch key {
			case "id", "workers", "max_backlog", "attempts":
				return misfit(where, reflect.TypeFor[int64]())
			}
		case token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType, token.BoolType:
		default:
			continue
		}
		if key == "secrets" {
			return mistake("%s: put quotes around the value, or it is not read as a text", where)
		}
	}
	return nil
}
