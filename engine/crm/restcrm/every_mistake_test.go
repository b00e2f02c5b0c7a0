package restcrm_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// canary stands where a secret could, and in no error.
const canary = "hunter2"

var (
	onLine  = regexp.MustCompile(`^acme\.yaml:[1-9][0-9]*: `)
	hasMend = regexp.MustCompile(`[:;,] (the names here are|the keys here are|it is called|only|[a-z ]*\b(give|write|put|keep|leave|use|make|close|say|mend|move|compare|check|ask|describe|name|indent|set)\b)`)
)

// checkMistake puts a mistake into a document and judges what is said of it.
func checkMistake(t *testing.T, document, old, new, want string) {
	t.Helper()
	wrong := strings.Replace(document, old, new, 1)
	if wrong == document {
		t.Fatalf("%q is not in the document", old)
	}
	_, err := restcrm.Load("acme.yaml", []byte(wrong))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%.200q: %v\n\twant %s", new, err, want)
		return
	}
	judge(t, err)
	if !onLine.MatchString(err.Error()) {
		t.Errorf("%.200q: %v names no line", new, err)
	}
}

// judge holds an error against what every mistake of a person gets.
func judge(t *testing.T, err error) {
	t.Helper()
	switch text := err.Error(); {
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }):
		t.Errorf("more than one line: %q", text)
	case strings.Contains(text, canary) || strings.Contains(text, secret):
		t.Errorf("a value is repeated: %s", text)
	case !hasMend.MatchString(text):
		t.Errorf("no mend: %s", text)
	case len(text) > 500:
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestEveryMistakeInYAML: what the parser refuses, and what it takes and the loader
// does not.
func TestEveryMistakeInYAML(t *testing.T) {
	for _, c := range []struct{ new, want string }{ // instead of the first line
		{"\tname: acme", "acme.yaml:1: tab character cannot use as a map key directly; indent with spaces"},
		{"name: [acme", "acme.yaml:2: ',' or ']' must be specified; close the bracket"},
		{"name: {acme", "acme.yaml:1: could not find flow map content; close the brace"},
		{"name: '" + canary, "check the quotes, the brackets and the indentation there and above"},
		{"name: \"" + canary, "check the quotes"},
		{"name: \"" + canary + `\q"`, "acme.yaml:1: found unknown escape character 'q'; put the text in single quotes"},
		{"name: acme: " + canary, "acme.yaml:1: mapping value is not allowed in this context; put quotes around"},
		{"name " + canary, "acme.yaml:1: unexpected key name; write it as key: value"},
		{"name: |" + canary + "\n  x", "acme.yaml:1: invalid header option: \"…\"; write | or > alone"},
		{"name: @" + canary, "acme.yaml:1: '@' is a reserved character; put quotes around the text"},
		{"name: %" + canary, "acme.yaml:1: unexpected directive value"},
		{"name: *" + canary, "acme.yaml:1: name: YAML's alias is not used here; write the value out"},
		{"name: &" + canary + " acme", "acme.yaml:1: name: YAML's anchor is not used here; write the value out"},
		{"name: !!binary " + canary, "acme.yaml:1: name: YAML's tag is not used here; write the value out"},
		{"name: !" + canary + " x", "acme.yaml:1: name: YAML's tag is not used here"},
		{"name: .inf", "acme.yaml:1: name: YAML's inf is not used here"},
		{"<<: {name: " + canary + "}", "acme.yaml:1: YAML's merge is not used here; write the keys out"},
		{"7: acme", "acme.yaml:1: a key must be a plain text; put quotes around it"},
		{"? [a]\n: acme", "acme.yaml:2: found an invalid key for this map"},
		{`"a\nb": acme`, "acme.yaml:1: a?b: unknown key; the keys here are auth"},
		{strings.Repeat("k", 5000) + ": acme", "kkk…: unknown key; the keys here are auth"},
		{"name: acme\nname: " + canary, `acme.yaml:2: the key "name" stands twice, first in line 1; keep one`},
		{"name: acme\nvars: {a: b, a: " + canary + "}", `acme.yaml:2: the key "a" stands twice, first in line 2; keep one`},
		{"- " + canary, "acme.yaml:2: value is not allowed in this context"},
		{"name: acme\n---", "acme.yaml:2: more than one YAML document; keep one, without ---"},
		{"name: x\x00y", "acme.yaml:1: this is no text in UTF-8; give a YAML file"},
		{"name: acme\n# \xe4", "acme.yaml:2: this is no text in UTF-8"},
		{"name: " + strings.Repeat("[", 1000), "acme.yaml:1: more than 24 levels; make the document flatter"},
		{"name: \n" + strings.Repeat("- ", 30) + "x", "acme.yaml:2: more than 24 levels; make the document flatter"},
		{"name: 7", "acme.yaml:1: name: give a text; put quotes around a number"},
		{"name: [" + canary + "]", "acme.yaml:1: name: give a text"},
		{"name: {" + canary + ": x}", "acme.yaml:1: name: give a text"},
		{"name: true", "acme.yaml:1: name: give a text"},
		{"name: ''", "acme.yaml:1: name: give a name of a-z, 0-9 and -"},
	} {
		checkMistake(t, small, "name: acme", c.new, c.want)
	}
	for _, document := range []string{"null", "[]", canary, "7", "-", "?", "}", "|"} {
		_, err := restcrm.Load("acme.yaml", []byte(document))
		if err == nil || err.Error() != "acme.yaml:1: give a mapping of keys" {
			t.Errorf("%q: %v", document, err)
		}
	}
}

