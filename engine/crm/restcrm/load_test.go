package restcrm_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// small is the smallest description that has everything.
const small = `name: acme
base_url: https://crm.example
class: unique_create
settle: 30s
vars: {board: "7"}
create:
  path: /leads
  body: {ref: '${key}', board: '${vars.board}', text: '${op.text}'}
  outcome:
    - {when: status == 201, is: created, id: body.id}
    - {when: status == 409, is: exists}
lookup:
  path: /leads
  query: {ref: '${key}'}
  outcome:
    - {when: status == 200, is: found}
  items: body
  match: item.ref == key
  item_id: item.id
`

func TestSmallLoads(t *testing.T) {
	d, err := restcrm.Load("acme.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if d.Name() != "acme" || len(d.Classes()) != 1 {
		t.Errorf("%s, %v", d.Name(), d.Classes())
	}
}

// mistakes are changes of the small description, and what is said of them.
var mistakes = []struct{ old, new, want string }{
	{"name: acme", "name: Acme CRM", "acme.yaml:1: name: give a name of a-z, 0-9 and -"},
	{"name: acme\n", "", "acme.yaml:1: name: it is missing"},
	{"settle: 30s\n", "", "acme.yaml:1: settle: it is missing"},
	{"settle: 30s", "settle: 30", "acme.yaml:4: settle: give a duration"},
	{"settle: 30s", "settle: -30s", "acme.yaml:4: settle: give a duration"},
	{"settle: 30s", "settle: 30s\nsettle: 40s", "acme.yaml:5"},
	{"class: unique_create", "class: unique", "acme.yaml:3: class: give one of idempotency_key, upsert, unique_create, lookup, none"},
	{"class: unique_create", "capability: unique_create", "acme.yaml:3: capability: unknown key; it is called class"},
	{"class: unique_create", "class: idempotency_key", "acme.yaml:1: key_validity: it is missing; give how long"},
	{small[strings.Index(small, "create:\n"):strings.Index(small, "lookup:")], "", "acme.yaml:1: create: it is missing; say which request"},
	{small[strings.Index(small, "lookup:"):], "", "acme.yaml:11: create.outcome[1]: say where the id is, or describe a lookup"},
	{"class: unique_create", "class: unique_create\nkey_validity: 1h", "acme.yaml:4: key_validity: it belongs to"},
	{"class: unique_create", "class: lookup", `acme.yaml:11: create.outcome[1]: class lookup has no unique key`},
	{"settle: 30s", "settle: 30s\nsteps: []", "acme.yaml:3: class: with steps it belongs to each of them"},
	{"is: exists}", "is: exists}\n    - {when: 'status >= 400', is: refused}", "acme.yaml:12: create.outcome[2]: HTTP 408 without a word of the CRM's would be refused"},
	{"is: exists}", "is: exists}\n    - {when: 'status in [429, 503]', is: not_applied}", "acme.yaml:12: create.outcome[2]: HTTP 503 without a word of the CRM's would be not_applied"},
	{"is: exists}", "is: exists}\n    - {when: 'status == 500 && body == nil', is: unauthorized}", "acme.yaml:12: create.outcome[2]: HTTP 500 without a word"},
	{"is: exists}", "is: exists}\n    - {when: 'text contains \"gateway\"', is: refused}", "acme.yaml:12: create.outcome[2]: HTTP 408 without a word"},
	{"status == 409", "status > 201", "acme.yaml:11: create.outcome[1]: HTTP 408 without a word of the CRM's would be exists"},
	{"is: found}", "is: found}\n    - {when: status == 404, is: none}", "acme.yaml:17: lookup.outcome[1]: HTTP 404 without a word of the CRM's would be none"},
	{"'${op.text}'", "'${lower(text)}'", "acme.yaml:8: create.body.text: column 7: unknown name text"},
	{"'${op.text}'", "'${cut(line(either(op.text, vars.bord)), 9)}'", "acme.yaml:8: create.body.text: column 31: unknown field bord"},
	{"'${op.text}'", "'${lower(body.text)}'", "unknown name body"},
	{"'${op.text}'", "'${cut(op.text)}'", "not enough arguments to call cut"},
	{"'${op.text}'", "'${cut(op.text, key)}'", "cannot use string as argument"},
	{"'${op.text}'", "'${shout(op.text)}'", "unknown name shout"},
	{"https://crm.example", "crm.example", "acme.yaml:2: base_url: give http[s]://"},
	{"https://crm.example", "https://ann:hunter2@crm.example", "acme.yaml:2: base_url: a password does not belong in the file"},
	{"https://crm.example", "https://crm.example?key=hunter2", "acme.yaml:2: base_url: it must have no query"},
	{`board: "7"`, `board: 7`, "acme.yaml:5: vars.board: give a text; put quotes around a number"},
	{`board: "7"`, `board: "7", password: hunter2`, "acme.yaml:5: vars.password: a secret does not belong in the file; write ${env:NAME}"},
	{`board: "7"`, `board: "7", api_key: hunter2`, "acme.yaml:5: vars.api_key: a secret does not belong"},
	{`board: "7"`, `board: "${op.text}"`, "acme.yaml:5: vars.board: only ${env:NAME} can stand here"},
	{"'${vars.board}'", "'${vars.bord}'", "acme.yaml:8: create.body.board: column 6: unknown field bord"},
	{"'${vars.board}'", "'${env:BOARD}'", "acme.yaml:8: create.body.board: ${env:…} stands only under vars"},
	{"'${vars.board}'", "'${vars.board'", "acme.yaml:8: create.body.board: a hole ${ has no end"},
	{"'${vars.board}'", "{$: 'vars.board +'}", "acme.yaml:8: create.body.board.$: column"},
	{"'${vars.board}'", "{$: key, x: 1}", "stands alone"},
	{"'${vars.board}'", "'${b64(7)}'", "acme.yaml:8: create.body.board: column 5: cannot use int as argument (type string) to call b64"},
	{"'${vars.board}'", "'${b64(lower(7))}'", "acme.yaml:8: create.body.board: column 11: cannot use int as argument (type string) to call lower"},
	{"'${vars.board}'", "'${int(cut(key))}'", "acme.yaml:8: create.body.board: column 5: not enough arguments to call cut"},
	{"status == 201", "status == ", "acme.yaml:10: create.outcome[0].when: column"},
	{"status == 201", "status", "acme.yaml:10: create.outcome[0].when: expected bool, but got int"},
	{"status == 201", "'let a = text + text; a == key'", "acme.yaml:10: create.outcome[0].when: the expression uses a variable"},
	{"status == 201", "'any(body.a, any(.b, .c == 1))'", "a function inside of"},
	{"status == 201", "'any(body.a, text contains .b)'", "a text to look for that is not written out"},
	{"status == 201", "'map(body.a, .b)[0] == 1'", "the function map, which is not there"},
	{"status == 201", "'len(1..99999999) == 1'", "the operator .."},
	{"status == 201", "'text matches body.a'", "a pattern that is not written out"},
	{"status == 201", "'" + strings.Repeat("status + ", 150) + "1 == 1'", "exceeds maximum allowed nodes"},
	{"id: body.id", "reason: done", "acme.yaml:10: create.outcome[0]: id is missing"},
	{"is: created", "is: made", "give one of created, exists, not_applied, refused, unauthorized, unknown"},
	{"is: created", "is: created, reason: 'was ${body.message}'", "give fixed words without holes"},
	{"ref: '${key}', board", "board", "acme.yaml:7: create: the request does not say ${key}"},
	{"path: /leads\n  body", "path: leads\n  body", "acme.yaml:7: create.path: give a path that begins with /"},
	{"path: /leads\n  body", "path: /leads?a=b\n  body", "create.path: give a path that begins with / and has no ?"},
	{"path: /leads\n  body", "path: /leads\n  method: DELETE\n  body", "create.method: give one of GET, POST, PUT, PATCH"},
	{"path: /leads\n  body", "path: /leads\n  key_header: Idempotency-Key\n  body", "a key header belongs to class idempotency_key alone"},
	{"path: /leads\n  body", "path: /leads\n  headers: {X-Idempotency-Key: '${key}'}\n  body", "put it under key_header"},
	{"path: /leads\n  body", "path: /leads\n  headers: {authorization: x}\n  body", "use auth"},
	{"path: /leads\n  body", "path: /leads\n  headers: {Host: x}\n  body", "the header is not the file's to set"},
	{"path: /leads\n  body", "path: /leads\n  headers: {'a b': x}\n  body", "this is no name of a header"},
	{"path: /leads\n  body", "path: /leads\n  form: {a: b}\n  body", "body and form exclude each other"},
	{"match: item.ref == key", "match: item.ref == class", "match is needed"},
	{"  match: item.ref == key\n", "", "match is needed"},
	{"query: {ref: '${key}'}", "query: {ref: x}", "acme.yaml:13: lookup: the request does not say ${key}"},
	{"query: {ref: '${key}'}", "query: {ref: '${op.text}'}", "unknown name op"},
	{"lookup:", "auth: {type: basic, user: ann, password: hunter2}\nlookup:", "auth.password: a secret does not belong"},
	{"lookup:", "auth: {type: token}\nlookup:", "give one of none, header, basic, session, oauth2"},
	{"lookup:", "auth: {type: oauth2, grant: password}\nlookup:", "give client_credentials or refresh_token"},
	{"lookup:", "limits: {per_second: 0}\nlookup:", "limits.per_second: give a number above 0"},
	{"lookup:", "limits: {burst: 3}\nlookup:", "burst needs per_second"},
	{"settle: 30s", "settle: &a 30s", "acme.yaml:4: settle: YAML's anchor is not used here"},
	{"settle: 30s", "settle: !!str 30s", "YAML's tag is not used here"},
	{"lookup:", "---\nlookup:", "acme.yaml:12: more than one YAML document"},
	{"class: unique_create", "\tclass: unique_create", "acme.yaml:"},
}

