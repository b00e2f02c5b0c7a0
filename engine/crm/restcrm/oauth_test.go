package restcrm_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

const refreshing = `auth:
  type: oauth2
  grant: refresh_token
  token_url: https://accounts.example/oauth/token
  client_id: client-1
  client_secret: ${env:CLIENT_SECRET}
  refresh_token: ${env:REFRESH_TOKEN}
  form: {redirect_uri: 'https://us.example'}
`

// ledger is a store that notes what was sent when it was written.
type ledger struct {
	inner  restcrm.Store
	crm    *scripted
	broken bool
	sentAt []int // requests that had left at each Save
}

func (l *ledger) Load(name string) ([]byte, error) { return l.inner.Load(name) }

func (l *ledger) Save(name string, value []byte) error {
	if l.broken {
		return errors.New("the disk is full")
	}
	l.sentAt = append(l.sentAt, l.crm.count())
	return l.inner.Save(name, value)
}

type account struct {
	*restcrm.Connector
	*wall
	*scripted
	store *ledger
}

func newAccount(t *testing.T, dir, first string, answers ...any) account {
	a := account{wall: &wall{}, scripted: &scripted{answers: answers}}
	a.store = &ledger{inner: restcrm.FileStore{Dir: dir}, crm: a.scripted}
	a.Connector = open(t, plain(refreshing), restcrm.Config{
		Sender: a.scripted, Now: a.Now, Sleep: a.Sleep, Store: a.store,
		Secrets: func(name string) (string, bool) {
			return map[string]string{"CLIENT_SECRET": secret, "REFRESH_TOKEN": first}[name], true
		},
	})
	return a
}

func (a account) create(t *testing.T) error {
	_, err := a.Create(t.Context(), crm.Operation{ID: "op-1", Deadline: a.in(10 * time.Second)})
	return err
}

func grant(access, refresh string) any {
	return answer(200, `{"access_token":"`+access+`","refresh_token":"`+refresh+`","expires_in":3600}`)
}

// sent is what left: the refresh token of token requests, the header of others.
func (a account) order() string {
	var order []string
	for _, r := range a.sent {
		if r.URL.Host == "accounts.example" {
			form, _ := url.ParseQuery(string(r.Body))
			order = append(order, form.Get("grant_type")+"="+form.Get("refresh_token"))
			continue
		}
		order = append(order, r.Header.Get("Authorization"))
	}
	return strings.Join(order, ", ")
}

func wantOrder(t *testing.T, a account, want string) {
	t.Helper()
	if got := a.order(); got != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
}

// TestRefreshTokenIsStoredBeforeItIsUsed, and outlives the process.
func TestRefreshTokenIsStoredBeforeItIsUsed(t *testing.T) {
	dir := t.TempDir()
	a := newAccount(t, dir, "R0", grant("A1", "R1"), done, grant("A2", "R2"), done)
	if err := a.create(t); err != nil {
		t.Fatal(err)
	}
	a.pass(time.Hour)
	if err := a.create(t); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, a, "refresh_token=R0, Bearer A1, refresh_token=R1, Bearer A2")
	if len(a.store.sentAt) != 2 || a.store.sentAt[0] != 1 || a.store.sentAt[1] != 3 {
		t.Errorf("stored when %v requests had left, want 1 and 3", a.store.sentAt)
	}
	again := newAccount(t, dir, "R0", done, answer(401, ""), grant("A3", "R3"), done)
	again.pass(time.Hour)
	if err := again.create(t); err != nil { // with the access token that is still good
		t.Fatal(err)
	}
	wantOutcome(t, again.create(t), crm.NotApplied, "HTTP 401 unauthorized")
	again.pass(time.Second)
	if err := again.create(t); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, again, "Bearer A2, Bearer A2, refresh_token=R2, Bearer A3")
	anew := newAccount(t, dir, "Z0", grant("A4", ""), done)
	if err := anew.create(t); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, anew, "refresh_token=Z0, Bearer A4") // a person authorized anew
	anew = newAccount(t, dir, "Z0", grant("A5", ""), done)
	anew.pass(2 * time.Hour)
	if err := anew.create(t); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, anew, "refresh_token=Z0, Bearer A5") // it was not exchanged
}

