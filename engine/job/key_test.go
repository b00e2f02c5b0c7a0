package job

import (
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func drawDuration(t *rapid.T, label string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, label))
}

// keys draws keys that are likely to be confused: few distinct small numbers,
// both signs, the extremes, and variants of digits only.
func keys() *rapid.Generator[Key] {
	number := rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, -1, 11, -11, 1 << 52, math.MaxInt64, math.MinInt64}),
		rapid.Int64(),
	)
	variant := rapid.OneOf(
		rapid.SampledFrom([]string{"", "1111111111111111", "0000000000000000", "abcdefabcdefabcd"}),
		rapid.Map(rapid.Uint64(), func(n uint64) string { return fmt.Sprintf("%016x", n) }),
	)
	return rapid.Custom(func(t *rapid.T) Key {
		return Key{Bot: number.Draw(t, "bot"), Update: number.Draw(t, "update"), Variant: variant.Draw(t, "variant")}
	})
}

func TestTwoKeysNeverShareANameOrAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := keys().Draw(t, "a"), keys().Draw(t, "b")
		if same := a == b; (a.String() == b.String()) != same || (a.Stream() == b.Stream()) != same {
			t.Fatalf("%#v and %#v: %s %s, %s %s", a, b, a, b, a.Stream(), b.Stream())
		}
		if !strings.HasPrefix(a.Stream(), JobStreams) || len(a.Stream()) > 200 {
			t.Fatalf("%s is no job stream", a.Stream())
		}
	})
}

func TestKeysAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := keys().Draw(t, "key")
		if got, err := ParseKey(k.String()); err != nil || got != k {
			t.Fatalf("ParseKey(%q) is %#v, %v", k, got, err)
		}
	})
}

func TestKeysInWords(t *testing.T) {
	tests := []struct {
		key          Key
		text, stream string
	}{
		{Key{Bot: 7, Update: 42}, "telegram/7/42", "update-7-42"},
		{Key{Bot: -7, Update: -42}, "telegram/-7/-42", "update--7--42"},
		{Key{Bot: math.MaxInt64, Update: math.MinInt64}, "telegram/9223372036854775807/-9223372036854775808", "update-9223372036854775807--9223372036854775808"},
		{Key{Bot: 7, Update: 42, Variant: "0123456789abcdef"}, "telegram/7/42/0123456789abcdef", "update-7-42-0123456789abcdef"},
	}
	for _, test := range tests {
		if test.key.String() != test.text || test.key.Stream() != test.stream {
			t.Errorf("%#v is %s on %s, want %s on %s", test.key, test.key, test.key.Stream(), test.text, test.stream)
		}
	}
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	for _, s := range []string{
		"", "telegram", "telegram/1", "telegram/1/", "telegram//1", "/1/2", "viber/1/2", "Telegram/1/2",
		"telegram/1/2/", "telegram/1/2/abc", "telegram/1/2/0123456789abcdeg", "telegram/1/2/0123456789abcdef0",
		"telegram/1/2/0123456789abcdef/3", "telegram/1/9223372036854775808", "telegram/1/-9223372036854775809",
		"telegram/x/2", "telegram/1/1.0", "telegram/1/1e3", "telegram/ 1/2", "telegram/1/2 ", "update-1-2",
		// Second spellings of a key would lead to streams that do not exist.
		"telegram/+1/2", "telegram/1/+2", "telegram/01/2", "telegram/1/-0", "telegram/1/2/0123456789ABCDEF",
	} {
		if k, err := ParseKey(s); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", s)) {
			t.Errorf("ParseKey(%q) is %#v, %v, want an error that names it", s, k, err)
		}
	}
}

