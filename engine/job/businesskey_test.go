package job

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func businessKeyOf(t testing.TB, bot, update int64, content string) string {
	t.Helper()
	u := mustParse(t, bot, fmt.Sprintf(`{"update_id":%d,%s}`, update, content))
	key, err := BusinessKey(u.Key(), u)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func press(chat, message int64, rest string) string {
	return fmt.Sprintf(`"callback_query":{"id":"q","from":{"id":6},"message":{"message_id":%d,"date":1,"chat":{"id":%d}}%s}`, message, chat, rest)
}

func TestT40_ADoubleTapIsOneOperation(t *testing.T) {
	first := businessKeyOf(t, 7, 1, press(5, 9, `,"data":"order"`))
	if second := businessKeyOf(t, 7, 2, press(5, 9, `,"data":"order"`)); second != first {
		t.Errorf("two taps are %s and %s", first, second)
	}
	other := map[string]string{
		"another button":       businessKeyOf(t, 7, 2, press(5, 9, `,"data":"cancel"`)),
		"an empty button":      businessKeyOf(t, 7, 2, press(5, 9, `,"data":""`)),
		"another message":      businessKeyOf(t, 7, 2, press(5, 10, `,"data":"order"`)),
		"another chat":         businessKeyOf(t, 7, 2, press(-5, 9, `,"data":"order"`)),
		"another bot":          businessKeyOf(t, 8, 1, press(5, 9, `,"data":"order"`)),
		"a game":               businessKeyOf(t, 7, 2, press(5, 9, `,"game_short_name":"order"`)),
		"an inline message":    businessKeyOf(t, 7, 2, `"callback_query":{"inline_message_id":"9","data":"order"}`),
		"a message, no button": businessKeyOf(t, 7, 1, `"message":{"message_id":9,"chat":{"id":5},"text":"order"}`),
	}
	seen := map[string]string{first: "the first tap"}
	for what, key := range other {
		if same, twice := seen[key]; twice {
			t.Errorf("%s and %s are one operation %s", what, same, key)
		}
		seen[key] = what
	}
}

// TestABusinessKeyNeverChanges: the operation's id is made of it, so another spelling
// would make a second lead for what is open during the upgrade.
func TestABusinessKeyNeverChanges(t *testing.T) {
	for content, want := range map[string]string{
		press(-1005, 99, `,"data":"order"`):                                           `telegram/7000000001/callback/"-1005"/"99"/"data:order"`,
		press(-1005, 99, `,"game_short_name":"order"`):                                `telegram/7000000001/callback/"-1005"/"99"/"game:order"`,
		`"callback_query":{"inline_message_id":"A/B","data":"x"}`:                     `telegram/7000000001/callback-inline/"A/B"/"data:x"`,
		`"callback_query":{"data":"x"}`:                                               `telegram/7000000001/727334708`,
		`"message":{"chat":{"id":-1005},"media_group_id":"G","photo":[{}]}`:           `telegram/7000000001/album/"-1005"/"G"`,
		`"message":{"chat":{"id":-1005},"media_group_id":"G","video":{"file_id":""}}`: `telegram/7000000001/album/"-1005"/"G"`,
		`"message":{"chat":{"id":-1005},"text":"x"}`:                                  `telegram/7000000001/727334708`,
	} {
		if got := businessKeyOf(t, 7000000001, 727334708, content); got != want {
			t.Errorf("%s is %s, want %s", content, got, want)
		}
	}
}

func TestT47_CallbacksOfMessagesThatAreNotThere(t *testing.T) {
	tests := map[string]struct {
		content string
		shared  bool // by two presses
	}{
		"no longer accessible": {`"callback_query":{"message":{"message_id":9,"date":0,"chat":{"id":5}},"data":"x"}`, true},
		"inline":               {`"callback_query":{"inline_message_id":"AAA","data":"x"}`, true},
		"without data":         {`"callback_query":{"message":{"message_id":9,"chat":{"id":5}}}`, true},
		"neither":              {`"callback_query":{"data":"x"}`, false},
		"message without chat": {`"callback_query":{"message":{"message_id":9},"data":"x"}`, false},
		"message null":         {`"callback_query":{"message":null,"inline_message_id":"","data":"x"}`, false},
		"T48: message_id 0":    {press(5, 0, `,"data":"x"`), false},
	}
	for name, test := range tests {
		one, two := businessKeyOf(t, 7, 1, test.content), businessKeyOf(t, 7, 2, test.content)
		if (one == two) != test.shared {
			t.Errorf("%s: two presses have the keys %s and %s", name, one, two)
		}
		if !test.shared && (one != "telegram/7/1" || two != "telegram/7/2") {
			t.Errorf("%s: the keys are %s and %s, want the event keys", name, one, two)
		}
	}
	accessible := businessKeyOf(t, 7, 1, press(5, 9, `,"data":"x"`))
	if gone := businessKeyOf(t, 7, 2, tests["no longer accessible"].content); gone != accessible {
		t.Errorf("a button changes its key from %s to %s when its message is gone", accessible, gone)
	}
}

func TestT48_EqualMessageIDsInTwoChatsDoNotCollide(t *testing.T) {
	if one, two := businessKeyOf(t, 7, 1, press(5, 9, "")), businessKeyOf(t, 7, 2, press(6, 9, "")); one == two {
		t.Errorf("two chats share %s", one)
	}
	if one, two := businessKeyOf(t, 7, 1, press(1, 11, "")), businessKeyOf(t, 7, 2, press(11, 1, "")); one == two {
		t.Errorf("chat and message are mixed up in %s", one)
	}
}

func TestT44_AnAlbumIsOneOperation(t *testing.T) {
	member := func(bot, update, chat int64, group, rest string) string {
		return businessKeyOf(t, bot, update, fmt.Sprintf(`"message":{"message_id":%d,"chat":{"id":%d},"media_group_id":%q,"photo":[{"file_id":"p"}]%s}`, update, chat, group, rest))
	}
	first := member(7, 1, 5, "G", "")
	if third := member(7, 3, 5, "G", `,"caption":"x"`); third != first {
		t.Errorf("two members of an album are %s and %s", first, third)
	}
	for _, other := range []string{member(7, 2, 5, "H", ""), member(7, 2, 6, "G", ""), member(8, 1, 5, "G", ""), member(7, 1, 5, "", "")} {
		if other == first {
			t.Errorf("two albums share %s", first)
		}
	}
	u := mustParse(t, 7, `{"update_id":1,"message":{"chat":{"id":5},"media_group_id":"G","photo":[{"file_id":"p"}]}}`)
	if plan := DefaultPlan(u.Key(), u); !plan.Effect || plan.BusinessKey != first {
		t.Errorf("a member of an album is planned as %+v", plan)
	}
}

func TestBusinessKeysOfOtherKindsAreEventKeys(t *testing.T) {
	for kind, u := range sampleUpdates(t) {
		key, err := BusinessKey(u.VariantKey(), u)
		if err != nil || (key == u.VariantKey().String()) != (kind != "callback_query") {
			t.Errorf("the business key of a %s is %s, %v", kind, key, err)
		}
	}
}

func TestACallbackOfWrongShapeHasNoBusinessKey(t *testing.T) {
	for _, query := range []string{
		`"` + secret + `"`, `[]`, `{"data":7}`, `{"message":"` + secret + `"}`, `{"message":{"message_id":"` + secret + `"}}`,
		`{"message":{"message_id":1.5}}`, `{"inline_message_id":{}}`, `{"game_short_name":[]}`,
	} {
		u := mustParse(t, 7, `{"update_id":1,"callback_query":`+query+`}`)
		key, err := BusinessKey(u.Key(), u)
		if err == nil || key != "" || strings.Contains(err.Error(), secret) || !strings.HasPrefix(err.Error(), "callback_query: ") {
			t.Errorf("callback_query %s has the key %q, %v", query, key, err)
		}
	}
	u := mustParse(t, 7, `{"update_id":1,"message":"x"}`)
	if key, err := BusinessKey(u.Key(), u); err == nil {
		t.Errorf("a message of wrong shape has the key %s", key)
	}
}

func TestPartsOfABusinessKeyAreNeverConfused(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"a", "b"}, {"a/b"}, {`a"/"b`}, {`a\"/"b`}, {"a", "b", ""}, {"é"}, {`\u00e9`}} {
		key := businessKey(1, "album", parts...)
		if other, twice := seen[key]; twice {
			t.Errorf("%q and %q are %s", parts, other, key)
		}
		seen[key] = parts
	}
	part := rapid.OneOf(rapid.SampledFrom([]string{"", "/", `"`, `"/"`, `\`, `\"`, "a", "a/b"}), rapid.StringN(0, 5, -1))
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(part, 0, 3).Draw(t, "a"), rapid.SliceOfN(part, 0, 3).Draw(t, "b")
		same := fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b)
		if (businessKey(1, "album", a...) == businessKey(1, "album", b...)) != same {
			t.Fatalf("%q and %q are %s", a, b, businessKey(1, "album", a...))
		}
		if businessKey(1, "album", a...) == (Key{Bot: 1, Update: 2}).String() {
			t.Fatalf("%q is an event key", a)
		}
	})
}
