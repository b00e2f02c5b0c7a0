package job

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Plan is what an update asks for.
type Plan struct {
	Effect      bool
	Reason      string // why there is no effect
	Undecodable string // why the update cannot be understood

	Action      string
	BusinessKey string
	Fields      map[string]string // of the lead

	// Series is the series that the update is of, in place of the business key.
	Series Series

	// Defer is how long after its acceptance the job lets others of the same
	// operation go first, because they may know more.
	Defer time.Duration
}

// Planner says what an update asks for. It is pure: the same update gives the
// same plan in every process.
type Planner func(Key, Update) Plan

// CreateLead is the action of every lead.
const CreateLead = "create_lead"

// AsUpdate is the update that the job holds.
func (s State) AsUpdate() Update {
	return Update{
		Bot: s.Key.Bot, ID: s.Key.Update, Kind: s.Kind, Chat: s.Chat, User: s.User,
		Fingerprint: s.Fingerprint, Raw: []byte(s.Update),
	}
}

// DefaultPlan asks for a lead for a new message in a private chat with text, caption,
// contact, photo, document or voice, and for nothing otherwise. A command asks for one
// only as /start with what a deep link carries.
func DefaultPlan(key Key, u Update) Plan {
	if u.Kind != "message" {
		return Plan{Reason: fmt.Sprintf("an update of kind %s asks for no lead", u.Kind)}
	}
	m, err := decodeMessage(u)
	if err != nil {
		return Plan{Undecodable: err.Error()}
	}
	command, args := Command(m.Text)
	switch {
	case !m.asksForLead():
		return Plan{Reason: "a message without text, caption, contact, photo, document or voice asks for no lead"}
	case !m.private(u):
		return Plan{Reason: "a message in a chat that is not private asks for no lead"}
	case command != "" && (command != "start" || args == ""):
		return Plan{Reason: "a command asks for no lead, but /start with a payload"}
	}
	plan := Plan{Effect: true, Action: CreateLead, BusinessKey: m.businessKey(key, u), Fields: m.fields(u)}
	if m.MediaGroupID != "" && m.Caption == "" {
		plan.Defer = AlbumDefer
	}
	return plan
}

// DefaultFields are those of a lead made of a message, wherever it was sent; none when
// it has nothing to say.
func DefaultFields(u Update) map[string]string {
	m, err := decodeMessage(u)
	if err != nil || !m.asksForLead() {
		return nil
	}
	return m.fields(u)
}

// private: the Bot API always gives the type, and the ids of groups and channels are
// negative. An enquiry is not lost because its chat has an odd shape.
func (m message) private(u Update) bool {
	return m.Chat.Type == "private" || m.Chat.Type == "" && u.Chat >= 0
}

// commandForm is what Telegram's clients show as a command at the start of a text.
var commandForm = regexp.MustCompile(`^/([A-Za-z0-9_]{1,64})(?:@[A-Za-z0-9_]{3,32})?((?:[^A-Za-z0-9_/<>@][\s\S]*)?)$`)

// Command is the command that a text begins with, in small letters and without / and
// @bot, and what follows it; empty when it is none.
func Command(text string) (name, args string) {
	if !strings.HasPrefix(text, "/") {
		return "", ""
	}
	m := commandForm.FindStringSubmatch(text)
	if m == nil {
		return "", ""
	}
	return strings.ToLower(m[1]), strings.TrimSpace(m[2])
}

// AlbumDefer is how long the members of an album without a caption wait for the
// one that has it. Telegram delivers an album within a second or so.
const AlbumDefer = 5 * time.Second

// message is what a lead needs of https://core.telegram.org/bots/api#message.
type message struct {
	MessageID    int64    `json:"message_id"`
	Date         int64    `json:"date"` // Unix seconds
	MediaGroupID string   `json:"media_group_id"`
	Text         string   `json:"text"`
	Caption      string   `json:"caption"`
	Contact      *contact `json:"contact"`
	Photo        []file   `json:"photo"`
	Document     *file    `json:"document"`
	Voice        *file    `json:"voice"`
	From         *person  `json:"from"`
	Chat         struct {
		Type string `json:"type"`
	} `json:"chat"`
}

type contact struct {
	PhoneNumber string `json:"phone_number"`
	FirstName   string `json:"first_name"`
	LastName    string `json:"last_name"`
	UserID      int64  `json:"user_id"`
}

type file struct {
	FileID string `json:"file_id"`
}