// TestMistakes: each is refused in one line with the place and the mend.
func TestMistakes(t *testing.T) {
	for _, c := range mistakes {
		checkMistake(t, small, c.old, c.new, c.want)
	}
	checkMistake(t, plain("settle: 30s"), "class: none", "class: lookup", "acme.yaml:1: lookup: it is missing; describe it")
}

// TestWhatTheProcessLacks: New names what is missing, and no value.
func TestWhatTheProcessLacks(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for name, c := range map[string]struct {
		config restcrm.Config
		want   string
	}{
		"tryton":       {restcrm.Config{BaseURL: "http://h", Secrets: none}, "tryton.yaml:12: vars.password: TRYTON_PASSWORD is not set in the environment; set it"},
		"espocrm":      {restcrm.Config{Secrets: none}, "espocrm.yaml:5: base_url: ESPOCRM_URL is not set in the environment; set it"},
		"monday":       {restcrm.Config{Secrets: vendorEnvironment}, "monday.yaml:"},
		"kommo":        {restcrm.Config{Secrets: vendorEnvironment, Vars: map[string]string{"feld": "7"}}, `kommo.yaml: vars has no "feld"; give one of field, token`},
		"zoho":         {restcrm.Config{Secrets: vendorEnvironment}, "needs a place to keep new tokens"},
		"crmsim":       {restcrm.Config{}, "crmsim.yaml:3: base_url: it has no value; give the URL"},
		"twenty":       {restcrm.Config{BaseURL: "ftp://ann:" + secret + "@h", Secrets: vendorEnvironment}, "twenty.yaml: base_url: give http[s]://"},
		"hubspot":      {restcrm.Config{Class: "lookup", Secrets: vendorEnvironment}, "hubspot.yaml: the file has no class lookup; give one of unique_create"},
		"bitrix24":     {restcrm.Config{Settle: -1, Secrets: vendorEnvironment}, "settle or key_validity is negative; give"},
		"suitecrm":     {restcrm.Config{BaseURL: "http://h?" + secret, Secrets: vendorEnvironment, Store: restcrm.FileStore{}}, "suitecrm.yaml: base_url: it must have no query"},
		"hubspot-lead": {restcrm.Config{Secrets: func(string) (string, bool) { return "", true }}, "hubspot-lead.yaml:9: vars.token: HUBSPOT_TOKEN is not set in the environment; set it"},
		"pipedrive": {restcrm.Config{Vars: map[string]string{"field": "f", "person_field": "p"}, Secrets: func(string) (string, bool) {
			return secret + "\r\nX: y", true
		}}, "pipedrive.yaml:12: auth: the header's value is empty or has a control character; mend"},
		"odoo": {restcrm.Config{Vars: map[string]string{"database": "x"}, Secrets: func(string) (string, bool) {
			return "http://h\n" + secret, true
		}}, "odoo.yaml:5: base_url: it cannot be parsed"},
	} {
		_, err := shipped(t, name, c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), name+".yaml:") {
			t.Errorf("%s: %v\n\twant %s", name, err, c.want)
			continue
		}
		judge(t, err)
	}
}

