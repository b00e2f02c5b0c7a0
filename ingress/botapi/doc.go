// Package botapi speaks the part of Telegram's Bot API that leadonce needs,
// https://core.telegram.org/bots/api: the webhook is set, read and deleted here,
// updates are fetched where there is no webhook, and messages are sent. What the
// API's answers leave unsaid is read from its open server,
// https://github.com/tdlib/telegram-bot-api.
//
// A bot's token is in the path of every request. No error, and nothing that a
// server says, carries it to a caller.
package botapi
