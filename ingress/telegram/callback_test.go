package telegram_test

import (
	"context"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// Whoever pressed a button does not wait for the lead: the answer to the delivery
// answers the button too, and only then.
func TestButtonIsAnsweredOnceItIsStored(t *testing.T) {
	log := &hookedLog{Log: memory.New()}
	s := newScene(t, setup{log: log})
	s.wantBody("", s.deliver(message(1, text)))
	log.set(func(context.Context, string) error { return eventlog.ErrUnavailable }, nil)
	refused := s.deliver(callback(2))
	s.want(503, refused)
	if strings.Contains(refused.body, "answerCallbackQuery") {
		t.Error("a button is answered that is not stored")
	}
	log.set(nil, nil)
	s.wantBody(buttonAnswered, s.deliver(callback(2)))
	s.wantBody(buttonAnswered, s.deliver(callback(2)))                                                 // a duplicate: Telegram may have missed the first answer
	s.wantBody(buttonAnswered, s.deliver(strings.Replace(callback(2), `"data":"`, `"data":"more`, 1))) // another one under its id
	s.wantResults(telegram.Stored, telegram.Unavailable, telegram.Stored, telegram.Duplicate, telegram.Conflicted)
	refused = s.post(bot, "canary-Secret_wrong", callback(3))
	s.want(401, refused)
	if strings.Contains(refused.body, "88") {
		t.Error("a button is answered to a stranger")
	}
}

// T47: a callback without a chat, without data, of an old message is answered too;
// one without an id that Telegram would give is stored and not answered.
func TestT47_OddCallbacks(t *testing.T) {
	s := newScene(t, setup{})
	for _, c := range []struct{ body, want string }{
		{`{"update_id":1,"callback_query":{"id":"88","message":{"message_id":3,"date":0,"chat":{"id":5}}}}`, buttonAnswered},
		{`{"update_id":2,"callback_query":{"id":"88","inline_message_id":"x","data":"y"}}`, buttonAnswered},
		{`{"callback_query":{"id":"88"},"update_id":3}`, buttonAnswered},
		{`{"update_id":4,"callback_query":{"id":"\u0038\u0038"}}`, buttonAnswered},
		{`{"update_id":5,"callback_query":{}}`, ""},
		{`{"update_id":6,"callback_query":{"id":88}}`, ""},
		{`{"update_id":7,"callback_query":"88"}`, ""},
		{`{"update_id":8,"callback_query":{"id":""}}`, ""},
		{`{"update_id":9,"callback_query":{"id":"88\",\"method\":\"sendMessage"}}`, ""},
		{`{"update_id":10,"callback_query":{"id":"` + strings.Repeat("8", 65) + `"}}`, ""},
		{`{"update_id":11,"message":{"id":"88"},"callback_query":null}`, ""},
		{`{"update_id":12,"message":{"id":"88","text":"callback_query"}}`, ""},
		{`{"update_id":13,"callback_query":{"id":"88"},"hologram":{}}`, buttonAnswered},
		{`{"update_id":14,"message":{},"callback_query":{"id":"88"}}`, ""}, // a message, as far as anyone can tell
	} {
		t.Run(c.body, func(t *testing.T) { s.wantBody(c.want, s.deliver(c.body)) })
	}
	s.wantStreams(14)
}

func (s *scene) wantBody(want string, got response) {
	s.Helper()
	s.want(200, got)
	if got.body != want {
		s.Errorf("a 200 has the body %q, want %q", got.body, want)
	}
}