// TestEveryMistakeWithoutALine is one of the file as a whole.
func TestEveryMistakeWithoutALine(t *testing.T) {
	for document, want := range map[string]string{
		"":                             "acme.yaml: the file is empty; describe the CRM in it as SHAPE.md says",
		" \n\n":                        "acme.yaml: the file is empty; ",
		"# " + canary + "\n":           "acme.yaml: the file is empty; ",
		"---\n":                        "acme.yaml: the file is empty; ",
		"!":                            "acme.yaml: the file is empty; ",
		strings.Repeat("x: y\n", 2e6):  "acme.yaml: the file has more than 65536 bytes; make it shorter", // 10 MB
		strings.Repeat("\x00", 70_000): "acme.yaml: the file has more than 65536 bytes; make it shorter",
	} {
		_, err := restcrm.Load("acme.yaml", []byte(document))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", document, err, want)
			continue
		}
		judge(t, err)
	}
	if _, err := restcrm.Load("acme.yaml", []byte("\ufeff"+small)); err != nil {
		t.Errorf("a byte order mark: %v", err)
	}
}

// TestEveryMistakeInAnExpression, at the place of a condition.
func TestEveryMistakeInAnExpression(t *testing.T) {
	const at = "acme.yaml:10: create.outcome[0].when: "
	for _, c := range []struct{ new, want string }{
		{``, at + "column 1: unexpected token EOF; mend the expression there"},
		{`  `, at + "column 2: unexpected token EOF"},
		{`status ==`, at + "column 9: unexpected token EOF"},
		{`status == 201 "hunter2"`, at + "column 15: unexpected text"},
		{`status == 201 hunter2`, at + `column 15: unexpected token Identifier("…")`},
		{`status == "hunter2`, at + "column 19: literal not terminated"},
		{`status == 0xhunter2`, at + `column 13: bad number syntax: "…"`},
		{`text == "\hunter2"`, at + "column 11: invalid char escape"},
		{`text matches "(hunter2"`, at + "column 6: error parsing regexp: missing closing ); mend the expression there"},
		{`text matches body.x`, at + "the expression uses a pattern that is not written out; put it in quotes"},
		{"text matches '(`hunter2'", at + "column 6: error parsing regexp"},
		{`stat == 201`, at + "column 1: unknown name stat; the names here are vars.board, status, headers, body, text, key, class, op, absent"},
		{`item.x == 1`, at + "column 1: unknown name item; the names here are vars.board"},
		{`vars.bord == "x"`, at + "column 6: unknown field bord; the names here are vars.board"},
		{`steps.lead == "x"`, at + "column 1: unknown name steps; the names here are"},
		{`$env.key == "x"`, at + "the expression uses $env; write the name alone"},
		{`shout(text) == ""`, at + "column 1: unknown name shout"},
		{`now() == 1`, at + "column 1: unknown name now"},
		{`map(body, .a) == 1`, at + "the expression uses the function map, which is not there; leave it out"},
		{`lower(status) == ""`, at + "column 7: cannot use int as argument (type string) to call lower"},
		{`cut(text) == ""`, at + "column 1: not enough arguments to call cut"},
		{`cut(text, 1, 2) == ""`, at + "column 1: too many arguments to call cut"},
		{`lower(cut(text, key)) == ""`, at + "column 17: cannot use string as argument (type int) to call cut"},
		{`len(7) == 1`, at + "column 1: invalid argument for len (type int)"},
		{`any(body) == 1`, at + "column 9: expected at least 2 arguments"},
		{`status + text == 1`, at + "column 8: invalid operation: + (mismatched types int and string); make both of one type"},
		{`status == "hunter2"`, at + "column 8: invalid operation: == (mismatched types int and string)"},
		{`status > text`, at + "column 8: invalid operation: > (mismatched types"},
		{`status in text`, at + "column 8: invalid operation: in (mismatched types"},
		{`not text`, at + "column 1: invalid operation: not (mismatched type string)"},
		{`status and text`, at + "column 8: invalid operation: and (mismatched types"},
		{`status`, at + "expected bool, but got int; make it true or false"},
		{`text`, at + "expected bool, but got string; make it true or false"},
		{`let a = text; a == ""`, at + "the expression uses a variable; write the value where it is needed"},
		{`status == 1; true`, at + "the expression uses a variable"},
		{`len(1..9) == 1`, at + "the expression uses the operator ..; leave it out"},
		{`status ** 2 == 1`, at + "the expression uses the operator **; leave it out"},
		{`any(body.a, any(.b, .c == 1))`, at + "the expression uses a function inside of"},
		{`any(body.a, any(body.b, # == 1))`, at + "the expression uses a function inside of"},
		{`any(body.a, .b + "x" == "y")`, at + "the expression uses the operator + inside of a loop"},
		{`any(body.a, text contains .b)`, at + "the expression uses a text to look for that is not written out, inside of a loop; put it in quotes"},
		{strings.Repeat("a", 5000), at + "the expression has more than 4096 bytes; make it shorter"},
		{strings.Repeat("(", 1000), at + "column 1000: unexpected token EOF"},
		{strings.Repeat("status + ", 150) + "1 == 1", "expression exceeds maximum allowed nodes; make it shorter"},
		{strings.Repeat("!", 3000) + "true", at},
	} {
		checkMistake(t, small, "status == 201", "'"+strings.ReplaceAll(c.new, "'", "''")+"'", c.want)
	}
	checkMistake(t, small, "{when: status == 201, is: created, id: body.id}",
		"when: |\n        status == 201 and\n          stat == 1\n      is: created\n      id: body.id",
		"acme.yaml:10: create.outcome[0].when: line 2 column 3: unknown name stat")
}