func TestABadKeySaysWhatIsWrongWithIt(t *testing.T) {
	for s, want := range map[string]string{
		"viber/1/2":                       "is not of the form telegram/<bot>/<update_id>",
		"telegram/1":                      "is not of the form telegram/<bot>/<update_id>",
		"telegram/1/2/0123456789abcdef/3": "is not of the form telegram/<bot>/<update_id>",
		"telegram/x/2":                    "bot and update_id are whole numbers",
		"telegram/1/x":                    "bot and update_id are whole numbers",
		"telegram/1/2/abc":                "the variant is 16 small hexadecimal digits",
		"telegram/1/2/0123456789ABCDEF":   "the variant is 16 small hexadecimal digits",
		"telegram/+1/2":                   "is spelled telegram/1/2",
		"telegram/-0/2":                   "is spelled telegram/0/2",
		"telegram/1/007/0123456789abcdef": "is spelled telegram/1/7/0123456789abcdef",
	} {
		if _, err := ParseKey(s); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("ParseKey(%q): %v, want %q", s, err, want)
		}
	}
}

// TestOperationIDNeverChanges: a changed id would make a second lead for every
// job that is open during the upgrade.
func TestOperationIDNeverChanges(t *testing.T) {
	tests := []struct {
		bot              int64
		action, business string
		want             string
	}{
		{7000000001, CreateLead, "telegram/7000000001/727334708", "14ad4d51-7652-595d-bb3e-098322c09290"},
		{-1, "", "", "0d21d8e1-49a0-5dab-8729-8ad99b937c67"},
		{math.MinInt64, CreateLead, `telegram/1/callback/"-5"/"7"/"data:é"`, "509cb84f-738e-5722-b788-bb91cad5d115"},
	}
	for _, test := range tests {
		if got := OperationID(test.bot, test.action, test.business); got != test.want {
			t.Errorf("OperationID(%d, %q, %q) is %s, want %s", test.bot, test.action, test.business, got, test.want)
		}
	}
}

func TestOperationIDIsTheUUIDOfItsParts(t *testing.T) {
	namespace := uuid.MustParse("6f1d9a52-0b7e-4c3d-9c41-5e8827d4b106")
	external := regexp.MustCompile(`^[A-Za-z0-9_-]{36}$`)
	rapid.Check(t, func(t *rapid.T) {
		bot, action, business := rapid.Int64().Draw(t, "bot"), rapid.String().Draw(t, "action"), rapid.String().Draw(t, "business")
		got := OperationID(bot, action, business)
		if want := uuid.NewSHA1(namespace, fmt.Appendf(nil, "%d\n%s\n%s", bot, action, business)).String(); got != want {
			t.Fatalf("OperationID(%d, %q, %q) is %s, want %s", bot, action, business, got, want)
		}
		if u := uuid.MustParse(got); u.Version() != 5 || u.Variant() != uuid.RFC4122 || !external.MatchString(got) {
			t.Fatalf("%s is no UUIDv5 that a CRM takes as external id", got)
		}
	})
}

func TestOperationIDDependsOnEveryPart(t *testing.T) {
	seen := map[string]string{}
	for _, bot := range []int64{1, 11, -1} {
		for _, action := range []string{"", "1", "create_lead"} {
			for _, business := range []string{"", "1", "1\n1", "telegram/1/1"} {
				parts := fmt.Sprintf("%d, %q, %q", bot, action, business)
				id := OperationID(bot, action, business)
				if other, twice := seen[id]; twice {
					t.Errorf("%s and %s have the id %s", parts, other, id)
				}
				seen[id] = parts
				if stream := OperationStream(id); stream != OperationStreams+id || len(stream) > 200 {
					t.Errorf("%s is no stream name", stream)
				}
			}
		}
	}
}

func TestVariantKeyIsAKeyOfItsOwn(t *testing.T) {
	u := mustParse(t, 7, `{"update_id":42}`)
	k := u.VariantKey()
	if _, err := hex.DecodeString(k.Variant); err != nil || len(k.Variant) != VariantLength || !strings.HasPrefix(u.Fingerprint, k.Variant) || k.Bot != 7 || k.Update != 42 {
		t.Errorf("the variant of %s is %#v", u.Fingerprint, k)
	}
	if back, err := ParseKey(k.String()); err != nil || back != k || k == u.Key() {
		t.Errorf("ParseKey(%s) is %#v, %v", k, back, err)
	}
}

func mustParse(t testing.TB, bot int64, raw string) Update {
	t.Helper()
	u, err := ParseUpdate(bot, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return u
}
