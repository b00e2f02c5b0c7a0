package telegram

import (
	"encoding/json"
	"strings"

	"github.com/leadonce/leadonce/engine/job"
)

const callbackQuery = "callback_query"

// maxCallbackID is the length in bytes up to which the id of a callback query is
// answered. Telegram's have up to 20 digits.
const maxCallbackID = 64

// CallbackQueryID is the id under which a pressed button is answered; empty when
// the update is none, or has no id that Telegram would give: what a sender wrote
// must not come back as more than a name.
func CallbackQueryID(u job.Update) string {
	if u.Kind != callbackQuery {
		return ""
	}
	var pressed struct {
		Query struct {
			ID string `json:"id"`
		} `json:"callback_query"`
	}
	if json.Unmarshal(u.Raw, &pressed) != nil {
		return ""
	}
	if id := pressed.Query.ID; len(id) <= maxCallbackID && strings.Trim(id, plain) == "" {
		return id
	}
	return ""
}

const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// answerToButton is the method call by which a webhook's answer ends a button's
// wait. id is plain.
func answerToButton(id string) string {
	return `{"method":"answerCallbackQuery","callback_query_id":"` + id + `"}`
}