// TestEveryMistakeInAHole of a text.
func TestEveryMistakeInAHole(t *testing.T) {
	const at = "acme.yaml:8: create.body.board"
	for _, c := range []struct{ new, want string }{
		{"'${vars.board'", at + ": a hole ${ has no end; close it with }, or write $${ for the characters themselves"},
		{"'x ${vars.board} ${\"}\"'", at + ": a hole ${ has no end"},
		{"'${}'", at + ": column 1: unexpected token EOF"},
		{"'${env:" + canary + "}'", at + ": ${env:…} stands only under vars, base_url and auth; put it under vars"},
		{"'${vars.board} ${status}'", at + ": column 1: unknown name status; the names here are vars.board, key, class, op, absent"},
		{"'${" + strings.Repeat("key+", 1200) + "key}'", at + ": the expression has more than 4096 bytes; make it shorter"},
		{"{$: 7}", at + ".$: give a text; put quotes around a number"},
		{"{$: }", at + ".$: give a text"},
		{"{$: [a]}", at + ".$: give a text"},
		{"{$: key, x: 1}", at + ": {$: expression} stands alone; put the other keys beside it"},
		{"{$: 'key +'}", at + ".$: column 5: unexpected token EOF"},
	} {
		checkMistake(t, small, "'${vars.board}'", c.new, c.want)
	}
}

