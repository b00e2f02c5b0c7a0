package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/leadonce/leadonce/engine/job"
)

// env is what expressions see of an update. It has no methods: they would be
// functions of the language.
type env struct {
	Update    any     `expr:"update"` // the whole, decoded; whole numbers of 64 bits are exact
	Kind      string  `expr:"kind"`
	Bot       int64   `expr:"bot"`
	Chat      chat    `expr:"chat"`
	User      user    `expr:"user"`
	Contact   contact `expr:"contact"`
	MessageID int64   `expr:"message_id"` // of the message, or of the one with the button
	Text      string  `expr:"text"`       // or the caption
	Caption   string  `expr:"caption"`
	Command   string  `expr:"command"` // in small letters, without / and @bot
	Args      string  `expr:"args"`    // behind the command
	Payload   string  `expr:"payload"` // of /start: what a deep link carries
	Album     string  `expr:"album"`   // media_group_id
	Data      string  `expr:"data"`    // of a pressed button
	Forwarded bool    `expr:"forwarded"`

	IsPrivate   bool `expr:"is_private"`
	HasPhoto    bool `expr:"has_photo"`
	HasVoice    bool `expr:"has_voice"`
	HasDocument bool `expr:"has_document"`
	HasContact  bool `expr:"has_contact"`

	CRMID string `expr:"crm_id"` // of the lead; in replies only, see guard

	message json.RawMessage // as it came; nil when the update is none
	sent    int64           // Unix seconds; 0 when the update does not say
}

type chat struct {
	ID       int64  `expr:"id"`
	Origin   int64  `expr:"origin"` // its id before the group became a supergroup, or its id
	Type     string `expr:"type"`
	Title    string `expr:"title"`
	Username string `expr:"username"`
}

type user struct {
	ID        int64  `expr:"id"`
	Name      string `expr:"name"` // first and last
	FirstName string `expr:"first_name"`
	LastName  string `expr:"last_name"`
	Username  string `expr:"username"`
	Language  string `expr:"language"`
	IsBot     bool   `expr:"is_bot"`
}

type contact struct {
	Phone     string `expr:"phone"`
	Name      string `expr:"name"` // first and last
	FirstName string `expr:"first_name"`
	LastName  string `expr:"last_name"`
	UserID    int64  `expr:"user_id"` // 0 when it is nobody on Telegram
	Own       bool   `expr:"own"`     // the sender's, and not another's who was shared
}

// messageKinds are those whose content is a Message; edits ask for no lead.
var messageKinds = map[string]bool{"message": true, "channel_post": true, "business_message": true, "guest_message": true}

// errNoUpdate is of an update that ParseUpdate would not have taken.
var errNoUpdate = errors.New("no JSON object")

// read decodes an update. What is not where the Bot API has it, or of another type,
// is left out.
func read(u job.Update) (*env, error) {
	e := &env{Kind: u.Kind, Bot: u.Bot}
	top, ok := decode(u.Raw).(map[string]any)
	if !ok {
		return nil, errNoUpdate
	}
	e.Update = top
	content := object(top, u.Kind)
	pressed := object(content, "message") // of a callback query
	e.readChat(u, object(content, "chat"), object(pressed, "chat"))
	e.readUser(u, object(content, "from"), object(content, "user"))
	e.MessageID = whole(content, "message_id")
	if e.MessageID == 0 {
		e.MessageID = whole(pressed, "message_id")
	}
	e.Data, e.sent = word(content, "data"), whole(content, "date")
	if messageKinds[u.Kind] || strings.HasPrefix(u.Kind, editPrefix) {
		e.readMessage(content)
	}
	if messageKinds[u.Kind] {
		var raw map[string]json.RawMessage
		if json.Unmarshal(u.Raw, &raw) == nil {
			e.message = raw[u.Kind]
		}
	}
	return e, nil
}

func (e *env) readChat(u job.Update, own, pressed map[string]any) {
	m := own
	if m == nil {
		m = pressed
	}
	origin := u.Origin
	if origin == 0 {
		origin = u.Chat
	}
	e.Chat = chat{u.Chat, origin, word(m, "type"), word(m, "title"), word(m, "username")}
	// The Bot API always says the type. The ids of groups and channels are negative.
	e.IsPrivate = e.Chat.Type == "private" || e.Chat.Type == "" && e.Chat.ID > 0
}

func (e *env) readUser(u job.Update, from, other map[string]any) {
	m := from
	if m == nil {
		m = other
	}
	e.User = user{
		ID: u.User, FirstName: word(m, "first_name"), LastName: word(m, "last_name"),
		Username: word(m, "username"), Language: word(m, "language_code"),
	}
	e.User.Name = strings.TrimSpace(e.User.FirstName + " " + e.User.LastName)
	e.User.IsBot, _ = m["is_bot"].(bool)
}

func (e *env) readMessage(m map[string]any) {
	text := word(m, "text")
	e.Caption, e.Album = word(m, "caption"), word(m, "media_group_id")
	e.Text = text + e.Caption // a message has one of them at most
	e.Command, e.Args = job.Command(text)
	if e.Command == "start" {
		e.Payload = e.Args
	}
	e.Forwarded = m["forward_origin"] != nil || m["forward_date"] != nil
	photos, _ := m["photo"].([]any)
	e.HasPhoto = len(photos) > 0
	e.HasVoice, e.HasDocument = object(m, "voice") != nil, object(m, "document") != nil
	if c := object(m, "contact"); c != nil {
		e.HasContact = true
		e.Contact = contact{
			Phone: word(c, "phone_number"), FirstName: word(c, "first_name"), LastName: word(c, "last_name"),
			UserID: whole(c, "user_id"),
		}
		e.Contact.Name = strings.TrimSpace(e.Contact.FirstName + " " + e.Contact.LastName)
		e.Contact.Own = e.Contact.UserID != 0 && e.Contact.UserID == e.User.ID
	}
}

func object(m map[string]any, name string) map[string]any {
	o, _ := m[name].(map[string]any)
	return o
}

func word(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func whole(m map[string]any, name string) int64 {
	n, _ := m[name].(int64)
	return n
}

// decode reads one JSON document; nil when it is none.
func decode(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	return numbered(v)
}

// numbered puts int64 and float64 where the document has numbers.
func numbered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = numbered(member)
		}
	case []any:
		for i, element := range v {
			v[i] = numbered(element)
		}
	case json.Number:
		return number(v.String())
	}
	return v
}

// number is one value for every spelling of a number: 5, 5.0 and 50e-1 are int64.
func number(literal string) any {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(literal, 64)
	const longest = 400 // digits whose exact value is worth knowing
	if err != nil || math.Abs(f) >= 1<<63 || f != math.Trunc(f) && f != 0 || len(literal) > longest {
		return f
	}
	if f == 0 {
		return int64(0)
	}
	if r, ok := new(big.Rat).SetString(literal); ok && r.IsInt() && r.Num().IsInt64() {
		return r.Num().Int64()
	}
	return f
}
