package botapitest

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// Sent is a message that a person has got.
type Sent struct {
	ID      int64 // message_id
	Chat    int64
	Text    string
	ReplyTo int64 // message_id; 0 for none
}

// maxText is in UTF-16 code units.
const maxText = 4096

func (s *Server) sendMessage(a arguments) result {
	switch text := strings.TrimSpace(a.Text); {
	case a.ChatID == 0:
		return refusal(http.StatusBadRequest, "Bad Request: chat_id is empty")
	case text == "":
		return refusal(http.StatusBadRequest, "Bad Request: message text is empty")
	case len(utf16.Encode([]rune(a.Text))) > maxText:
		return refusal(http.StatusBadRequest, "Bad Request: message is too long")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := Sent{int64(len(s.sent)) + 1, a.ChatID, a.Text, a.Reply.MessageID}
	s.sent = append(s.sent, m)
	return result{value: map[string]any{
		"message_id": m.ID, "date": time.Now().Unix(), "chat": map[string]any{"id": m.Chat, "type": "private"}, "text": m.Text,
	}}
}

// Messages are those that were sent, the oldest first.
func (s *Server) Messages() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}