type person struct {
	ID        int64  `json:"id"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
	Language  string `json:"language_code"`
}

func decodeMessage(u Update) (message, error) {
	var update struct {
		Message *message `json:"message"`
	}
	err := json.Unmarshal(u.Raw, &update)
	if update.Message != nil && update.Message.asksForLead() {
		return *update.Message, nil // a member of an odd type is left out; the enquiry is there
	}
	if err != nil {
		return message{}, fmt.Errorf("message: %w", shapeError(err))
	}
	if update.Message == nil {
		return message{}, fmt.Errorf("message: null")
	}
	return *update.Message, nil
}

// shapeError tells where a document has the wrong shape without repeating what
// a person wrote in it.
func shapeError(err error) error {
	if t, ok := err.(*json.UnmarshalTypeError); ok {
		return fmt.Errorf("%s is a %s", t.Field, strings.SplitN(t.Value, " ", 2)[0])
	}
	return fmt.Errorf("not the shape of the Bot API")
}

func (m message) asksForLead() bool {
	return m.Text != "" || m.Caption != "" || m.Contact != nil ||
		len(m.Photo) > 0 || m.Document != nil || m.Voice != nil
}

// fields are the lead's fields, empty ones left out.
func (m message) fields(u Update) map[string]string {
	f := map[string]string{
		"source":  "telegram",
		"bot_id":  strconv.FormatInt(u.Bot, 10),
		"chat_id": strconv.FormatInt(u.Chat, 10),
		"text":    m.Text + m.Caption,
	}
	if m.Date > 0 {
		f["sent_at"] = time.Unix(m.Date, 0).UTC().Format(time.RFC3339)
	}
	if p := m.From; p != nil {
		f["name"] = strings.TrimSpace(p.FirstName + " " + p.LastName)
		f["user_id"], f["username"], f["language"] = strconv.FormatInt(p.ID, 10), p.Username, p.Language
	}
	if c := m.Contact; c != nil {
		f["phone"] = c.PhoneNumber
		f["contact_name"] = strings.TrimSpace(c.FirstName + " " + c.LastName)
		if c.UserID != 0 {
			f["contact_user_id"] = strconv.FormatInt(c.UserID, 10) // not the sender's, when another's contact is shared
		}
	}
	switch {
	case m.Voice != nil:
		f["attachment"], f["file_id"] = "voice", m.Voice.FileID
	case m.Document != nil:
		f["attachment"], f["file_id"] = "document", m.Document.FileID
	case len(m.Photo) > 0:
		f["attachment"], f["file_id"] = "photo", m.Photo[len(m.Photo)-1].FileID // the largest is last
	}
	for name, value := range f {
		if value == "" {
			delete(f, name)
		}
	}
	return f
}

// BusinessKey is the default business key of an update: one operation per
// pressed button and per album, else the event key.
func BusinessKey(key Key, u Update) (string, error) {
	switch u.Kind {
	case "callback_query":
		return callbackKey(key, u)
	case "message":
		m, err := decodeMessage(u)
		return m.businessKey(key, u), err
	default:
		return key.String(), nil
	}
}

func (m message) businessKey(key Key, u Update) string {
	if m.MediaGroupID == "" {
		return key.String()
	}
	return businessKey(u.Bot, "album", strconv.FormatInt(u.Chat, 10), m.MediaGroupID)
}

// callbackKey names a pressed button by where it is and what it says. A message
// that is no longer accessible still has its chat and id; one that never had an
// id (0) names nothing, so each press stands for itself.
func callbackKey(key Key, u Update) (string, error) {
	var update struct {
		Query struct {
			Message *struct {
				MessageID int64 `json:"message_id"`
			} `json:"message"`
			InlineMessageID string  `json:"inline_message_id"`
			Data            *string `json:"data"`
			Game            string  `json:"game_short_name"`
		} `json:"callback_query"`
	}
	if err := json.Unmarshal(u.Raw, &update); err != nil {
		return "", fmt.Errorf("callback_query: %w", shapeError(err))
	}
	q := update.Query
	pressed := "game:" + q.Game
	if q.Data != nil {
		pressed = "data:" + *q.Data
	}
	switch {
	case q.InlineMessageID != "":
		return businessKey(u.Bot, "callback-inline", q.InlineMessageID, pressed), nil
	case q.Message != nil && q.Message.MessageID != 0 && u.Chat != 0:
		return businessKey(u.Bot, "callback", strconv.FormatInt(u.Chat, 10), strconv.FormatInt(q.Message.MessageID, 10), pressed), nil
	default:
		return key.String(), nil
	}
}

// businessKey joins the parts so that different parts give different keys.
func businessKey(bot int64, kind string, parts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "telegram/%d/%s", bot, kind)
	for _, part := range parts {
		b.WriteString("/" + strconv.QuoteToASCII(part))
	}
	return b.String()
}
