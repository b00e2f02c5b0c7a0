package properties

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/leadonce/leadonce/engine/job"
)

// bot is whose updates the rules are shown.
const bot = 7

// kinds are those of Bot API 10.1.
var kinds = strings.Fields(`business_connection business_message callback_query channel_post chat_boost
	chat_join_request chat_member chosen_inline_result deleted_business_messages edited_business_message
	edited_channel_post edited_message guest_message inline_query managed_bot message message_reaction
	message_reaction_count my_chat_member poll poll_answer pre_checkout_query purchased_paid_media
	removed_chat_boost shipping_query`)

// edited are the kinds that have one for their edits.
var edited = map[string]string{
	"message": "edited_message", "channel_post": "edited_channel_post", "business_message": "edited_business_message",
}

// oddValues stand where the Bot API has something else.
var oddValues = []string{
	`null`, `"a string"`, `""`, `0`, `-1`, `9223372036854775808`, `1e400`, `1.5`, `true`, `{}`, `[]`, `[null]`, `[[]]`,
	`{"id":"x"}`, `{"text":{"text":[]}}`, `[{"file_id":1}]`,
}

// commonBodies are what people send to most bots.
var commonBodies = []string{
	`"message":{"message_id":1,"date":1700000000,"chat":{"id":5,"type":"private"},"from":{"id":5,"first_name":"Ada","username":"ada"},"text":"hello"}`,
	`"message":{"message_id":2,"date":1700000000,"chat":{"id":5},"from":{"id":5,"first_name":"Ada"},"contact":{"phone_number":"+100","first_name":"Ada","user_id":5}}`,
	`"message":{"message_id":3,"date":1700000000,"chat":{"id":6},"media_group_id":"g1","photo":[{"file_id":"f1"},{"file_id":"f2"}],"caption":"a picture"}`,
	`"message":{"message_id":4,"chat":{"id":6},"document":{"file_id":"f3"}}`,
	`"message":{"message_id":5,"chat":{"id":6},"voice":{"file_id":"f4"}}`,
	`"message":{"message_id":6,"chat":{"id":6},"text":"𝒜 \u0000 \" \\ <b>","entities":[{"type":"bold","offset":0,"length":2}]}`,
	`"message":{"message_id":7,"chat":{"id":-100},"new_chat_members":[{"id":9}]}`,
	`"channel_post":{"message_id":8,"chat":{"id":-100},"text":"news"}`,
	`"business_message":{"message_id":9,"chat":{"id":5},"from":{"id":5},"text":"hello"}`,
	`"callback_query":{"id":"77","from":{"id":5},"message":{"message_id":1,"chat":{"id":5}},"chat_instance":"c","data":"buy"}`,
	`"callback_query":{"id":"78","from":{"id":5},"inline_message_id":"i1","data":"buy"}`,
	`"inline_query":{"id":"79","from":{"id":5},"query":"shoes","offset":""}`,
	`"my_chat_member":{"chat":{"id":5},"from":{"id":5},"date":1700000000,"new_chat_member":{"status":"kicked"}}`,
}

// common are those bodies as updates.
func common() (list []job.Update) {
	for i, body := range commonBodies {
		list = append(list, mustParse(fmt.Appendf(nil, `{"update_id":%d,%s}`, 900+i, body)))
	}
	return list
}

// shape is an update in two spellings.
type shape struct{ update, again job.Update }

func shapesOf(list []job.Update) []shape {
	shapes := make([]shape, len(list))
	for i, u := range list {
		shapes[i] = shape{u, mustParse(respell(u.Raw))}
	}
	return shapes
}

// commonShapes are all that rules are shown whatever a team gives.
var commonShapes = sync.OnceValue(func() []shape { return shapesOf(slices.Concat(odd(common()), common())) })

// odd are updates that the Bot API does not send, and an engine takes all the same:
// every kind with every odd value, and the mutants of the examples.
func odd(examples []job.Update) (list []job.Update) {
	for i, kind := range append(kinds, "a_kind_of_tomorrow") {
		for j, value := range oddValues {
			list = append(list, mustParse(fmt.Appendf(nil, `{"update_id":%d,%q:%s}`, 1000+100*i+j, kind, value)))
		}
	}
	list = append(list, mustParse([]byte(`{"update_id":1}`)), mustParse([]byte(`{"update_id":-1,"message":null}`)))
	for _, u := range examples {
		list = append(list, mutants(u)...)
	}
	return list
}

// mutantsMax bounds the mutants of one example.
const mutantsMax = 3000

// mutants are the update with each of its parts missing, odd, or very long.
func mutants(u job.Update) (list []job.Update) {
	document := parseNode(u.Raw)
	add := func() {
		if len(list) < mutantsMax {
			list = append(list, mustParse(spell(document)))
		}
	}
	document.each(func(path string, at *node, remove func() func()) {
		if path == "/update_id" {
			return
		}
		undo := remove()
		add()
		undo()
		before := *at
		for _, value := range oddValues {
			*at = *parseNode([]byte(value))
			add()
		}
		if text, ok := before.scalar.(string); ok {
			*at = node{scalar: strings.Repeat(text+" ", 4000)}
			add()
		}
		*at = before
	})
	return list
}

// twinOf is an update of somebody else, at another time and place, who says the
// same: all ids and dates differ, and everything that people wrote does not.
func twinOf(u job.Update) job.Update {
	document := parseNode(u.Raw)
	document.each(func(path string, at *node, _ func() func()) {
		name := path[strings.LastIndexByte(path, '/')+1:]
		if name != "id" && name != "date" && name != "chat_instance" && !strings.HasSuffix(name, "_id") {
			return
		}
		switch v := at.scalar.(type) {
		case string:
			at.scalar = v + "2"
		case json.Number:
			if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				at.scalar = json.Number(strconv.FormatInt(n+100_000, 10))
			}
		}
	})
	return mustParse(spell(document))
}

// renamed gives the update's member another name.
func renamed(raw []byte, from, to string) []byte {
	document := parseNode(raw)
	for i := range document.members {
		if document.members[i].name == from {
			document.members[i].name = to
		}
	}
	return spell(document)
}

// parseAll reads what a team gives.
func parseAll(updates [][]byte) (list []job.Update, err error) {
	for i, raw := range updates {
		u, err := job.ParseUpdate(bot, bytes.Clone(raw))
		if err != nil {
			return nil, fmt.Errorf("update %d of those that were given: %w", i, err)
		}
		list = append(list, u)
	}
	return list, nil
}

// mustParse reads an update of our own making.
func mustParse(raw []byte) job.Update {
	u, err := job.ParseUpdate(bot, raw)
	if err != nil {
		panic(fmt.Sprintf("%v: %.200s", err, raw))
	}
	return u
}
