package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"
)

// FuzzParseUpdate: the bodies that are accepted are those in which encoding/json
// sees an object with one update_id of 64 bits. Each spelling of an accepted body
// has its fingerprint, and a changed one has another.
func FuzzParseUpdate(f *testing.F) {
	for _, u := range sampleUpdates(f) {
		f.Add(u.Raw, uint64(1))
	}
	for _, seed := range []string{
		``, `{}`, `{"update_id":1}`, `{"update_id":-9223372036854775808,"x":[1.50e+2,-0,true,null,{}]}`,
		`{"update\u005fid":1,"message":{"text":"\ud83d\ude00\ud83d\u0000\/<&>"}}`, `{"update_id":1,"a":1,"a":2,"message":"x"}`,
		`{"update_id":1,"message":{"chat":{"id":5},"chat":{"id":6},"from":{"id":7}},"user_chat_id":8}`,
		`{"update_id":1,"x":1e99999999999999999999}`, `{"update_id":1,"x":0.1e-999999999999999999}`, `{"update_id":1.0}`,
		`{"update_id":1,"update\u005fid":2}`, `{"update_id":1,"my phone is 123":{}}`, `{"update_id":1,"hologram":{},"poll":{"user":{"id":-7}}}`, "{\"update_id\":1,\"x\":\"\xff\"}",
	} {
		f.Add([]byte(seed), uint64(2))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		checkParse(t, raw)
		u, err := ParseUpdate(7, raw)
		id, acceptable := idSeenByEncodingJSON(raw)
		if (err == nil) != acceptable {
			t.Fatalf("%q is read with %v, encoding/json sees a usable update_id: %t", raw, err, acceptable)
		}
		if err != nil {
			return
		}
		if u.ID != id {
			t.Fatalf("%q has the update_id %d, encoding/json sees %d", raw, u.ID, id)
		}
		tree := mustRead(t, raw, verbatim)
		if sum := sha256.Sum256([]byte(canonicalReference(mustRead(t, raw, asDocumented)))); u.Fingerprint != hex.EncodeToString(sum[:]) {
			t.Fatalf("%q has the fingerprint %s, by the reference it is %x", raw, u.Fingerprint, sum)
		}
		checkDescription(t, u, tree)
		if len(raw) < 4<<10 {
			checkOtherSpellings(t, u, seed)
		}
	})
}

func mustRead(t *testing.T, raw []byte, longest int) value {
	t.Helper()
	v, err := readReference(raw, longest)
	if err != nil {
		t.Fatalf("%q is no document to the reference", raw)
	}
	return v
}

// idSeenByEncodingJSON is the one update_id of a body, if it can be accepted.
func idSeenByEncodingJSON(raw []byte) (int64, bool) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return 0, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return 0, false
	}
	var ids []any
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return 0, false
		}
		var content any
		if err := dec.Decode(&content); err != nil {
			return 0, false
		}
		if name == "update_id" {
			ids = append(ids, content)
		}
	}
	if len(ids) != 1 {
		return 0, false
	}
	number, ok := ids[0].(json.Number)
	if !ok {
		return 0, false
	}
	n, ok := new(big.Int).SetString(number.String(), 10) // no fraction and no exponent
	if !ok || !n.IsInt64() {
		return 0, false
	}
	return n.Int64(), true
}

