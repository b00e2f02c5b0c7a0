package botapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Each update of an answer is a part of it, byte for byte and in its order, or the
// answer is refused as a whole.
func FuzzUpdates(f *testing.F) {
	for _, s := range []string{
		`{"ok":true,"result":[{"update_id":1,"message":{"text":"h\u00e9\/"}},{"update_id":2}]}`, "{\"ok\":true,\"result\":[ { \"update_id\" : 1e0 ,\n\"a\":-0.0 } ]}",
		`{"ok":true,"result":[]}`, `{"ok":true,"result":null}`, `{"ok":true,"result":{}}`, `{"ok":false,"error_code":409}`, `{"ok":true}`, `{}`, ``, `[]`,
		`{"ok":true,"result":[1,"a",null,[],{"a":{"a":1,"a":2}}]}`, `{"ok":true,"result":[{}]}x`, `{"ok":false,"error_code":429,"parameters":{"retry_after":9e18}}`,
		"{\"ok\":true,\"result\":[\"\xff\"]}", `{"ok":true,"result":[1],"result":[2,3],"RESULT":[4]}`, `{"ok":true,"result":[` + strings.Repeat("[", 20000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		given := bytes.Clone(body)
		var updates []json.RawMessage
		err := decode("getUpdates", 200, body, &updates)
		if !bytes.Equal(body, given) {
			t.Fatal("the answer was changed")
		}
		if err != nil {
			if e, ok := err.(*Error); !ok || e.RetryAfter < 0 || e.RetryAfter > maxWait {
				t.Fatalf("the error is %v", err)
			}
			return
		}
		rest := body
		for _, u := range updates {
			at := bytes.Index(rest, u)
			if at < 0 || !json.Valid(u) {
				t.Fatalf("%q is no part of %q", u, rest)
			}
			rest = rest[at+len(u):]
		}
	})
}

// Many updates in one answer come out as they went in.
func FuzzOneUpdate(f *testing.F) {
	f.Add([]byte(`{"update_id":1,"message":{"text":"\ud83d\ude00"}}`))
	f.Add([]byte("{\"a\" : [ 1.0 , 1E5 ],\t\"a\":\"\xc3\xa9\"}"))
	f.Add([]byte("\"\xff\""))
	f.Fuzz(func(t *testing.T, update []byte) {
		if !json.Valid(update) {
			return
		}
		body := append(append(append([]byte(`{"ok":true,"result":[{},`), update...), ','), update...)
		var updates []json.RawMessage
		if err := decode("getUpdates", 200, append(body, `]}`...), &updates); err != nil {
			t.Fatal(err)
		}
		want := bytes.Trim(update, " \t\r\n")
		if len(updates) != 3 || !bytes.Equal(updates[1], want) || !bytes.Equal(updates[2], want) {
			t.Fatalf("%q became %q", want, updates)
		}
	})
}
