package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
)

// sound is a configuration that can be served, with a rule.
const sound = `bots: [{id: 7, secrets: ["${A_SECRET}"]}]
crm: {connector: crmsim, url: http://127.0.0.1:1, class: lookup}
workers: 4
lease: 60s
poll: false
retry: {attempts: 3, first: 1s, max: 1m}
rules:
  - name: hello
    when: text == "hi"
    action: create_lead
    fields: {title: "a ${text}"}
`

// mend is how every mistake ends: with what to do.
var mend = regexp.MustCompile(`[:;,] (the names are|must|want|[a-z ,]*\b(give|write|put|keep|leave|use|make|close|say|mend|compare|check|search|describe|name|indent|export|see|set|chat has|the keys are|the functions are)\b)`)

// wantMistake serves, but for its requests, the document, and judges what is said of it.
func wantMistake(t *testing.T, document, want string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leadonce.yaml")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	judgeMistake(t, document, path, nil, want)
}

func judgeMistake(t *testing.T, what, path string, overrides map[string]string, want string) {
	t.Helper()
	c, err := readConfig(path, overrides)
	if err == nil {
		err = c.check()
	}
	if err == nil {
		t.Errorf("%.300q is served, want %s", what, want)
		return
	}
	text := strings.ReplaceAll(err.Error(), path, "leadonce.yaml")
	text = strings.ReplaceAll(text, filepath.Dir(path)+"/", "")
	switch {
	case !strings.HasPrefix(text, want):
		t.Errorf("%.300q: %s\n\twant %s", what, text, want)
	case !errors.As(err, new(*configError)):
		t.Errorf("%s is no mistake of a person: %T", text, err)
	case strings.ContainsFunc(text, unicode.IsControl) || len(text) > 900:
		t.Errorf("more than a line: %q", text)
	case strings.Contains(text, canary):
		t.Errorf("a value is repeated: %s", text)
	case !mend.MatchString(text):
		t.Errorf("no mend: %s", text)
	}
}

func theSecret(t *testing.T) { t.Setenv("A_SECRET", "s-"+canary) }

