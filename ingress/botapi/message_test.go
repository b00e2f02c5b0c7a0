package botapi_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
)

func TestAMessageIsSentOnceAsItStands(t *testing.T) {
	api, client := newAPI(t, botapitest.Options{})
	for i, m := range []botapi.Message{
		{Chat: 5, Text: "*plain* <b>text</b> & \u2028 😀", ReplyTo: 9}, {Chat: -1002000000001, Text: "to a group"},
	} {
		id, err := client.SendMessage(t.Context(), m)
		must(t, err)
		sent := api.Messages()
		if want := (botapitest.Sent{ID: id, Chat: m.Chat, Text: m.Text, ReplyTo: m.ReplyTo}); len(sent) != i+1 || id == 0 || sent[i] != want {
			t.Fatalf("sent are %+v, want %+v", sent, want)
		}
	}
}

// A text is cut between characters, not within one of two units.
func TestALongTextIsCut(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{strings.Repeat("a", 4096), strings.Repeat("a", 4096)},
		{strings.Repeat("é", 5000), strings.Repeat("é", 4096)},
		{strings.Repeat("😀", 3000), strings.Repeat("😀", 2048)},
		{"a" + strings.Repeat("😀", 3000), "a" + strings.Repeat("😀", 2047)},
	} {
		api, client := newAPI(t, botapitest.Options{})
		_, err := client.SendMessage(t.Context(), botapi.Message{Chat: 5, Text: c.text})
		must(t, err)
		if sent := api.Messages(); len(sent) != 1 || sent[0].Text != c.want {
			t.Errorf("%d bytes are cut to %d, want %d", len(c.text), len(sent[0].Text), len(c.want))
		}
	}
}

// What an error proves: with each, the messages that are there in the end.
func TestWhatAnErrorOfAMessageProves(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed.Close()
	api, client := newAPI(t, botapitest.Options{})
	for name, c := range map[string]struct {
		fault              botapitest.Fault
		notDone, temporary bool
	}{
		"blocked":              {botapitest.Refused(403, "Forbidden: bot was blocked by the user"), true, false},
		"bad request":          {botapitest.Refused(400, "Bad Request: chat not found"), true, false},
		"token revoked":        {botapitest.Refused(401, "Unauthorized"), true, false},
		"too many requests":    {botapitest.Fault{RetryAfter: 3}, true, true},
		"restart":              {botapitest.Refused(500, "Internal Server Error: restart"), false, false},
		"code of another":      {botapitest.Fault{Status: 502, Body: `{"ok":false,"error_code":400,"description":"x"}`}, false, false},
		"a page":               {botapitest.Fault{Status: 403, Body: "<html>"}, false, false},
		"a page of too many":   {botapitest.Fault{Status: 429, Body: "<html>"}, false, false},
		"dropped":              {botapitest.Fault{Drop: true}, false, false},
		"cut":                  {botapitest.Fault{Cut: true}, false, false},
		"a page, and done":     {botapitest.Fault{Late: 502, Body: "<html>"}, false, false},
		"done, without its id": {botapitest.Fault{Late: 200, Body: `{"ok":true,"result":{}}`}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			api.Fail("sendMessage", c.fault)
			before, calls := len(api.Messages()), api.Calls("sendMessage")
			_, err := client.SendMessage(t.Context(), botapi.Message{Chat: 5, Text: "hello"})
			if err == nil || botapi.NotDone(err) != c.notDone || botapi.Temporary(err) != c.temporary {
				t.Errorf("%v: not done %t, temporary %t; want %t, %t", err, botapi.NotDone(err), botapi.Temporary(err), c.notDone, c.temporary)
			}
			if got := len(api.Messages()) - before; c.notDone && got != 0 {
				t.Errorf("proven without effect, and %d messages are there", got)
			}
			if got := api.Calls("sendMessage") - calls; got != 1 {
				t.Errorf("%d requests left, want 1", got) // also over a connection that was in use before
			}
		})
	}
	_, err = newClient(t, botapi.Config{BaseURL: "http://" + closed.Addr().String()}).SendMessage(t.Context(), botapi.Message{Chat: 5, Text: "hello"})
	if !botapi.NotDone(err) || !botapi.Temporary(err) {
		t.Errorf("nobody listens: %v", err)
	}
	api.Fail("sendMessage", botapitest.Fault{Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = client.SendMessage(ctx, botapi.Message{Chat: 5, Text: "hello"}); err == nil || botapi.NotDone(err) {
		t.Errorf("no answer in time: %v", err)
	}
	if botapi.NotDone(errors.New("any")) || botapi.Temporary(errors.New("any")) {
		t.Error("any error proves something")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
