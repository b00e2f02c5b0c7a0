package job

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// FuzzCanonical: for each JSON document the canonical form is the reference's,
// byte for byte. It is its own canonical form, every spelling of the document has
// it, and no other document has. What is a document, three readers agree on.
func FuzzCanonical(f *testing.F) {
	for _, u := range sampleUpdates(f) {
		f.Add(u.Raw, uint64(1))
	}
	for _, seed := range []string{
		``, ` `, `null`, ` [ ] `, `{"":{}}`, `[1,1.0,1e0,10E-1,0.1e+1,-0,-0.0e5,100e-0002,123456789012345678901234567890]`,
		`[1e999999999999999999,1e1000000000000000000,10e999999999999999999,0e99999999999999999999,1E-0000000000000000000001]`,
		`"\u0000\b\t\n\f\r\u001f\u007f\"\\\/<>&\u2028\ufeff\ufffd"`, `["\ud83d\ude00","\ude00\ud83d","\ud83d\ud83d\ude00","\uD83Dx","\ud83d\\ude00"]`,
		`{"b":1,"a":2,"\u0061":3,"a\"":4,"":5}`, `{"a":[{"c":[],"b":{}},[[0]]],"A":"a"}`, `[01]`, `[1,]`, `{"a":1,}`, `["\u12"]`, "[\"\t\"]", `tru`, `-`, `1.`, `1e`,
		"\"\xff\"", "\"\xed\xa0\x80\"", `{"\ud800":1,"\udbff":2,"` + "\uffff" + `":3,"` + "\U00010000" + `":4}`,
	} {
		f.Add([]byte(seed), uint64(2))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		tree, err := readReference(raw, asDocumented)
		if valid := utf8.Valid(raw) && json.Valid(raw); valid != (err == nil) {
			t.Fatalf("%q is a document to encoding/json: %t, to the reference: %v", raw, valid, err)
		}
		if err != nil {
			return
		}
		form := canonicalForm(raw)
		if want := canonicalReference(tree); string(form) != want {
			t.Fatalf("%q has the canonical form\n%q, by the reference\n%q", raw, form, want)
		}
		if again := canonicalForm(form); !bytes.Equal(again, form) {
			t.Fatalf("the canonical form\n%q has the canonical form\n%q", form, again)
		}
		if len(raw) > 4<<10 {
			return
		}
		tree = mustRead(t, raw, respellable)
		respelled := []byte(spell(tree, seed))
		if got := canonicalForm(respelled); !bytes.Equal(got, form) {
			t.Fatalf("%q and its other spelling %q have the forms\n%q\n%q", raw, respelled, form, got)
		}
		other := []byte(spell(changed(tree, rand.New(rand.NewPCG(seed, 3))), seed))
		if got := canonicalForm(other); bytes.Equal(got, form) {
			t.Fatalf("%q and %q have one form: %q", raw, other, form)
		}
	})
}

func canonicalForm(raw []byte) []byte {
	doc := outline(raw)
	return doc.canonical()
}
