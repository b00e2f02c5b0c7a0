package botapi

import (
	"context"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf16"
)

// AllowedUpdates is the allowed_updates by which a bot gets every kind of update
// that Bot API 10.1 (11 June 2026) names. An empty list would leave out
// chat_member, message_reaction and message_reaction_count; one that was given
// earlier stays in force until another is given.
func AllowedUpdates() []string { return slices.Clone(kinds) }

var kinds = []string{
	"message", "edited_message", "channel_post", "edited_channel_post",
	"business_connection", "business_message", "edited_business_message", "deleted_business_messages", "guest_message",
	"message_reaction", "message_reaction_count", "inline_query", "chosen_inline_result", "callback_query",
	"shipping_query", "pre_checkout_query", "purchased_paid_media", "poll", "poll_answer",
	"my_chat_member", "chat_member", "chat_join_request", "chat_boost", "removed_chat_boost", "managed_bot",
}

// leftOut are the kinds that an empty list does not ask for.
var leftOut = []string{"chat_member", "message_reaction", "message_reaction_count"}

// User is a bot or a person.
type User struct {
	ID       int64  `json:"id"`
	IsBot    bool   `json:"is_bot"`
	Username string `json:"username"`
}

// GetMe tells whose token it is.
func (c *Client) GetMe(ctx context.Context) (User, error) {
	var u User
	err := c.call(ctx, "getMe", struct{}{}, &u, callTimeout)
	return u, err
}

// Webhook is where and how updates are delivered.
type Webhook struct {
	URL            string   `json:"url"`
	SecretToken    string   `json:"secret_token"`
	MaxConnections int      `json:"max_connections,omitempty"` // 1 to 100; 0 for the server's default, 40
	IPAddress      string   `json:"ip_address,omitempty"`      // instead of what the host's name stands for
	AllowedUpdates []string `json:"allowed_updates"`

	// DropPendingUpdates loses every update that waits, for good.
	DropPendingUpdates bool `json:"drop_pending_updates"`
}

// SetWebhook sets the webhook in place of an earlier one.
func (c *Client) SetWebhook(ctx context.Context, w Webhook) error {
	return c.succeed(ctx, "setWebhook", w)
}

// DeleteWebhook removes the webhook; without one, it succeeds too. With drop, the
// updates that wait are lost for good.
func (c *Client) DeleteWebhook(ctx context.Context, drop bool) error {
	return c.succeed(ctx, "deleteWebhook", map[string]bool{"drop_pending_updates": drop})
}

// succeed calls a method whose result is true.
func (c *Client) succeed(ctx context.Context, method string, arguments any) error {
	var done bool
	err := c.call(ctx, method, arguments, &done, callTimeout)
	if err == nil && !done {
		return &Error{Method: method, Description: "not done, and no reason given"}
	}
	return err
}

// WebhookInfo is the state of a bot's delivery. It does not say whether there is a
// secret.
type WebhookInfo struct {
	URL                  string   `json:"url"` // empty: no webhook
	HasCustomCertificate bool     `json:"has_custom_certificate"`
	PendingUpdateCount   int      `json:"pending_update_count"`
	IPAddress            string   `json:"ip_address,omitempty"`
	LastErrorDate        int64    `json:"last_error_date,omitempty"` // Unix time
	LastErrorMessage     string   `json:"last_error_message,omitempty"`
	LastSyncErrorDate    int64    `json:"last_synchronization_error_date,omitempty"` // Unix time
	MaxConnections       int      `json:"max_connections,omitempty"`
	AllowedUpdates       []string `json:"allowed_updates,omitempty"` // none: all but three kinds
}

// GetWebhookInfo tells the state of the delivery. The URL and the message are
// without the token, should they have had it.
func (c *Client) GetWebhookInfo(ctx context.Context) (WebhookInfo, error) {
	var info WebhookInfo
	err := c.call(ctx, "getWebhookInfo", struct{}{}, &info, callTimeout)
	info.URL = c.Hide(info.URL)
	info.LastErrorMessage = c.describe(info.LastErrorMessage)
	return info, err
}