// TestEveryMistakeInAKey: one for each thing that a key can have wrong.
func TestEveryMistakeInAKey(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"settle: 30s", "settle: [30s]", "acme.yaml:4: settle: give a duration such as"},
		{"settle: 30s", "settle: " + canary, "acme.yaml:4: settle: give a duration such as"},
		{"settle: 30s", "settle: 9000000h", "at most 366 days"},
		{"settle: 30s", "settle: 30s\ntimeout: 0s", "acme.yaml:5: timeout: give a duration"},
		{"class: unique_create", "class: [lookup]", "acme.yaml:3: class: give a text"},
		{"class: unique_create", "class:", "acme.yaml:3: class: it is missing; give one of"},
		{"class: unique_create", "class: unique_create\nclasses: lookup", "acme.yaml:4: classes: give a list of classes"},
		{"class: unique_create", "class: unique_create\nclasses: [" + canary + "]", "acme.yaml:4: classes[0]: give one of idempotency_key"},
		{"https://crm.example", "7", "acme.yaml:2: base_url: give a text"},
		{"https://crm.example", "https://" + canary + "@[::1", "acme.yaml:2: base_url: it cannot be parsed; give http[s]://"},
		{"https://crm.example", "https://${vars.board}", "acme.yaml:2: base_url: only ${env:NAME} can stand here"},
		{"https://crm.example", "'${env:URL'", "acme.yaml:2: base_url: a hole ${ has no end"},
		{`{board: "7"}`, "[a]", "acme.yaml:5: vars: give a mapping of names and texts"},
		{`{board: "7"}`, "{board: {a: b}}", "acme.yaml:5: vars.board: give a text"},
		{`{board: "7"}`, `{board: "7", Board: x}`, "acme.yaml:5: vars.Board: give the variable a name of a-z"},
		{`{board: "7"}`, `{board: "7", token: '${env:A B}'}`, "acme.yaml:5: vars.token: only ${env:NAME} can stand here"},
		{`{board: "7"}`, `{board: "7", token: ` + canary + `}`, "acme.yaml:5: vars.token: a secret does not belong in the file; write ${env:NAME}"},
		{"lookup:", "auth: " + canary + "\nlookup:", "acme.yaml:12: auth: type is none that there is; give one of none"},
		{"lookup:", "auth: {type: header}\nlookup:", "acme.yaml:12: auth: value is missing; give the text of the header"},
		{"lookup:", "auth: {type: header, value: Bearer " + canary + "}\nlookup:", "acme.yaml:12: auth.value: a secret does not belong in the file; put token: ${env:NAME} under vars"},
		{"lookup:", "auth: {type: header, header: 'a b', value: '${vars.board}'}\nlookup:", "acme.yaml:12: auth.header: this is no name of a header; give one"},
		{"lookup:", "auth: {type: basic, user: x}\nlookup:", "acme.yaml:12: auth: user and password are needed; give both"},
		{"lookup:", "auth: {type: session, value: x}\nlookup:", "acme.yaml:12: auth: login is missing; say which request"},
		{"lookup:", "auth: {type: session, value: '${session.body.x}', login: {path: /x}}\nlookup:", "acme.yaml:12: auth.login: granted is missing; say which"},
		{"lookup:", "auth: {type: oauth2, grant: refresh_token}\nlookup:", "acme.yaml:12: auth: token_url, client_id and client_secret are needed; give all three"},
		{"lookup:", "auth: {type: oauth2, grant: refresh_token, token_url: /x, client_id: a, client_secret: '${env:A}'}\nlookup:", "acme.yaml:12: auth: refresh_token belongs to"},
		{"lookup:", "auth: {type: oauth2, grant: client_credentials, token_url: /x, client_id: a, client_secret: " + canary + "}\nlookup:", "acme.yaml:12: auth.client_secret: a secret does not belong in the file"},
		{"lookup:", "auth: {type: oauth2, grant: client_credentials, token_url: /x, client_id: a, client_secret: '${env:A}', client: head}\nlookup:", "give body or basic"},
		{"lookup:", "limits: {per_second: " + canary + "}\nlookup:", "acme.yaml:12: limits.per_second: give a number above 0, at most 10000"},
		{"lookup:", "limits: {break_for: 1}\nlookup:", "acme.yaml:12: limits.break_for: give a duration"},
		{"is: exists", "is: exists, retry_after: 3s", "acme.yaml:11: create.outcome[1]: retry_after belongs to not_applied, unknown and unauthorized; leave it out"},
		{"is: exists", "is: exists, existing: 'true'", "acme.yaml:11: create.outcome[1]: id belongs to created and exists, and existing to created; leave out"},
		{"is: exists", "is: not_applied, retry_after: 7", "acme.yaml:11: create.outcome[1].retry_after: give a text"},
		{"is: exists", "is: not_applied, retry_after: soon", "acme.yaml:11: create.outcome[1].retry_after: column 1: unknown name soon"},
		{"is: exists", "is: refused, reason: 'it said ${text}'", "acme.yaml:11: create.outcome[1].reason: give fixed words"},
		{"path: /leads\n  body", "body", "acme.yaml:7: create: the path is missing; give one"},
		{"path: /leads\n  body", "path: /leads\n  query: [a]\n  body", "acme.yaml:8: create.query: give a mapping"},
		{"path: /leads\n  body", "path: /leads\n  query: {a: [b]}\n  body", "acme.yaml:8: create.query.a: give a text"},
		{"path: /leads\n  body", "path: /leads\n  key_header: {name: a, value: b}\n  body", "acme.yaml:8: create.key_header: the value does not come from key"},
		{"path: /leads\n  body", "path: /leads\n  key_header: 'a b'\n  body", "acme.yaml:8: create.key_header: give the name of a header"},
		{"  item_id: item.id\n", "", "acme.yaml:13: lookup: outcome, items and item_id are needed; say"},
		{"match: item.ref == key", "match: 'true'", "acme.yaml:13: lookup: match is needed"},
	} {
		checkMistake(t, small, c.old, c.new, c.want)
	}
}
