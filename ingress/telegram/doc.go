// Package telegram takes the updates that Telegram delivers to a webhook,
// https://core.telegram.org/bots/api#setwebhook.
//
// One POST carries one update. It is answered 200 once the update is durable or
// proven stored, and not before:
//
//	200  stored, a duplicate, or stored as itself under a key that was taken
//	400  no JSON object with a usable update_id, or a body that did not arrive
//	401  the secret header is missing, wrong or there more than once
//	404  a bot that is not configured
//	405  not a POST
//	413  a body over MaxBody
//	503  the log is unavailable or the backlog is full; with Retry-After
//
// Telegram repeats whatever is not answered 2xx, and until then holds back the
// updates of the same chat. So every update with an update_id is accepted,
// whatever else is in it, and an answer in doubt is 503: the repetition will be
// found to be a duplicate. 410 is never answered, since Telegram takes enough of
// them for the end of the webhook; nor is a redirect, which it does not follow.
// The body of a 200 is empty, because Telegram reads it as a method call; but
// for a callback query it is the call of answerCallbackQuery that ends the wait
// of the person who pressed the button. What becomes of that call is never known.
package telegram
