package restcrm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

const everything = `name: acme
base_url: http://crm.example
class: none
vars: {company: "7", team: a b}
create:
  method: PUT
  path: '/t/${vars.team}/leads(${op.code})/${op.gone == "" ? absent : "x"}/${key}'
  query: {q: 'name = ${op.name}', none: '${optional(op.gone)}', 'a[b]': '1'}
  headers: {X-Name: '${op.name}', X-None: '${optional(op.gone)}', X-Fix: '$${key}'}
  body:
    key: ${key}
    name: ${op.name}
    greeting: 'Hello ${op.name}, "${op.code}" $${op.name}'
    typed: [{$: int(vars.company)}, {$: 'op.name == "x"'}, {$: absent}, {$: nil}, true, 1.5, null]
    object: {$: '{"a": op.name, (key): [1, "2"]}'}
    gone: {$: optional(op.gone)}
    inside: '${toJSON({"n": op.name})}'
    ids: ['${uuid5(key)}', '${uuid4(key)}', '${b64("a:b")}', '${upper(cut(lower("\u00c9ABC"), 2))}', '${line("a\n b")}', '${either("", "z")}']
  outcome:
    - {when: status == 200, is: created, id: body.id}
`

// TestRequestIsBuiltAsValues: nothing of a lead ends the string, the segment or
// the parameter that it stands in.
func TestRequestIsBuiltAsValues(t *testing.T) {
	for _, hostile := range []string{
		"Ada", `"}, "admin": true, {"x": "`, "a/b/../../c", "a&b=c#d?e%20;", "${key} $${x} {$: 1}", "\u2028<script>&", `\`, "é世🙂", "*()'", "%2F..%2f",
	} {
		rec := record(t, says(200, `{"id":"L-1"}`))
		c := open(t, everything, restcrm.Config{BaseURL: rec.URL + "/base/"})
		if _, err := c.Create(t.Context(), operation("op-1", map[string]string{"name": hostile, "code": hostile})); err != nil {
			t.Fatalf("%q: %v", hostile, err)
		}
		got := rec.requests()[0]
		if got.method != "PUT" || !strings.HasPrefix(got.uri, "/base/t/a%20b/leads(") || strings.Count(strings.SplitN(got.uri, "?", 2)[0], "/") != 5 {
			t.Errorf("%q: %s %s", hostile, got.method, got.uri)
		}
		var body struct {
			Key, Name, Greeting, Inside string
			Typed                       []any
			Object                      map[string]any
			IDs                         []string
		}
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || strings.Contains(got.body, `"gone"`) || strings.Contains(got.body, `"admin": true`) {
			t.Fatalf("%q: %v: %s", hostile, err, got.body)
		}
		if body.Name != hostile || body.Greeting != `Hello `+hostile+`, "`+hostile+`" ${op.name}` || body.Object["a"] != hostile {
			t.Errorf("%q: %+v", hostile, body)
		}
		var inside map[string]string
		if err := json.Unmarshal([]byte(body.Inside), &inside); err != nil || inside["n"] != hostile {
			t.Errorf("%q: inside is %s", hostile, body.Inside)
		}
		if want := []any{7.0, hostile == "x", nil, true, 1.5, nil}; len(body.Typed) != len(want) {
			t.Errorf("typed %v, want %v", body.Typed, want)
		}
		if want := "YTpi Éa"; body.IDs[2]+" "+body.IDs[3] != strings.Replace(want, "Éa", "ÉA", 1) || body.IDs[4] != "a b" || body.IDs[5] != "z" {
			t.Errorf("functions gave %q", body.IDs)
		}
		if got.header.Get("X-Name") != hostile || got.header.Get("X-Fix") != "${key}" || len(got.header.Values("X-None")) != 0 {
			t.Errorf("%q: headers %v", hostile, got.header)
		}
	}
}

// TestWhatCannotBeSaidIsNotSent: a value that would change the request's shape
// refuses the create, and nothing leaves.
func TestWhatCannotBeSaidIsNotSent(t *testing.T) {
	rec := record(t, says(200, `{"id":"L-1"}`))
	c := open(t, everything, restcrm.Config{BaseURL: rec.URL})
	for name, fields := range map[string]map[string]string{
		"a control character in a header": {"name": "a\r\nX-Admin: 1", "code": "x"},
		"an empty segment":                {"name": "a", "code": ""},
		"no value":                        {"name": "", "code": "x"},
		"a megabyte":                      {"name": strings.Repeat("x", 300_000), "code": "x"},
	} {
		_, err := c.Create(t.Context(), operation("op-1", fields))
		if e := crm.Classify(err); err == nil || e.Outcome != crm.Refused || !strings.HasPrefix(e.Reason, "the create cannot be built: ") || strings.Contains(e.Reason, "Admin") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dots := open(t, strings.Replace(everything, "leads(${op.code})", "${op.code}", 1), restcrm.Config{BaseURL: rec.URL})
	for _, code := range []string{".", ".."} {
		_, err := dots.Create(t.Context(), operation("op-1", map[string]string{"name": "a", "code": code}))
		wantOutcome(t, err, crm.Refused, "the create cannot be built: a value cannot stand where the request has it")
	}
	for _, id := range []string{"", "..", "a/b", "a b", "é", "a.inc", strings.Repeat("a", 201)} {
		_, err := c.Create(t.Context(), operation(id, map[string]string{"name": "a", "code": "x"}))
		if crm.Classify(err).Outcome != crm.Refused {
			t.Errorf("operation id %q: %v", id, err)
		}
	}
	if n := len(rec.requests()); n != 0 {
		t.Errorf("%d requests left", n)
	}
}

// TestForm: a form is escaped as one.
func TestForm(t *testing.T) {
	document := strings.Replace(plain(""), "  outcome:", "  form: {a: '${op.text}', b: '${optional(op.gone)}', key: '${key}'}\n  outcome:", 1)
	rec := record(t, says(201, `{"id":7}`))
	c := open(t, document, restcrm.Config{BaseURL: rec.URL})
	receipt, err := c.Create(t.Context(), operation("op-1", map[string]string{"text": "x&key=y z"}))
	got := rec.requests()[0]
	if err != nil || receipt.CRMID != "7" || got.body != "a=x%26key%3Dy+z&key=op-1" || got.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Errorf("%+v, %v: %s", receipt, err, got.body)
	}
}

// TestKeyHeaderInItsClassOnly: to net/http, the header says that a replay is
// welcome.
func TestKeyHeaderInItsClassOnly(t *testing.T) {
	for _, class := range crm.Classes {
		s := &scripted{answers: []any{done}}
		c, err := shipped(t, "crmsim", restcrm.Config{BaseURL: "http://h", Class: class, Sender: s})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Create(t.Context(), operation("op-1", nil)); err != nil {
			t.Fatal(err)
		}
		want := ""
		if class == crm.IdempotencyKey {
			want = "op-1"
		}
		if got := s.sent[0].Header.Get("Idempotency-Key"); got != want {
			t.Errorf("class %s sent the key %q", class, got)
		}
	}
}

// TestLargeIDs: an id with more than 53 bits is not rounded.
func TestLargeIDs(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":9007199254740993}`: "9007199254740993", `{"id":1e3}`: "", `{"id":0}`: "", `{"id":-1}`: "", `{"id":true}`: "",
		`{"id":18446744073709551617}`: "", `{"id":"a b"}`: "", `{"id":["a"]}`: "", `{"id":"\u0000"}`: "",
	} {
		c := open(t, plain(""), restcrm.Config{Sender: &scripted{answers: []any{answer(201, body)}}})
		receipt, err := c.Create(t.Context(), operation("op-1", nil))
		if receipt.CRMID != want || (err == nil) != (want != "") {
			t.Errorf("%s: %+v, %v", body, receipt, err)
		}
	}
}