// TestTokenThatCannotBeStoredIsNotUsed, nor forgotten.
func TestTokenThatCannotBeStoredIsNotUsed(t *testing.T) {
	a := newAccount(t, t.TempDir(), "R0", grant("A1", "R1"), done)
	a.store.broken = true
	for range 3 {
		wantOutcome(t, a.create(t), crm.NotSent, "the new refresh token cannot be stored, so it is not used")
	}
	wantOrder(t, a, "refresh_token=R0")
	a.store.broken = false
	if err := a.create(t); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, a, "refresh_token=R0, Bearer A1")
}

// late is a store that another process writes to after it was read once.
type late struct {
	restcrm.Store
	loads int
}

func (l *late) Load(name string) ([]byte, error) {
	l.loads++
	if l.loads == 1 {
		return nil, nil
	}
	return l.Store.Load(name)
}

// TestAnotherProcessRefreshed: its access token is used; and when it used up the
// refresh token in the same moment, the one that it got is tried.
func TestAnotherProcessRefreshed(t *testing.T) {
	dir := t.TempDir()
	first := newAccount(t, dir, "R0", grant("A1", "R1"), done)
	if err := first.create(t); err != nil {
		t.Fatal(err)
	}
	second := newAccount(t, dir, "R0", done)
	if err := second.create(t); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, second, "Bearer A1")
	third := newAccount(t, dir, "R0", answer(400, `{"error":"invalid_grant"}`), grant("A2", "R2"), done)
	third.store.inner = &late{Store: third.store.inner}
	if err := third.create(t); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, third, "refresh_token=R0, refresh_token=R1, Bearer A2")
}

// TestTokenRefused: nothing of the create has left, and only codes of the
// standard are told.
func TestTokenRefused(t *testing.T) {
	for body, reason := range map[string]string{
		`{"error":"invalid_grant","error_description":"` + secret + `"}`: "no access token was granted: HTTP 400 invalid_grant",
		`{"error":"` + secret + `"}`:                                     "no access token was granted: HTTP 400",
		`<html>`:                                                         "no access token was granted: HTTP 400",
	} {
		a := newAccount(t, t.TempDir(), "R0", answer(400, body))
		wantOutcome(t, a.create(t), crm.NotSent, reason)
		wantOrder(t, a, "refresh_token=R0")
	}
}

// TestClientCredentials are sent in the body or as basic authentication.
func TestClientCredentials(t *testing.T) {
	for client, want := range map[string]string{
		"body":  "client_id=c+1&client_secret=" + secret + "&grant_type=client_credentials&scope=all | ",
		"basic": "grant_type=client_credentials&scope=all | Basic YysxOmh1bnRlcjItb2YtdGhlLXZlbmRvcg==",
	} {
		s := &scripted{answers: []any{answer(200, `{"access_token":"A1"}`), done}}
		auth := "auth: {type: oauth2, grant: client_credentials, client: " + client + ", token_url: /token, client_id: c 1, client_secret: '${env:PASSWORD}', scope: all, value: 'Zoho ${token}'}"
		c := open(t, plain(auth), restcrm.Config{Sender: s, Secrets: passwordOnly})
		for range 2 {
			if _, err := c.Create(t.Context(), operation("op-1", nil)); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(s.sent[0].Body) + " | " + s.sent[0].Header.Get("Authorization"); got != want || s.sent[0].URL.String() != "http://crm.example/api/token" {
			t.Errorf("%s: %s to %s", client, got, s.sent[0].URL)
		}
		if s.count() != 3 || s.sent[2].Header.Get("Authorization") != "Zoho A1" {
			t.Errorf("%d requests, the last with %q", s.count(), s.sent[2].Header.Get("Authorization"))
		}
	}
}

// TestFileStore: a file of the owner's alone, replaced as a whole.
func TestFileStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tokens")
	store := restcrm.FileStore{Dir: dir}
	if value, err := store.Load("acme"); value != nil || err != nil {
		t.Fatalf("%q, %v", value, err)
	}
	for _, value := range []string{"one", "two"} {
		if err := store.Save("acme", []byte(value)); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Load("acme"); string(got) != value || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v: a file was left behind", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	occupied := restcrm.FileStore{Dir: filepath.Join(dir, entries[0].Name())}
	if err := occupied.Save("acme", []byte(secret)); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("in a folder that is none: %v", err)
	}
}
