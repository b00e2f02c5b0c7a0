package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Update is one Telegram update as it arrived, with what the engine and its
// operators need to find it by.
type Update struct {
	Bot         int64
	ID          int64  // update_id
	Kind        string // the name of its optional member: message, callback_query, …
	Chat        int64  // 0 when it has none
	Origin      int64  // the id that the chat had before it became a supergroup, or Chat; 0: not looked for
	User        int64  // 0 when it has none
	Fingerprint string // SHA-256 of the canonical JSON, hexadecimal
	Raw         []byte // byte for byte

	// Of the service messages about a group that becomes a supergroup, else 0.
	MigratedTo, MigratedFrom int64
}

// ErrNotUpdate is what ParseUpdate answers for a body that cannot be accepted:
// it is no JSON object or has no usable update_id.
var ErrNotUpdate = errors.New("not an update")

// kinds are the members of Update in Bot API 10.1 (11 June 2026) beside
// update_id: https://core.telegram.org/bots/api#update.
var kinds = []string{
	"business_connection", "business_message", "callback_query", "channel_post",
	"chat_boost", "chat_join_request", "chat_member", "chosen_inline_result",
	"deleted_business_messages", "edited_business_message", "edited_channel_post",
	"edited_message", "guest_message", "inline_query", "managed_bot", "message",
	"message_reaction", "message_reaction_count", "my_chat_member", "poll",
	"poll_answer", "pre_checkout_query", "purchased_paid_media",
	"removed_chat_boost", "shipping_query",
}

// KnownKind reports whether kind is one of the Bot API's.
func KnownKind(kind string) bool { return slices.Contains(kinds, kind) }

// NoKind is the Kind of an update that has an id and nothing else.
const NoKind = "none"

// OddKind is the Kind of an update whose member has a name that the Bot API would
// not give: not 1 to MaxKind of A-Z a-z 0-9 _. Kinds are logged, so a name must not
// be able to carry a person's words.
const OddKind = "odd"

// MaxKind is the length of the longest name of a kind, in bytes.
const MaxKind = 64

func plainName(s string) bool {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	return s != "" && len(s) <= MaxKind && strings.Trim(s, plain) == ""
}

// ParseUpdate reads a body that was delivered for bot. It takes every JSON
// object with one integer update_id, whatever else is in it: what no rule
// understands must be accepted too, or its chat would stand still. It keeps raw.
func ParseUpdate(bot int64, raw []byte) (Update, error) {
	u := Update{Bot: bot, Raw: raw}
	if !utf8.Valid(raw) {
		return u, fmt.Errorf("%w: the body is not UTF-8", ErrNotUpdate)
	}
	if !json.Valid(raw) {
		return u, fmt.Errorf("%w: the body is not one JSON document of at most 10,000 levels", ErrNotUpdate)
	}
	doc := outline(raw)
	top := doc.skip(0)
	if kind := doc.kind(top); kind != "object" {
		return u, fmt.Errorf("%w: the body is a JSON %s, want an object", ErrNotUpdate, kind)
	}
	ids := 0
	for m := range doc.members(top) {
		if string(m.name) != "update_id" {
			continue
		}
		ids++
		var err error
		if u.ID, err = wholeNumber(raw[m.start:m.end]); err != nil {
			return u, fmt.Errorf("%w: update_id %w", ErrNotUpdate, err)
		}
	}
	if ids != 1 {
		return u, fmt.Errorf("%w: %d members named update_id, want one", ErrNotUpdate, ids)
	}
	sum := sha256.Sum256(doc.canonical())
	u.Fingerprint = hex.EncodeToString(sum[:])
	u.describe(doc, top)
	return u, nil
}

// Key is the event key of the update when its id is not taken by another one.
func (u Update) Key() Key { return Key{Bot: u.Bot, Update: u.ID} }

// VariantKey is the event key of the update when its id is taken.
func (u Update) VariantKey() Key {
	return Key{Bot: u.Bot, Update: u.ID, Variant: u.Fingerprint[:VariantLength]}
}

// describe finds kind, chat and user. What is not where it should be stays empty.
func (u *Update) describe(doc document, top int) {
	u.Kind = NoKind
	content, found := 0, false
	for m := range doc.members(top) {
		name := string(m.name)
		if name == "update_id" {
			continue
		}
		if !found || (KnownKind(name) && !KnownKind(u.Kind)) {
			u.Kind, content, found = name, m.start, true
		}
	}
	if !found {
		return
	}
	if !plainName(u.Kind) {
		u.Kind = OddKind
	}
	u.Chat = doc.firstID(content, []string{"chat", "id"}, []string{"message", "chat", "id"}, []string{"user_chat_id"})
	if u.Kind == "message" && u.Chat < 0 {
		u.MigratedTo = doc.firstID(content, []string{"migrate_to_chat_id"})
		u.MigratedFrom = doc.firstID(content, []string{"migrate_from_chat_id"})
	}
	u.User = doc.firstID(content, []string{"from", "id"}, []string{"user", "id"})
}

// firstID is the whole number at the first of the paths that leads to one.
func (d document) firstID(content int, paths ...[]string) int64 {
	for _, path := range paths {
		at, ok := content, true
		for _, name := range path {
			if at, ok = d.child(at, name); !ok {
				break
			}
		}
		if !ok {
			continue
		}
		if id, err := wholeNumber(d.raw[at:d.valueEnd(at)]); err == nil {
			return id
		}
	}
	return 0
}