var plainKind = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// checkDescription finds kind, chat and user anew, in the reference's tree.
func checkDescription(t *testing.T, u Update, tree value) {
	t.Helper()
	kind, content, found := NoKind, value{}, false
	for _, m := range tree.members {
		name := canonicalUnits(m.name)
		name = name[1 : len(name)-1]
		known := slices.Contains(kinds, name)
		if name != "update_id" && (!found || known) {
			kind, content, found = name, m.value, true
		}
		if known {
			break
		}
	}
	if !plainKind.MatchString(kind) {
		kind = OddKind
	}
	whole := func(paths ...[]string) int64 {
		for _, path := range paths {
			at, ok := content, true
			for i := 0; ok && i < len(path); i++ {
				at, ok = at.first(path[i])
			}
			if n, isWhole := new(big.Int).SetString(at.scalar, 10); ok && isWhole && n.IsInt64() {
				return n.Int64()
			}
		}
		return 0
	}
	chat := whole([]string{"chat", "id"}, []string{"message", "chat", "id"}, []string{"user_chat_id"})
	user := whole([]string{"from", "id"}, []string{"user", "id"})
	if u.Kind != kind || u.Chat != chat || u.User != user || !plainKind.MatchString(u.Kind) {
		t.Fatalf("%q is of kind %q in chat %d by %d, want %q, %d, %d", u.Raw, u.Kind, u.Chat, u.User, kind, chat, user)
	}
}

// checkOtherSpellings delivers the update again, spelled otherwise, and then
// another one in its place.
func checkOtherSpellings(t *testing.T, u Update, seed uint64) {
	t.Helper()
	tree := mustRead(t, u.Raw, respellable)
	withoutID := value{}
	var id property
	for i, m := range mustRead(t, u.Raw, verbatim).members {
		if string(canonicalUnits(m.name)) == `"update_id"` {
			tree.members[i].value, id = m.value, m // 7.0 is no update_id
			continue
		}
		withoutID.members = append(withoutID.members, tree.members[i])
	}
	again, err := ParseUpdate(7, []byte(spell(tree, seed)))
	if err != nil || again.Fingerprint != u.Fingerprint || again.ID != u.ID {
		t.Fatalf("%q and %q are taken for two updates (%v)", u.Raw, again.Raw, err)
	}
	other := changed(withoutID, rand.New(rand.NewPCG(seed, 2)))
	other.members = append(other.members, id)
	if another, err := ParseUpdate(7, []byte(spell(other, seed))); err != nil || another.Fingerprint == u.Fingerprint {
		t.Fatalf("%q and %q are taken for one update (%v)", u.Raw, another.Raw, err)
	}
}

// FuzzParseKey: a key has one spelling, and nothing else is read as a key.
func FuzzParseKey(f *testing.F) {
	for _, k := range []Key{{}, {Bot: -1, Update: 1}, {Bot: 1 << 62, Update: -1 << 63, Variant: "0123456789abcdef"}} {
		f.Add(k.String(), k.Bot, k.Update, uint64(0))
	}
	for _, s := range []string{"telegram/1/-0", "telegram/1/2/0123456789ABCDEF", "telegram/+1/2", "telegram/1/2/", "telegram/1/2/0123456789abcdef0", "telegram/1/9223372036854775808"} {
		f.Add(s, int64(-11), int64(1), uint64(1)<<63)
	}
	key := regexp.MustCompile(`^telegram/(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)(?:/([0-9a-f]{16}))?$`)
	f.Fuzz(func(t *testing.T, s string, bot, update int64, variant uint64) {
		for _, k := range []Key{{Bot: bot, Update: update}, {Bot: bot, Update: update, Variant: hex.EncodeToString(new(big.Int).SetUint64(variant).FillBytes(make([]byte, 8)))}} {
			if back, err := ParseKey(k.String()); err != nil || back != k {
				t.Fatalf("%#v is read back as %#v, %v", k, back, err)
			}
		}
		k, err := ParseKey(s)
		parts := key.FindStringSubmatch(s)
		if isKey := parts != nil && fits(parts[1]) && fits(parts[2]); (err == nil) != isKey {
			t.Fatalf("%q is read as %#v, %v, want a key: %t", s, k, err, isKey)
		}
		if err == nil && (k.String() != s || k.Variant != parts[3]) {
			t.Fatalf("%q is read as %#v, which is spelled %s", s, k, k)
		}
	})
}

// fits reports whether a whole number has 64 bits.
func fits(number string) bool {
	n, ok := new(big.Int).SetString(number, 10)
	return ok && n.IsInt64()
}