// FuzzLoad: what is not read is refused in one line with the file's name, and
// what is read makes a connector or an error.
func FuzzLoad(f *testing.F) {
	for _, name := range restcrm.Shipped() {
		document, err := restcrm.Document(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(document)
	}
	for _, seed := range []string{
		small, stepped, "", "name: !", "\"a\\nb\": 1", "steps: [{name: lead}, {name: lead}]", "steps: {lead: {}}", "steps: [[]]",
		strings.Replace(stepped, "int(steps.contact)", "steps['contact'].x", 1),
		strings.Replace(stepped, "int(steps.contact)", "any([steps], .lead == 1)", 1), "bots: !", "? a\n: b", "- - - -", "{[{[{[", strings.Repeat("- ", 2000), strings.Repeat("[", 5000),
		strings.Repeat("a:\n ", 100), "a: &b\n- *b", "a: {$: {$: x}}", "name: |-\n  x", "a: \"\\q\"", "%YAML 1.2\n--- x", "\x00", "<<: {a: 1}",
		strings.Replace(small, "status == 201", "'"+strings.Repeat("(", 3000)+"'", 1),
		strings.Replace(small, "status == 201", "'"+strings.Repeat("!", 3000)+"true'", 1),
		strings.Replace(small, "status == 201", "'any(filter(body, # in [1]), # ?? 1 == 1)'", 1),
	} {
		f.Add([]byte(seed))
	}
	oneLine := func(t *testing.T, document []byte, err error) {
		text := err.Error()
		if !strings.HasPrefix(text, "f.yaml:") || strings.ContainsFunc(text, unicode.IsControl) || len(text) > 1000 {
			t.Fatalf("%q: %q", document, text)
		}
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		d, err := restcrm.Load("f.yaml", document)
		if err != nil {
			oneLine(t, document, err)
			return
		}
		c, err := restcrm.New(d, restcrm.Config{
			BaseURL: "http://127.0.0.1:1", Secrets: func(string) (string, bool) { return "x", true }, Store: restcrm.FileStore{Dir: t.TempDir()},
		})
		if err != nil {
			oneLine(t, document, err)
			return
		}
		if steps := c.Steps(); len(steps) != len(d.Steps()) {
			t.Fatalf("%q: %d steps", document, len(steps))
		}
	})
}