// TestEveryMistakeInYAML of the configuration; the first line is replaced.
func TestEveryMistakeInYAML(t *testing.T) {
	theSecret(t)
	bots, rest, _ := strings.Cut(sound, "\n")
	for first, want := range map[string]string{
		"\tlisten: x":                                   "leadonce.yaml:1: tab character cannot use as a map key directly; indent with spaces",
		"listen: [" + canary:                            "leadonce.yaml:2: ",
		"listen: {" + canary:                            "leadonce.yaml:1: could not find flow map content; close the brace",
		"listen: '" + canary:                            "leadonce.yaml:",
		"listen: \"" + canary + "\\q\"":                 "leadonce.yaml:1: listen: found unknown escape character 'q'; put the text in single quotes",
		"listen: a: " + canary:                          "leadonce.yaml:1: ",
		`bots: [{id: 7, secrets: [${` + canary + `}]}]`: "leadonce.yaml:1: a text with ${…} in it stands within {} or []; put quotes around it",
		"retry: {attempts: 3, first: ${A_SECRET}}":      "leadonce.yaml:1: a text with ${…} in it stands within {} or []; put quotes around it",
		"tls: {cert_file: \"${A}\" b}":                  "leadonce.yaml:1: ',' or '}' must be specified; close the brace",
		"listen " + canary:                              "leadonce.yaml:1: unexpected key name; write it as key: value",
		"listen: |" + canary:                            "leadonce.yaml:1: listen: invalid header option: \"…\"; write | or > alone",
		"listen: @" + canary:                            "leadonce.yaml:1: listen: '@' is a reserved character; put quotes around the text",
		"listen: *" + canary:                            "leadonce.yaml:1: ",
		"listen: !!int " + canary:                       "leadonce.yaml:1: ",
		"- " + canary:                                   "leadonce.yaml:2: ",
		"7: " + canary:                                  "leadonce.yaml:1: a key is a number, true, false or null; put quotes",
		"\"a\\nb\": " + canary:                          `leadonce.yaml:1: unknown key "a\nb"; the keys are in the file`,
		strings.Repeat("k", 9000) + ": x":               `leadonce.yaml:1: unknown key "kkk`,
		"lisen: " + canary:                              `leadonce.yaml:1: unknown key "lisen"; the keys are in the file`,
		"listen: x\nlisten: " + canary:                  `leadonce.yaml:2: the key "listen" stands twice, first in line 1; keep one`,
		"listen: x\n---":                                "leadonce.yaml:2: more than one YAML document; keep everything in one, without ---",
		"listen: x\x00" + canary:                        "leadonce.yaml:1: this is no text in UTF-8; give a YAML file",
		"listen: x\n# \xff" + canary:                    "leadonce.yaml:2: this is no text in UTF-8; give a YAML file",
		"bots: !":                                       "leadonce.yaml: not a YAML document of leadonce; compare it with",
		"bots: " + canary:                               "leadonce.yaml:1: bots: there is a string; give a list",
		"bots: [" + canary + "]":                        "leadonce.yaml:1: ",
		"bots: [{id: " + canary + "}]":                  "leadonce.yaml:1: id: give a whole number",
		"bots: [{id: 1.5}]":                             "leadonce.yaml:1: id: give a whole number",
		"bots: [{id: 99999999999999999999}]":            "leadonce.yaml:1: id: give a whole number",
		"bots: [{id: 1, secrets: [0123]}]":              "leadonce.yaml:1: secrets: put quotes around the value",
		"bots: [{id: 1, token: " + canary + "}]":        `leadonce.yaml:1: unknown key "token"; the keys are`,
		"bots: [{id: 1, secrets: " + canary + "}]":      "leadonce.yaml:1: secrets: there is a string; give a list",
		"listen: [x]":                                   "leadonce.yaml:1: listen: give a text",
		"tls: " + canary:                                "leadonce.yaml:1: tls: there is a string; give a mapping of keys",
		"trusted_proxies: " + canary:                    "leadonce.yaml:1: trusted_proxies: there is a string; give a list",
		"clock_skew: 5":                                 "leadonce.yaml:1: clock_skew: give a duration such as 500ms",
		"clock_skew: " + canary:                         "leadonce.yaml:1: clock_skew: give a duration such as 500ms",
		"max_backlog: " + canary:                        "leadonce.yaml:1: max_backlog: give a whole number",
	} {
		if strings.HasPrefix(first, "bots") {
			wantMistake(t, first+"\n"+rest, want)
		} else {
			wantMistake(t, first+"\n"+rest+bots+"\n", want)
		}
	}
	wantMistake(t, strings.Replace(sound, "poll: false", "poll: "+canary, 1), "leadonce.yaml:5: poll: give true or false")
}

