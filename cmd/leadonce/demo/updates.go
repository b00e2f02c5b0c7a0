package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// update is one thing that Telegram has to deliver.
type update struct {
	bot, id, chat int64
	kind          string
	body          []byte
	enquiry       string // its mark in the CRM; empty when it asks for no lead
}

// otherKinds holds one update's content per kind of Bot API 10.1 but message.
//
//go:embed kinds.json
var otherKinds []byte

// unknownKind stands for what Telegram will add.
const unknownKind = "future_kind"

// bots of a demo.
var bots = []int64{700000001, 700000002, 700000003}

// generator makes updates that look like a bot's day.
type generator struct {
	rand     *rand.Rand
	next     map[int64]int64 // bot → update_id
	enquiry  int
	message  int64
	contents map[string]json.RawMessage
}

const chats = 40

// generate makes n updates: every kind once, albums, restarts of the id
// sequence, one id that is used twice, and otherwise messages.
func generate(n int, seed uint64) ([]update, error) {
	g := generator{rand: rand.New(rand.NewPCG(seed, 1)), next: map[int64]int64{}, contents: map[string]json.RawMessage{}}
	if err := json.Unmarshal(otherKinds, &g.contents); err != nil {
		return nil, fmt.Errorf("kinds.json: %w", err)
	}
	g.contents[unknownKind] = json.RawMessage(`{"something":"new"}`)
	for _, bot := range bots {
		g.next[bot] = 100_000_000 + g.rand.Int64N(800_000_000)
	}
	kinds := slices.Sorted(maps.Keys(g.contents))
	var list []update
	for len(list) < n {
		bot := bots[g.rand.IntN(len(bots))]
		chat := 1000 + g.rand.Int64N(chats)
		switch i := len(list); {
		case i == n/2:
			g.next[bot] -= 50_000_000 // a quiet week: the sequence starts elsewhere
			list = append(list, g.text(bot, chat))
		case i == n/3 && i > 0: // an id comes again with other content
			g.next[list[i-1].bot] = list[i-1].id
			list = append(list, g.text(list[i-1].bot, list[i-1].chat))
		case len(kinds) > 0 && g.rand.IntN(4) == 0:
			list = append(list, g.other(bot, chat, kinds[0]))
			kinds = kinds[1:]
		case g.rand.IntN(25) == 0 && n-i >= 3:
			list = append(list, g.album(bot, chat)...)
		default:
			list = append(list, g.anyMessage(bot, chat))
		}
	}
	return list, nil
}

func (g *generator) mark() string {
	g.enquiry++
	return fmt.Sprintf("enquiry-%06d", g.enquiry)
}

func (g *generator) make(bot, chat int64, kind string, content any, enquiry string) update {
	id := g.next[bot]
	g.next[bot]++
	body, err := json.Marshal(map[string]any{"update_id": id, kind: content})
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return update{bot: bot, id: id, chat: chat, kind: kind, body: body, enquiry: enquiry}
}

// send is a message with the extra members.
func (g *generator) send(bot, chat int64, enquiry string, extra map[string]any) update {
	g.message++
	m := map[string]any{
		"message_id": g.message, "date": 1_767_225_600 + g.message,
		"chat": map[string]any{"id": chat, "type": "private"},
		"from": map[string]any{"id": chat, "is_bot": false, "first_name": "Ada", "last_name": "Example"},
	}
	maps.Copy(m, extra)
	return g.make(bot, chat, "message", m, enquiry)
}

func (g *generator) text(bot, chat int64) update {
	mark := g.mark()
	return g.send(bot, chat, mark, map[string]any{"text": "please call me back, " + mark})
}

func (g *generator) anyMessage(bot, chat int64) update {
	mark := g.mark()
	file := map[string]any{"file_id": mark, "file_unique_id": "u"}
	switch g.rand.IntN(10) {
	case 0:
		return g.send(bot, chat, mark, map[string]any{"contact": map[string]any{"phone_number": "+4912345", "first_name": mark}})
	case 1:
		return g.send(bot, chat, mark, map[string]any{"photo": []any{file}, "caption": mark})
	case 2:
		return g.send(bot, chat, mark, map[string]any{"document": file})
	case 3:
		return g.send(bot, chat, mark, map[string]any{"voice": file})
	case 4:
		g.enquiry--
		return g.send(bot, chat, "", map[string]any{"sticker": map[string]any{"file_id": "s"}})
	default:
		return g.send(bot, chat, mark, map[string]any{"text": "hello, " + mark})
	}
}

// album is three messages that are one enquiry.
func (g *generator) album(bot, chat int64) []update {
	mark := g.mark()
	var list []update
	for range 3 {
		list = append(list, g.send(bot, chat, mark, map[string]any{
			"media_group_id": mark, "photo": []any{map[string]any{"file_id": mark}},
		}))
	}
	return list
}

func (g *generator) other(bot, chat int64, kind string) update {
	return g.make(bot, chat, kind, g.contents[kind], "")
}
