// Package botapitest is a double of Telegram's Bot API for one bot, on loopback. It
// keeps what its open server does with updates, https://github.com/tdlib/telegram-bot-api:
//
//   - updates wait in one queue; getUpdates forgets those below its offset, and an
//     offset far from the queue is taken for none;
//   - a webhook and getUpdates exclude each other, and so do two that fetch (409);
//   - a webhook gets the updates of one chat one after the other, and each until it
//     is answered 2xx or expires, at growing intervals; an answer's method call is
//     made;
//   - kinds that allowed_updates does not name are never queued;
//   - a message is sent if it has a chat and a text of at most 4096 UTF-16 units.
//
// Its seconds can be shorter than those of a clock. Calls can be made to fail.
// Nothing leaves the machine: a webhook that is elsewhere is never reached.
package botapitest
