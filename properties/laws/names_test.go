package laws

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/job"
)

var (
	integer = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	variant = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// readings are all ways to take a text apart into bot, update and perhaps a
// variant, trying every place for every separator.
func readings(text, prefix, separator string) (all []job.Key) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return nil
	}
	for i := range len(rest) {
		bot, isBot := number(rest[:i])
		if !isBot || !strings.HasPrefix(rest[i:], separator) {
			continue
		}
		rest := rest[i+len(separator):]
		if update, ok := number(rest); ok {
			all = append(all, job.Key{Bot: bot, Update: update})
		}
		for j := range len(rest) {
			update, isUpdate := number(rest[:j])
			if v, ok := strings.CutPrefix(rest[j:], separator); ok && isUpdate && variant.MatchString(v) {
				all = append(all, job.Key{Bot: bot, Update: update, Variant: v})
			}
		}
	}
	return all
}

// number reads the one spelling of a whole number of 64 bits.
func number(text string) (int64, bool) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || !n.IsInt64() || !integer.MatchString(text) {
		return 0, false
	}
	return n.Int64(), true
}

// alike are numbers and variants that look like each other: signs like
// separators, and digits that are a number and a variant at once.
var (
	alikeNumbers = []int64{
		0, 1, -1, 2, 11, -11, 12, -12, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64,
		1111111111111111, -1111111111111111, 1_111_111_111_111_111_1, 1000000000000000, 727334708,
	}
	alikeVariants = []string{"", "1111111111111111", "0000000000000001", "1000000000000000", "ffffffffffffffff", "11111111111111e1"}
)

// TestAStreamAndAKeyAreReadInOneWay for all pairs of numbers that look alike.
func TestAStreamAndAKeyAreReadInOneWay(t *testing.T) {
	t.Parallel()
	names, checks := map[string]job.Key{}, 0
	for _, bot := range alikeNumbers {
		for _, update := range alikeNumbers {
			for _, v := range alikeVariants {
				k := job.Key{Bot: bot, Update: update, Variant: v}
				checks++
				checkNames(t, k)
				for _, name := range []string{k.String(), k.Stream()} {
					if other, twice := names[name]; twice && other != k {
						t.Fatalf("%#v and %#v are both %s", k, other, name)
					}
					names[name] = k
				}
			}
		}
	}
	if want := len(alikeNumbers) * len(alikeNumbers) * len(alikeVariants); checks != want || checks < 1500 {
		t.Errorf("%d keys were checked, want %d", checks, want)
	}
}

// TestAnyStreamAndKeyAreReadInOneWay for keys that are drawn.
func TestAnyStreamAndKeyAreReadInOneWay(t *testing.T) {
	t.Parallel()
	number := rapid.OneOf(rapid.SampledFrom(alikeNumbers), rapid.Int64(), rapid.Int64Range(-120, 120))
	v := rapid.OneOf(rapid.SampledFrom(alikeVariants), rapid.StringMatching(`[0-9]{16}`), rapid.StringMatching(`[0-9a-f]{16}`))
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		k := job.Key{Bot: number.Draw(t, "bot"), Update: number.Draw(t, "update"), Variant: v.Draw(t, "variant")}
		checkNames(t, k)
		checkNearNames(t, k, rapid.IntRange(0, 60).Draw(t, "at"), rapid.SampledFrom([]string{"-", "/", "0", "1", "f", "+", " ", ""}).Draw(t, "text"))
	})
	if checks < 20 {
		t.Errorf("only %d keys were checked", checks)
	}
}

// failer is what tests and rapid share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkNames(t failer, k job.Key) {
	t.Helper()
	for _, c := range []struct{ name, prefix, separator string }{
		{k.String(), "telegram/", "/"}, {k.Stream(), job.JobStreams, "-"}, {k.ReplyStream(), job.ReplyStreams, "-"},
	} {
		if all := readings(c.name, c.prefix, c.separator); len(all) != 1 || all[0] != k {
			t.Fatalf("%s of %#v can be read as %#v", c.name, k, all)
		}
	}
}

// checkNearNames changes a name in one place: the result is read as another key,
// by ParseKey and by trying every separator, or by neither.
func checkNearNames(t failer, k job.Key, at int, text string) {
	t.Helper()
	name := k.String()
	at = min(at, len(name))
	for _, near := range []string{name[:at] + text + name[at:], name[:at] + text + name[min(at+1, len(name)):]} {
		got, err := job.ParseKey(near)
		all := readings(near, "telegram/", "/")
		if (err == nil) != (len(all) == 1) || err == nil && (got != all[0] || (got == k) != (near == name)) {
			t.Fatalf("%s, near %#v, is read as %#v (%v), and can be read as %#v", near, k, got, err, all)
		}
	}
}

