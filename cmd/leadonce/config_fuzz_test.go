package main

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// canary is what may stand anywhere in a configuration and in no error. It has
// the form of a secret.
const canary = "c4nary_Tweet-0815"

// onPlace is how every mistake begins: with the file, and with the line where
// there is one, or with the key.
var onPlace = regexp.MustCompile(`^(fuzz\.yaml:[1-9][0-9]*: |fuzz\.yaml: |(listen|data_dir|log|bots|crm|workers|lease|call_timeout|retry|clock_skew|max_backlog|reply|tls|trusted_proxies|logging)(\[[0-9]+\])?(\.[a-z_]+)?(\[[0-9]+\])?(:| is | must ))`)

// FuzzConfig: what is not read is refused in one line that names the place and
// repeats no value. What is read and checked can be served.
func FuzzConfig(f *testing.F) {
	f.Add(sampleConfig, uint16(700))
	const crm = "\ncrm: {connector: crmsim, url: http://h, class: lookup}\n"
	for _, seed := range []string{
		"bots: [{id: 0, secrets: [a]}]" + crm, "bots: [{id: 1, secrets: [a]}, {id: 1, secrets: [b]}]" + crm, "bots: [{id: 1, secrets: [a, b, c]}]" + crm, "bots: [{id: 1}]" + crm,
		"bots: [{id: 1, secrets: [\"${FUZZ_WRONG}\"]}]" + crm, "bots: [{id: 1, secrets: [\"${FUZZ_EMPTY}\"]}]" + crm, "bots: [{id: 1, secrets: [a]}]" + crm + "lease: 24s\n",
		"bots: [{id: 1, secrets: [a]}]" + crm + "clock_skew: -1s\n", "bots: [{id: 1, secrets: [a]}]" + crm + "retry: {first: 9000h, max: 9000h}\n", "", "# nothing yet\n", "}{", "words and nothing else", "listen: 1\n---\nlisten: 2\n", "lisen: 1\n", "bots: [{id: 1, secret: x}]\n",
		"bots: [{id: 1.5, secrets: [x]}]", "bots: [{id: 1, secrets: [0123]}]", "bots: &b\n- id: 1\n  secrets: [*b, !!str x, |-\n", "lease: 60\n", "retry:\n  first: 1s\n  max: soon\n",
		"bots: [{id: 1, secrets: [\"${FUZZ_SECRET}\", ${FUZZ_WRONG}]}]\ncrm: {connector: crmsim, url: 'https://u:p@[::1]:1/?x', class: upsert}\n",
		"bots:\n- {id: 2, secrets: [a, b]}\n- id: 0x10\n  secrets: ['c']\ncrm: {connector: crmsim, url: ${FUZZ_URL}, class: idempotency_key, key_validity: 1h0m, settle: 1ms}\nlease: 25s\nclock_skew: 0s\nretry: {attempts: 1, first: 1ns, max: 1ns}\ntls: {cert_file: a, key_file: b}\ntrusted_proxies: [10.0.0.0/8, 'fe80::/10']\nlogging: {format: json, level: debug}\n",
		"bots: [{id: 1, secrets: [a]}]\ncrm: {connector: crmsim, url: http://h, class: none}\nlog: memory\nlisten: ':0'\nlease: 8760h\nmax_backlog: 1\nworkers: 1000\n",
		"%YAML 1.2\n--- !!map\nlog: !!bool yes\nworkers: !!int '3'\ndata_dir: >2\n  x\ncall_timeout: *t\n? lease\n: 1s\n<<: {log: x}\n", "listen: |x\n  y\n", "log: \"\\q\"\n", "reply: {done: [x]}\n", "bots: [{id: 1, secrets: [a]}]" + crm + "reply:\n  done: \"${user.name}\"\n  within: 0\n",
	} {
		f.Add([]byte(seed), uint16(strings.IndexByte(seed, ' ')+1))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		t.Setenv("FUZZ_SECRET", "plain")
		t.Setenv("FUZZ_WRONG", canary+"!")
		t.Setenv("FUZZ_URL", "ftp://u:"+canary+"@host")
		t.Setenv("FUZZ_EMPTY", "")
		c := defaultConfig()
		err := decodeStrict(document{name: "fuzz.yaml", file: true, data: data}, &c)
		if err == nil {
			err = c.check()
		}
		if err != nil {
			checkMistake(t, data, err)
			if strings.Contains(err.Error(), canary) {
				t.Fatalf("%q is refused with what the environment has: %v", data, err)
			}
			checkSecrecy(t, slices.Insert(slices.Clone(data), int(at)%(len(data)+1), []byte(canary)...))
			return
		}
		if problems := unservable(c); len(problems) > 0 {
			t.Fatalf("%q is accepted, and %s: %+v", data, problems, c)
		}
		checkSecrecy(t, slices.Insert(slices.Clone(data), int(at)%(len(data)+1), []byte(canary)...))
		if err := c.check(); err != nil {
			t.Fatalf("%q is accepted once only: %v", data, err)
		}
	})
}

