// Package poll fetches the updates of bots that have no webhook, by long polling:
// https://core.telegram.org/bots/api#getupdates.
//
// What a webhook answers with a 200, a poller says with the offset of its next
// call: Telegram forgets every update below it. So the offset never passes an
// update that is not durable, and until then Telegram keeps it, for 24 hours at
// most. An update that was durable and not confirmed comes again and is found to be
// a duplicate; nothing here is remembered over a restart, and nothing needs to be.
//
// Every update with an update_id is stored as it came, byte for byte and whatever
// else is in it. Two processes may fetch for one bot: Telegram lets only one of them
// through at a time (409), and both are safe.
package poll