// TestEveryMistakeOfTheFile as a whole.
func TestEveryMistakeOfTheFile(t *testing.T) {
	theSecret(t)
	wantMistake(t, "", "leadonce.yaml: the file is empty; write one with `leadonce init`")
	wantMistake(t, "# "+canary+"\n", "leadonce.yaml: the file is empty; ")
	wantMistake(t, strings.Repeat("# x\n", 2_500_000), "leadonce.yaml: the file has more than 1048576 bytes; make it shorter")
	wantMistake(t, "\x89PNG\r\n\x1a\n\x00"+canary, "leadonce.yaml:1: this is no text in UTF-8; give a YAML file")
	path := filepath.Join(t.TempDir(), "leadonce.yaml")
	judgeMistake(t, "nothing", path, nil, "leadonce.yaml: no such file; write one with `leadonce init`, or name another")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	judgeMistake(t, "a folder", path, nil, "leadonce.yaml: this is a directory; name a file")
	path = filepath.Join(t.TempDir(), "leadonce.yaml")
	if err := os.WriteFile(path, []byte("\ufeff"+sound), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig(path, nil); err != nil {
		t.Errorf("a byte order mark: %v", err)
	}
}

// TestEveryMistakeInAValue: the file, the line and the key.
func TestEveryMistakeInAValue(t *testing.T) {
	theSecret(t)
	t.Setenv("EMPTY_SECRET", "")
	t.Setenv("WRONG_SECRET", canary+"!")
	for _, c := range []struct{ old, new, want string }{
		{"${A_SECRET}", "${NO_SECRET}", "leadonce.yaml:1: bots[0].secrets[0]: the environment variable NO_SECRET is not set; export it"},
		{"${A_SECRET}", "${EMPTY_SECRET}", "leadonce.yaml:1: bots[0].secrets[0]: the environment variable EMPTY_SECRET is not set; export it"},
		{"${A_SECRET}", "${WRONG_SECRET}", "leadonce.yaml:1: bots[0].secrets[0]: give 1 to 256 of"},
		{"${A_SECRET}", "${A_SECRET", "leadonce.yaml:1: bots[0].secrets[0]: give 1 to 256 of"},
		{"${A_SECRET}", strings.Repeat("x", 257), "leadonce.yaml:1: bots[0].secrets[0]: give 1 to 256 of"},
		{`"${A_SECRET}"`, canary + "," + canary + ", c", "leadonce.yaml:1: bots[0].secrets: 3, give at most 2"},
		{`"${A_SECRET}"`, "", "leadonce.yaml:1: bots[0].secrets: none; "},
		{`"${A_SECRET}"`, "null", "leadonce.yaml:1: bots[0].secrets[0]: give 1 to 256 of"},
		{"id: 7", "id: 0", "leadonce.yaml:1: bots[0].id: 0, give the number"},
		{"bots: [", "bots: [{id: 7, secrets: [x]}, ", "leadonce.yaml:1: bots[1].id: 7 stands twice; keep one"},
		{`[{id: 7, secrets: ["${A_SECRET}"]}]`, "[]", "leadonce.yaml:1: bots: none; give at least one"},
		{"workers: 4", "workers: 0", "leadonce.yaml:3: workers: 0, give 1 to 1000"},
		{"workers: 4", "max_backlog: 0", "leadonce.yaml:3: max_backlog: 0, give at least 1"},
		{"workers: 4", "role: boss", `leadonce.yaml:3: role: "boss" is unknown, give all`},
		{"workers: 4", "log: postgres", `leadonce.yaml:3: log: "postgres" is unknown, give sqlite`},
		{"workers: 4", "log: memory\nrole: worker", "leadonce.yaml:3: log: memory can be seen by its own process only; give it the role all"},
		{"workers: 4", "log: kurrentdb", "leadonce.yaml: kurrentdb.connection: none; give the cluster's address"},
		{"workers: 4", "log: kurrentdb\nkurrentdb: {connection: 'esdb://u:${NO_SECRET}@h'}", "leadonce.yaml:4: kurrentdb.connection: the environment variable NO_SECRET is not set; export it"},
		{"workers: 4", "log: kurrentdb\nkurrentdb: {connection: 'esdb://u:" + canary + "@h:x:y'}", "leadonce.yaml:4: kurrentdb: "},
		{"workers: 4", "log: kurrentdb\nkurrentdb: {connection: 'http://u:" + canary + "@h'}", "leadonce.yaml:4: kurrentdb: "},
		{"workers: 4", "log: kurrentdb\nkurrentdb: {connection: 'esdb://h:2113?tls=false', namespace: 'A b'}", "leadonce.yaml:4: kurrentdb: "},
		{"workers: 4", "data_dir: ''", "leadonce.yaml:3: data_dir: empty, give a folder"},
		{"workers: 4", "listen: '8080'", `leadonce.yaml:3: listen: "8080" is no address; give HOST:PORT`},
		{"workers: 4", "listen: 'h:99999'", `leadonce.yaml:3: listen: "99999" is no port; give 1 to 65535`},
		{"workers: 4", "trusted_proxies: [10.0.0.0/8,\n  10.0.0.1]", `leadonce.yaml:4: trusted_proxies[1]: "10.0.0.1" is not a network; give one`},
		{"workers: 4", "tls: {cert_file: a}", "leadonce.yaml:3: tls: cert_file and key_file go together; give both or none"},
		{"workers: 4", "tls: {cert_file: nothing.pem, key_file: nothing.pem}", "leadonce.yaml:3: tls: open nothing.pem: no such file or directory; give a certificate and its key"},
		{"workers: 4", "logging: {level: loud}", `leadonce.yaml:3: logging.level: "loud" is unknown, give debug`},
		{"workers: 4", "logging: {format: xml}", `leadonce.yaml:3: logging.format: "xml" is unknown, give text or json`},
		{"lease: 60s", "lease: 24s", "leadonce.yaml:4: lease is 24s, must be at least"},
		{"lease: 60s", "lease: 9000h", "leadonce.yaml:4: lease: 9000h0m0s, give at most a year"},
		{"lease: 60s", "call_timeout: -1s", "leadonce.yaml:4: call_timeout is -1s, must be positive"},
		{"lease: 60s", "clock_skew: -1s", "leadonce.yaml:4: clock_skew is -1s, must not be negative"},
		{"attempts: 3", "attempts: 0", "leadonce.yaml:6: retry.attempts is 0, must be at least 1"},
		{"first: 1s", "first: 2m", "leadonce.yaml:6: retry.first is 2m0s and retry.max is 1m0s, want 0 < first"},
		{"class: lookup", "class: lookop", `leadonce.yaml:2: crm.class: "lookop" is unknown, give one of`},
		{", class: lookup", "", `leadonce.yaml:2: crm.class: "" is unknown, give one of`},
		{"class: lookup", "class: lookup, settle: 0s", "leadonce.yaml:2: crm.settle: 0s, give more than"},
		{"class: lookup", "class: lookup, settle: -1s", "leadonce.yaml:2: crm.settle: -1s, give more than"},
		{"class: lookup", "class: lookup, key_validity: -1s", "leadonce.yaml:2: crm.key_validity: -1s, give how long"},
		{"class: lookup", "class: idempotency_key, key_validity: 40s", "leadonce.yaml:2: crm.key_validity: 40s, give more than"},
		{"class: lookup", "class: lookup, vars: {a: b}", "leadonce.yaml:2: crm.vars: crmsim has none; leave them out"},
		{"http://127.0.0.1:1", "ftp://u:" + canary + "@h", "leadonce.yaml:2: crm.url: give an http or https address"},
		{"http://127.0.0.1:1", "'http://u:" + canary + "@[::1'", "leadonce.yaml:2: crm.url: give an http or https address"},
		{"http://127.0.0.1:1", "'http://h?token=" + canary + "'", "leadonce.yaml:2: crm.url: it must have no query and no fragment; leave them out"},
		{"http://127.0.0.1:1", "'${NO_URL}'", "leadonce.yaml:2: crm.url: the environment variable NO_URL is not set; export it"},
		{"url: http://127.0.0.1:1, ", "", "leadonce.yaml:2: crm.url: give an http or https address"},
		{"connector: crmsim", "connector: nosuch", `leadonce.yaml:2: crm.connector: "nosuch" is unknown, give a file`},
		{"connector: crmsim", "connector: hubspot", "leadonce.yaml:2: crm.class: hubspot has no class lookup, give one of unique_create"},
		{"connector: crmsim", "connector: kommo, vars: {feld: '7'}", `leadonce.yaml:2: crm.vars: kommo has no "feld", give one of field, token`},
		{"connector: crmsim", "connector: kommo", "kommo.yaml:10: vars.field: it has no value; give one here, or under vars of the configuration"},
		{"connector: crmsim", "connector: kommo, vars: {field: '7'}", "kommo.yaml:9: vars.token: KOMMO_TOKEN is not set in the environment; set it"},
		{"connector: crmsim", "connector: kommo, vars: {field: '${NO_FIELD}'}", "leadonce.yaml:2: crm.vars.field: the environment variable NO_FIELD is not set; export it"},
		{"connector: crmsim", "connector: nowhere.yaml", "leadonce.yaml:2: crm.connector: nowhere.yaml: no such file; give the path of a description"},
		{"connector: crmsim", "connector: testdata.yaml/", "leadonce.yaml:2: crm.connector: "},
	} {
		document := strings.Replace(sound, c.old, c.new, 1)
		if document == sound {
			t.Fatalf("%q is not in the document", c.old)
		}
		wantMistake(t, document, c.want)
	}
}

// TestEveryMistakeInARule: the line of the file, and the place in the expression.
func TestEveryMistakeInARule(t *testing.T) {
	theSecret(t)
	for _, c := range []struct{ old, new, want string }{
		{`text == "hi"`, `txet == "` + canary + `"`, "leadonce.yaml:9: rules[0].when: line 1 column 1: unknown name txet: the names are"},
		{`text == "hi"`, `text == "` + canary, "leadonce.yaml:9: rules[0].when: line 1 column"},
		{`text == "hi"`, `text == "hi" "` + canary + `"`, "leadonce.yaml:9: rules[0].when: line 1 column 14: unexpected text: mend"},
		{`text == "hi"`, `text ==`, "leadonce.yaml:9: rules[0].when: line 1 column 7: unexpected token EOF: mend"},
		{`text == "hi"`, `text`, "leadonce.yaml:9: rules[0].when: line 1 column 1: expected bool, but got string: a condition is true or false: compare"},
		{`text == "hi"`, `chat.id == "x"`, "leadonce.yaml:9: rules[0].when: line 1 column 9: invalid operation: == (mismatched types int64 and string): mend"},
		{`text == "hi"`, `lower(chat.id) == "x"`, "leadonce.yaml:9: rules[0].when: line 1 column 12: cannot use int64 as argument (type string) to call lower: mend"},
		{`text == "hi"`, `now() == 1`, "leadonce.yaml:9: rules[0].when: line 1 column 1: unknown name now: "},
		{`text == "hi"`, `chat.tpye == "x"`, "leadonce.yaml:9: rules[0].when: line 1 column 6: type chat has no field tpye: chat has id"},
		{`text == "hi"`, `any(update.a, any(update.b, true))`, "leadonce.yaml:9: rules[0].when: line 1 column"},
		{`text == "hi"`, `text matches "(` + canary + `"`, "leadonce.yaml:9: rules[0].when: line 1 column 6: error parsing regexp: missing closing ): mend"},
		{`text == "hi"`, `text matches data`, "leadonce.yaml:9: rules[0].when: line 1 column 14: the pattern of matches is no literal: write it in quotes"},
		{`text == "hi"`, strings.Repeat("a", 3000), "leadonce.yaml:9: rules[0].when: 3000 bytes long: give at most 2000"},
		{`text == "hi"`, "1" + strings.Repeat("*1", 600) + " == 1", "leadonce.yaml:9: rules[0].when: line 1 column"},
		{`text == "hi"`, "|\n      true and\n      txet", "leadonce.yaml:9: rules[0].when: line 2 column 1: unknown name txet: the names are"},
		{`text == "hi"`, "7", "leadonce.yaml:9: rules[0].when: line 1 column 1: expected bool, but got int: a condition is true or false: compare"},
		{`text == "hi"`, "0123", "leadonce.yaml:9: put quotes around the value"},
		{`text == "hi"`, "[a]", "leadonce.yaml:9: when: give a text"},
		{`"a ${text}"`, `"a ${text"`, "leadonce.yaml:11: rules[0].fields.title: line 1 column 3: ${ without its }: write expressions as in"},
		{`"a ${text}"`, `"` + canary + ` ${nmae}"`, "leadonce.yaml:11: rules[0].fields.title: line 1 column 21: unknown name nmae: "},
		{`"a ${text}"`, "shop", "leadonce.yaml:11: rules[0].fields.title: line 1 column 1: unknown name shop: a text stands in quotes"},
		{`"a ${text}"`, "chat", "leadonce.yaml:11: rules[0].fields.title: line 1 column 1: it is a group of members, want a text"},
		{"create_lead", "creat_lead", "leadonce.yaml:10: rules[0].action: not an action: give create_lead or ignore"},
		{"create_lead", "ignore", "leadonce.yaml:11: rules[0].fields: "},
		{"name: hello", "name: a/b", "leadonce.yaml:8: rules[0].name: not a rule's name: "},
		{"name: hello\n    when", "when", "leadonce.yaml:8: rules[0].name: not a rule's name: "},
		{"when: ", "wen: ", `leadonce.yaml:9: unknown key "wen"; the keys are`},
		{"action: create_lead", "action: create_lead\n    series: " + canary, "leadonce.yaml:11: series: give a duration such as 500ms"},
		{"action: create_lead", "action: create_lead\n    series: 10ms", "leadonce.yaml:11: rules[0].series: not a window: give 1s to 24h"},
		{"action: create_lead", "action: create_lead\n    business_key: is_private", "leadonce.yaml:11: rules[0].business_key: line 1 column 1: it is a bool, want a text or a whole number: make"},
		{"rules:\n", "rules:\n  - {name: hello, action: ignore}\n", "leadonce.yaml:9: rules[1].name: hello stands twice: "},
	} {
		document := strings.Replace(sound, c.old, c.new, 1)
		if document == sound {
			t.Fatalf("%q is not in the document", c.old)
		}
		wantMistake(t, document, c.want)
	}
}

// TestEveryMistakeBeyondTheFile: what a flag or the environment sets, and a
// description in a file of its own.
func TestEveryMistakeBeyondTheFile(t *testing.T) {
	theSecret(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "leadonce.yaml")
	write := func(name, document string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("leadonce.yaml", sound)
	judgeMistake(t, "--workers 0", path, map[string]string{"workers": "0"}, "--workers: workers: 0, give 1 to 1000")
	judgeMistake(t, "--workers x", path, map[string]string{"workers": "[" + canary}, "--workers: ")
	judgeMistake(t, "--workers x", path, map[string]string{"workers": canary}, "--workers: workers: give a whole number")
	judgeMistake(t, "--logging-level", path, map[string]string{"logging.level": "loud"}, `--logging-level: logging.level: "loud" is unknown, give`)
	t.Setenv("LEADONCE_LISTEN", "nowhere")
	judgeMistake(t, "LEADONCE_LISTEN", path, nil, `LEADONCE_LISTEN: listen: "nowhere" is no address; give HOST:PORT`)
	t.Setenv("LEADONCE_LISTEN", "")

	write("leadonce.yaml", strings.Replace(sound, "connector: crmsim", "connector: "+filepath.Join(dir, "acme.yaml"), 1))
	judgeMistake(t, "no description", path, nil, "leadonce.yaml:2: crm.connector: acme.yaml: no such file; give the path of a description, or one of")
	for document, want := range map[string]string{
		"":                                  "acme.yaml: the file is empty; describe the CRM in it as SHAPE.md says",
		strings.Repeat("a: b\n", 2_500_000): "leadonce.yaml:2: crm.connector: acme.yaml: the file has more than",
		strings.Repeat("a: b\n", 20_000):    "acme.yaml: the file has more than 65536 bytes; make it shorter",
		"\x00" + canary:                     "leadonce.yaml:2: crm.connector: acme.yaml:1: this is no text in UTF-8; give",
		"name: [" + canary:                  "acme.yaml:1: ",
		"name: acme\nkey: " + canary:        "acme.yaml:2: key: unknown key; the keys here are",
	} {
		write("acme.yaml", document)
		judgeMistake(t, fmt.Sprintf("%.40q", document), path, nil, want)
	}
	write("acme.yaml", `name: acme
base_url: http://127.0.0.1:1
steps:
  - {name: contact, class: idempotency_key, key_validity: 10s, create: {path: '/c/${key}', outcome: [{when: status == 201, is: created, id: body.id}]}}
  - name: lead
    class: lookup
    settle: 1s
    create: {path: '/l/${key}', outcome: [{when: status == 201, is: created, id: body.id}]}
    lookup: {path: '/l/${key}', outcome: [{when: status == 200, is: found}], items: body, match: item.ref == key, item_id: item.id}
`)
	judgeMistake(t, "a step's key", path, nil, "leadonce.yaml:2: crm.connector: the key_validity of acme/contact is 10s; give more than call_timeout")
	if err := errors.Join(os.Remove(filepath.Join(dir, "acme.yaml")), os.Mkdir(filepath.Join(dir, "acme.yaml"), 0o700)); err != nil {
		t.Fatal(err)
	}
	judgeMistake(t, "a folder", path, nil, "leadonce.yaml:2: crm.connector: acme.yaml: this is a directory; name a file")
}

// TestEveryDurationIsFound: badDuration knows the key of every duration that there is.
func TestEveryDurationIsFound(t *testing.T) {
	keys := durationKeys(reflect.TypeFor[config]())
	if len(keys) < 8 {
		t.Fatalf("the durations are %v", keys)
	}
	for _, key := range keys {
		if found := badDuration([]byte(key + ": soon")); found == nil {
			t.Errorf("a %s that is none is not found", key)
		}
	}
}

func durationKeys(of reflect.Type) (keys []string) {
	if of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(of) {
		switch key := f.Tag.Get("yaml"); {
		case key == "":
		case f.Type == reflect.TypeFor[time.Duration]():
			keys = append(keys, key)
		default:
			keys = append(keys, durationKeys(f.Type)...)
		}
	}
	return keys
}