// checkMistake judges an error.
func checkMistake(t *testing.T, data []byte, err error) {
	t.Helper()
	var m *configError
	switch text := err.Error(); {
	case !errors.As(err, &m):
		t.Fatalf("%q is refused with %v, which is no mistake of a person", data, err)
	case strings.ContainsAny(text, "\n\r") || text != strings.TrimSpace(text) || len(text) > 4*len(data)+300:
		t.Fatalf("%q is refused in more than a line: %q", data, text)
	case !onPlace.MatchString(text):
		t.Fatalf("%q is refused, and no place is named: %q", data, text)
	}
}

// namesKey is of the two mistakes that repeat a key, which need not have a colon.
var namesKey = regexp.MustCompile(`^fuzz\.yaml:[0-9]+: ([^"]*: )?(unknown|the) key "`)

// checkSecrecy is for a document that has the canary somewhere. As the name of a
// key it may be repeated, and check repeats the values of a few keys.
func checkSecrecy(t *testing.T, data []byte) {
	t.Helper()
	for _, tk := range lexer.Tokenize(string(data)) {
		if strings.Contains(tk.Value, canary) && tk.Next != nil && tk.Next.Type == token.MappingValueType {
			return
		}
	}
	c := defaultConfig()
	err := decodeStrict(document{name: "fuzz.yaml", file: true, data: data}, &c)
	if err == nil {
		repeated := append([]string{c.Listen, c.Log, c.CRM.Connector, c.CRM.Class, c.Logging.Format, c.Logging.Level}, c.TrustedProxies...)
		if strings.Contains(strings.Join(repeated, " "), canary) {
			return
		}
		err = c.check()
	}
	if err != nil && !namesKey.MatchString(err.Error()) && strings.Contains(err.Error(), canary) {
		t.Fatalf("%q is refused with a value that could be a secret: %v", data, err)
	}
}

var (
	plainSecret = regexp.MustCompile(`^[-_A-Za-z0-9]{1,256}$`)
	plainLevel  = regexp.MustCompile(`^(?i:debug|info|warn|error)([-+][0-9]+)?$`)
)

// unservable says what an accepted configuration may not have, by the comments of
// the file that init writes.
func unservable(c config) []string {
	var problems []string
	demand := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	colon := strings.LastIndexByte(c.Listen, ':')
	port, err := strconv.Atoi(c.Listen[colon+1:])
	demand(colon >= 0 && err == nil && port >= 0 && port < 1<<16, "listen has no port")
	demand(c.DataDir != "" && (c.Log == "sqlite" || c.Log == "memory"), "there is no log")
	demand(len(c.Bots) > 0, "there is no bot")
	ids := map[int64]bool{}
	for _, b := range c.Bots {
		demand(b.ID > 0 && !ids[b.ID], "a bot's id is none or stands twice")
		ids[b.ID] = true
		demand(len(b.Secrets) == 1 || len(b.Secrets) == 2, "a bot has no secret, or too many")
		demand(!slices.ContainsFunc(b.Secrets, func(s string) bool { return !plainSecret.MatchString(s) }), "Telegram would not take the secret")
	}
	address, err := url.Parse(c.CRM.URL)
	demand(err == nil && address.Host != "" && (address.Scheme == "http" || address.Scheme == "https"), "crm.url is no address")
	demand(slices.Contains([]string{"idempotency_key", "upsert", "unique_create", "lookup", "none"}, c.CRM.Class), "the class is unknown")
	demand(c.CRM.Settle > 0, "a lookup would be believed at once")
	demand(c.CRM.Class != "idempotency_key" || c.CRM.KeyValidity > c.CallTimeout+c.CRM.Settle+c.ClockSkew, "no request could be repeated")
	demand(c.CallTimeout > 0 && c.Lease >= c.CallTimeout+c.CallTimeout/4, "a request can outlive its lease")
	demand(c.Retry.First > 0 && c.Retry.Max >= c.Retry.First && c.Retry.Attempts > 0, "the waits are none")
	for _, d := range []time.Duration{c.CRM.Settle, c.CRM.KeyValidity, c.Lease, c.CallTimeout, c.Retry.First, c.Retry.Max, c.ClockSkew} {
		demand(d >= 0 && d <= 366*24*time.Hour, "a duration is negative, or years")
	}
	demand(c.Workers > 0 && c.Workers <= 1000 && c.MaxBacklog > 0, "nobody works, or nothing is taken")
	demand((c.TLS.CertFile != "") == (c.TLS.KeyFile != ""), "half of TLS is there")
	for _, p := range c.TrustedProxies {
		_, err := netip.ParsePrefix(p)
		demand(err == nil, "a proxy is no network")
	}
	demand((c.Logging.Format == "text" || c.Logging.Format == "json") && plainLevel.MatchString(c.Logging.Level), "nothing can be logged")
	return problems
}