// identity is what the operation of an update is, by the design: a message is its
// event key, a button is where it is and what it says, an album is its group in
// its chat. Two updates share an operation if these are equal.
type identity struct {
	bot   int64
	kind  string
	chat  int64
	id    string // of a message, an inline message or an album
	says  string
	event job.Key // unless it is one of several
}

// parts are what an update is made of.
type parts struct {
	kind                   string
	bot, id, chat, message int64
	words, says            string
	variant                bool // its id was taken
}

// everyUpdate calls f for all updates of a few parts that are easily confused.
func everyUpdate(f func(parts)) {
	texts := []string{"1", "1/data:1", `1"/"1`, `"`, "/", `\"`, "é", "telegram/1/1"}
	for _, kind := range []string{"button", "inline button", "game", "album", "message", "press"} {
		for _, bot := range []int64{1, 11} {
			for _, id := range []int64{1, 11} {
				for _, chat := range []int64{1, -1, 11} {
					for _, message := range []int64{1, 11} {
						for _, words := range texts {
							for _, says := range texts {
								f(parts{kind, bot, id, chat, message, words, says, says == "/"})
							}
						}
					}
				}
			}
		}
	}
}

// update is the update of these parts, its key and what it is.
func (p parts) update(t *testing.T) (job.Key, job.Update, identity) {
	is, content := identity{bot: p.bot}, ""
	switch p.kind {
	case "button", "game":
		member := map[string]string{"button": "data", "game": "game_short_name"}[p.kind]
		content = fmt.Sprintf(`"callback_query":{"message":{"message_id":%d,"chat":{"id":%d}},%q:%s}`, p.message, p.chat, member, quote(p.says))
		is.kind, is.chat, is.id, is.says = "button", p.chat, strconv.FormatInt(p.message, 10), p.kind+p.says
	case "inline button":
		content = fmt.Sprintf(`"callback_query":{"inline_message_id":%s,"data":%s}`, quote(p.words), quote(p.says))
		is.kind, is.id, is.says = p.kind, p.words, p.says
	case "album":
		content = fmt.Sprintf(`"message":{"message_id":%d,"chat":{"id":%d},"media_group_id":%s,"photo":[{"file_id":"p"}]}`, p.message, p.chat, quote(p.words))
		is.kind, is.chat, is.id = p.kind, p.chat, p.words
	case "message":
		content = fmt.Sprintf(`"message":{"message_id":%d,"chat":{"id":%d},"text":%s}`, p.message, p.chat, quote(p.says))
	case "press": // of a button that is nowhere
		content = fmt.Sprintf(`"callback_query":{"data":%s}`, quote(p.says))
	}
	u, err := job.ParseUpdate(p.bot, fmt.Appendf(nil, `{"update_id":%d,%s}`, p.id, content))
	if err != nil {
		t.Fatalf("%v", err)
	}
	key := u.Key()
	if p.variant {
		key = u.VariantKey()
	}
	if is.kind == "" {
		is.event = key
	}
	return key, u, is
}

func quote(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }

// TestTwoUpdatesShareAnOperationIfTheyMeanOne and never else, by business key,
// operation id and the operation's stream: for all pairs of updates.
func TestTwoUpdatesShareAnOperationIfTheyMeanOne(t *testing.T) {
	t.Parallel()
	updates := 0
	meant, streams := map[string]identity{}, map[string]identity{}
	named := map[identity]string{}
	everyUpdate(func(p parts) {
		updates++
		key, u, is := p.update(t)
		business, err := job.BusinessKey(key, u)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := meant[business]; ok && other != is {
			t.Fatalf("%s means %+v and has the business key %s, and so has %+v", u.Raw, is, business, other)
		}
		if other, ok := named[is]; ok && other != business {
			t.Fatalf("%s means %+v and has the business keys %s and %s", u.Raw, is, business, other)
		}
		stream := job.OperationStream(job.OperationID(u.Bot, job.CreateLead, business))
		if other, ok := streams[stream]; ok && other != is || strings.HasPrefix(stream, job.JobStreams) {
			t.Fatalf("%s means %+v and has the operation %s, and so has %+v", u.Raw, is, stream, other)
		}
		meant[business], named[is], streams[stream] = is, business, is
		// Only its own event key is a business key that looks like one.
		if k, err := job.ParseKey(business); (err == nil) != (is.kind == "") || err == nil && k != key {
			t.Fatalf("%s has the business key %s, which is the event key of %#v", u.Raw, business, k)
		}
	})
	if updates != 6*2*2*3*2*8*8 || len(meant) != len(named) || len(streams) != len(named) || len(named) < 350 || len(named) > updates/2 {
		t.Errorf("%d updates mean %d operations and have %d business keys and %d streams", updates, len(named), len(meant), len(streams))
	}
}
