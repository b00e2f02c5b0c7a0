package job

import "strconv"

// PendingUpdatesDropped: a person has Telegram forget the updates that wait for the
// bot. It is written on the stream bot-<bot> before the request leaves, with the
// number of updates as Telegram told it right before: they are in no log, and this is
// all that is left of them. When the request fails they may be there still.
type PendingUpdatesDropped struct {
	Bot    int64  `json:"bot"`
	Count  int    `json:"count"`
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Name is the event's name.
func (PendingUpdatesDropped) Name() string { return "PendingUpdatesDropped" }

// BotStream is the stream of what is recorded about a bot and is no job's.
func BotStream(bot int64) string { return BotStreams + strconv.FormatInt(bot, 10) }
