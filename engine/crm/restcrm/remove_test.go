package restcrm_test

import (
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

func TestRemove(t *testing.T) {
	const rules = "remove: {method: POST, path: /rpc, body: {id: {$: int(id)}}, outcome: [{when: 'status == 200 && body.error == nil', is: removed}, {when: status == 429, is: not_applied}, {when: status == 401, is: unauthorized, reason: login}]}"
	for name, c := range map[string]struct {
		remove string
		answer any
		want   string // the error; "" for removed
	}{
		"2xx":              {"remove: {path: '/leads/${id}'}", answer(204, ""), ""},
		"gone":             {"remove: {path: '/leads/${id}'}", answer(404, ""), "unknown: HTTP 404 meets no rule"},
		"a rule":           {rules, answer(200, `{"result":1}`), ""},
		"an error inside":  {rules, answer(200, `{"error":1}`), "unknown: HTTP 200 meets no rule"},
		"no time":          {rules, answer(429, ``), "not applied: HTTP 429 not_applied"},
		"no session":       {rules, answer(401, ``), "not applied: HTTP 401 login"},
		"nobody there":     {rules, &crm.Error{Outcome: crm.NotSent, Reason: "refused"}, "not sent: refused"},
		"not in this file": {"", done, "not sent: the file has no remove"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{answers: []any{c.answer}}
			connector := open(t, plain(c.remove), restcrm.Config{Sender: s})
			got := ""
			if err := connector.Remove(t.Context(), "17", soon()); err != nil {
				got = err.Error()
			}
			if got != c.want || connector.CanRemove() != (c.remove != "") {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.remove == rules && (s.sent[0].Method != "POST" || string(s.sent[0].Body) != `{"id":17}`) {
				t.Errorf("sent %s %s", s.sent[0].Method, s.sent[0].Body)
			}
			if strings.Contains(c.remove, "${id}") && (s.sent[0].Method != "DELETE" || s.sent[0].URL.Path != "/api/leads/17") {
				t.Errorf("sent %s %s", s.sent[0].Method, s.sent[0].URL)
			}
		})
	}
}

func TestRemoveMistakes(t *testing.T) {
	for remove, want := range map[string]string{
		"remove: {path: /leads}": "acme.yaml:4: remove: the request does not say ${id}; name the lead that is removed",
		"remove: {path: '/leads/${id}', outcome: [{when: 'true', is: created}]}": "give one of removed, not_applied, unauthorized",
		"remove: {path: '/leads/${key}'}":                                        "the names here are vars, id, class, absent",
		"remove: {path: '/leads/${id}', method: TRACE}":                          "give one of DELETE, GET, POST, PUT, PATCH",
	} {
		_, err := restcrm.Load("acme.yaml", []byte(plain(remove)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", remove, err, want)
		}
	}
	document := strings.Replace(plain(""), "  path: /leads/${key}", "  path: /leads/${key}\n  method: DELETE", 1)
	if _, err := restcrm.Load("acme.yaml", []byte(document)); err == nil || !strings.Contains(err.Error(), "give one of GET, POST, PUT, PATCH") {
		t.Errorf("a create by DELETE: %v", err)
	}
}

// TestDigest: what can change the promise changes the digest, and nothing else does.
func TestDigest(t *testing.T) {
	document := plain("classes: [lookup]\nsettle: 30s\nvars: {pipeline: '7', colour: red, api_token: '${env:A}', hidden: '${env:B}'}\n" +
		"lookup: {path: '/leads', query: {q: '${key}'}, outcome: [{when: 'true', is: found}], items: body.x, match: item.k == key, item_id: item.id}")
	base := restcrm.Config{Secrets: func(name string) (string, bool) { return "secret of " + name, true }}
	digest := func(document string, change func(*restcrm.Config)) string {
		t.Helper()
		c := base
		if change != nil {
			change(&c)
		}
		return open(t, document, c).Digest()
	}
	is := digest(document, nil)
	for name, same := range map[string]string{
		"a comment": digest("# about it\n"+document, nil),
		"the host":  digest(document, func(c *restcrm.Config) { c.BaseURL = "http://u:p@elsewhere.example/api/" }),
		"a secret": digest(document, func(c *restcrm.Config) {
			c.Secrets = func(string) (string, bool) { return "another", true }
		}),
		"a secret that is given": digest(document, func(c *restcrm.Config) { c.Vars = map[string]string{"api_token": "x", "hidden": "y"} }),
		"what is the default":    digest(document, func(c *restcrm.Config) { c.Class, c.Settle = crm.None, 30e9 }),
	} {
		if same != is {
			t.Errorf("%s changes the digest", name)
		}
	}
	seen := map[string]string{is: "the original"}
	for name, other := range map[string]string{
		"the class":          digest(document, func(c *restcrm.Config) { c.Class = crm.Lookup }),
		"the settle time":    digest(document, func(c *restcrm.Config) { c.Settle = 1e9 }),
		"a variable":         digest(document, func(c *restcrm.Config) { c.Vars = map[string]string{"colour": "blue"} }),
		"the address's path": digest(document, func(c *restcrm.Config) { c.BaseURL = "http://elsewhere.example/sandbox" }),
		"another one":        digest(document, func(c *restcrm.Config) { c.Vars = map[string]string{"pipeline": "8"} }),
		"a rule":             digest(strings.Replace(document, "status == 422", "status == 423", 1), nil),
		"the file's time":    digest(strings.Replace(document, "settle: 30s", "settle: 31s", 1), nil),
	} {
		if seen[other] != "" {
			t.Errorf("%s has the digest of %s", name, seen[other])
		}
		seen[other] = name
	}
}