// Missing lists the kinds of update that are not delivered, of those that
// AllowedUpdates names.
func (i WebhookInfo) Missing() []string {
	if len(i.AllowedUpdates) == 0 {
		return slices.Clone(leftOut)
	}
	var missing []string
	for _, kind := range kinds {
		if !slices.Contains(i.AllowedUpdates, kind) {
			missing = append(missing, kind)
		}
	}
	return missing
}

// MaxUpdates is how many updates one call of GetUpdates can bring.
const MaxUpdates = 100

// MaxPoll is how long the server waits for an update at most.
const MaxPoll = 50 * time.Second

// pollMargin is how long an answer may take on its way.
const pollMargin = 15 * time.Second

// GetUpdates fetches up to limit updates (1 to MaxUpdates), each byte for byte as
// it came. When there is none, the server waits for one for up to wait, in whole
// seconds. A positive offset tells the server to forget every update with a lower
// id: only then are they confirmed. 0 begins with the first that is not. A negative
// one is refused, since Telegram would forget all but the last updates.
func (c *Client) GetUpdates(ctx context.Context, offset int64, limit int, wait time.Duration) ([]json.RawMessage, error) {
	if offset < 0 {
		return nil, &Error{Method: "getUpdates", Description: "a negative offset would lose updates"}
	}
	return c.getUpdates(ctx, offset, limit, wait, kinds)
}

// getUpdates leaves the kinds that are delivered as they are when it is given none.
func (c *Client) getUpdates(ctx context.Context, offset int64, limit int, wait time.Duration, allowed []string) ([]json.RawMessage, error) {
	arguments := struct {
		Offset         int64    `json:"offset,omitempty"`
		Limit          int      `json:"limit"`
		Timeout        int      `json:"timeout"` // seconds
		AllowedUpdates []string `json:"allowed_updates,omitempty"`
	}{offset, limit, int(min(max(wait, 0), MaxPoll) / time.Second), allowed}
	var updates []json.RawMessage
	err := c.call(ctx, "getUpdates", arguments, &updates, wait+pollMargin)
	return updates, err
}

// AnswerCallbackQuery ends the wait of whoever pressed a button.
func (c *Client) AnswerCallbackQuery(ctx context.Context, id string) error {
	return c.succeed(ctx, "answerCallbackQuery", map[string]string{"callback_query_id": id})
}

// MaxText is the length of a message's text, in UTF-16 code units.
const MaxText = 4096

// Message is a text to a chat, shown as it stands.
type Message struct {
	Chat    int64
	Text    string // more than MaxText is cut
	ReplyTo int64  // message_id in that chat, which may be gone; 0: a message of its own
}

// SendMessage sends it and returns its message_id. It may be sent although there is an
// error: see NotDone.
func (c *Client) SendMessage(ctx context.Context, m Message) (int64, error) {
	type replyTo struct {
		MessageID int64 `json:"message_id"`
		Allow     bool  `json:"allow_sending_without_reply"`
	}
	arguments := struct {
		ChatID  int64    `json:"chat_id"`
		Text    string   `json:"text"`
		ReplyTo *replyTo `json:"reply_parameters,omitempty"`
	}{ChatID: m.Chat, Text: shorten(m.Text)}
	if m.ReplyTo != 0 {
		arguments.ReplyTo = &replyTo{m.ReplyTo, true}
	}
	const method = "sendMessage"
	var sent struct {
		ID int64 `json:"message_id"`
	}
	err := c.call(ctx, method, arguments, &sent, callTimeout)
	if err == nil && sent.ID == 0 {
		err = &Error{Method: method, Description: "the answer has no message_id"}
	}
	return sent.ID, err
}

// shorten cuts a text to MaxText between two characters.
func shorten(text string) string {
	units := 0
	for i, r := range text {
		if units += utf16.RuneLen(r); units > MaxText {
			return text[:i]
		}
	}
	return text
}
