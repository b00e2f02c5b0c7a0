package job

import "strconv"

// ChatMigrated: a group became a supergroup, which has another id. It is the first
// event of the stream that ChatStream names for To.
type ChatMigrated struct {
	Bot  int64 `json:"bot"`
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Name is the event's name.
func (ChatMigrated) Name() string { return "ChatMigrated" }

// ChatStream is the stream that says which chat this one was before.
func ChatStream(bot, chat int64) string {
	return ChatStreams + strconv.FormatInt(bot, 10) + "-" + strconv.FormatInt(chat, 10)
}

// Migration is what an update says of its chat. Telegram sends a service message in
// the group, with migrate_to_chat_id, and one in the supergroup, with
// migrate_from_chat_id, in either order; one of them is enough.
func (u Update) Migration() (m ChatMigrated, ok bool) {
	switch {
	case u.Kind != "message" || u.Chat >= 0:
		return ChatMigrated{}, false
	case u.MigratedTo < 0 && u.MigratedTo != u.Chat:
		return ChatMigrated{Bot: u.Bot, From: u.Chat, To: u.MigratedTo}, true
	case u.MigratedFrom < 0 && u.MigratedFrom != u.Chat:
		return ChatMigrated{Bot: u.Bot, From: u.MigratedFrom, To: u.Chat}, true
	default:
		return ChatMigrated{}, false
	}
}
