package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/leadonce/leadonce/engine/job"
)

// wish is what an update asks for, told without the engine's own rules.
type wish uint8

const (
	aLead wish = iota
	nothing
	unreadable
)

// sent is one update as people make it. Two of them are two enquiries, whatever
// they have in common.
type sent struct {
	name      string
	bot       int64
	id        int64
	chat      int
	wish      wish
	operation string // operation_id, unless its id is taken
	own       bool   // its operation is its own
	spellings [2]job.Update
	fields    map[string]string // of its lead
	edited    map[string]string // the same, by rules that were edited
	recorded  [2]job.Fields     // both, as a claim has them
}

// write notes the fields of the update's lead.
func (s *sent) write(fields map[string]string) {
	s.fields, s.edited = fields, edited(fields)
	for i, f := range []map[string]string{s.fields, s.edited} {
		if len(f) > 0 {
			text, err := json.Marshal(f)
			must(err)
			s.recorded[i] = job.Fields(text)
		}
	}
}

// edited are the fields by rules that give the lead one more.
func edited(fields map[string]string) map[string]string {
	more := maps.Clone(fields)
	if more == nil {
		more = map[string]string{}
	}
	more["rules"] = "edited"
	return more
}

// known are the updates that a Setup chooses from, by index.
var known = []sent{
	message(7, 101, 5, `"text":"hello"`),
	press(7, 103, 5, "buy"),
	press(7, 104, 5, "buy"), // the same operation
	message(7, 102, 5, `"text":"hello"`),
	other(7, 101, 6, `"message":{"message_id":9,"chat":{"id":6},"text":"another one under a used id"}`, aLead),
	message(7, 11, 6, `"text":"a lower id"`),
	message(8, 101, 5, `"text":"another bot"`),
	other(7, 105, 5, `"edited_message":{"message_id":101,"chat":{"id":5},"text":"hello!"}`, nothing),
	other(7, 106, 6, `"message":"no object"`, unreadable),
	album(7, 107, 6, ""),
	album(7, 108, 6, "two pictures"),
	message(7, 110, 6, `"contact":{"phone_number":"+100","first_name":"Ada"}`),
}

// UpdatesKnown is how many updates a Setup can choose from.
var UpdatesKnown = len(known)

// byText is the index of an update by what the log holds of it.
var byText = textsOf(known)

func textsOf(people []sent) map[string]int {
	index := map[string]int{}
	for i, u := range people {
		for _, s := range u.spellings {
			index[string(s.Raw)] = i
		}
	}
	return index
}

func message(bot, id int64, chat int, content string) sent {
	body := fmt.Sprintf(`"message":{"message_id":%d,"chat":{"id":%d},%s}`, id, chat, content)
	return other(bot, id, chat, body, aLead)
}

func other(bot, id int64, chat int, body string, w wish) sent {
	s := update(bot, id, chat, body, w, fmt.Sprintf("telegram/%d/%d", bot, id))
	s.own = true
	return s
}

func press(bot, id int64, chat int, data string) sent {
	body := fmt.Sprintf(`"callback_query":{"id":"%d","message":{"message_id":1,"chat":{"id":%d}},"data":%q}`, id, chat, data)
	return update(bot, id, chat, body, aLead, fmt.Sprintf(`telegram/%d/callback/"%d"/"1"/"data:%s"`, bot, chat, data))
}

func album(bot, id int64, chat int, caption string) sent {
	body := fmt.Sprintf(`"message":{"message_id":%d,"chat":{"id":%d},"media_group_id":"g","photo":[{"file_id":"f%d"}],"caption":%q}`, id, chat, id, caption)
	return update(bot, id, chat, body, aLead, fmt.Sprintf(`telegram/%d/album/"%d"/"g"`, bot, chat))
}

func update(bot, id int64, chat int, body string, w wish, businessKey string) sent {
	s := sent{name: strings.SplitN(body, `"`, 3)[1], bot: bot, id: id, chat: chat, wish: w, operation: operation(bot, businessKey)}
	for i, raw := range []string{
		fmt.Sprintf(`{"update_id":%d,%s}`, id, body),
		fmt.Sprintf(`{ %s , "update_id" : %d }`, body, id),
	} {
		u, err := job.ParseUpdate(bot, []byte(raw))
		if err != nil {
			panic(err)
		}
		s.spellings[i] = u
		s.write(plan(u.Key(), u).Fields)
	}
	return s
}

// namespace is of operation ids and of the keys of steps.
var namespace = uuid.MustParse("6f1d9a52-0b7e-4c3d-9c41-5e8827d4b106")

// operation is the operation_id by the design's words, not by the engine's code.
func operation(bot int64, businessKey string) string {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "%d\ncreate_lead\n%s", bot, businessKey)).String()
}

// plan is the default plan, and a lead for each pressed button.
func plan(key job.Key, u job.Update) job.Plan {
	if u.Kind != "callback_query" {
		return job.DefaultPlan(key, u)
	}
	business, err := job.BusinessKey(key, u)
	if err != nil {
		return job.Plan{Undecodable: err.Error()}
	}
	return job.Plan{Effect: true, Action: job.CreateLead, BusinessKey: business, Fields: pressFields}
}

var pressFields = map[string]string{"source": "telegram"}
