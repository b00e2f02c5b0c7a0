package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestT07_UpdateIDsMayDropAndT08_ComeInAnyOrder(t *testing.T) {
	streams := map[string]bool{}
	for _, id := range []int64{727334708, 117314199, 117314201, 117314200, 117314198} {
		u := mustParse(t, 7, fmt.Sprintf(`{"update_id":%d,"message":{"text":"x"}}`, id))
		if u.ID != id || streams[u.Key().Stream()] {
			t.Errorf("update %d is %d on %s", id, u.ID, u.Key().Stream())
		}
		streams[u.Key().Stream()] = true
	}
}

func TestT09_T10_TwoBotsWithOneUpdateIDAreTwoJobs(t *testing.T) {
	const raw = `{"update_id":42,"message":{"text":"x"}}`
	one, two := mustParse(t, 1, raw), mustParse(t, 2, raw)
	if one.Key() == two.Key() || one.Key().Stream() == two.Key().Stream() || one.VariantKey() == two.VariantKey() {
		t.Errorf("bots 1 and 2 share %s", one.Key())
	}
	plan1, plan2 := DefaultPlan(one.Key(), one), DefaultPlan(two.Key(), two)
	if OperationID(1, plan1.Action, plan1.BusinessKey) == OperationID(2, plan2.Action, plan2.BusinessKey) {
		t.Error("bots 1 and 2 share an operation")
	}
}

func TestT11_AnotherContentUnderOneIDIsStoredAsItself(t *testing.T) {
	first := mustParse(t, 7, `{"update_id":42,"message":{"text":"June"}}`)
	later := mustParse(t, 7, `{"update_id":42,"message":{"text":"July"}}`)
	if first.Key() != later.Key() || first.Fingerprint == later.Fingerprint {
		t.Fatal("the two updates are not in conflict")
	}
	s := fold(Receive(first, first.Key()))
	events := s.Conflict(later, later.VariantKey())
	want := KeyConflicted{Fingerprint: later.Fingerprint, StoredAs: later.VariantKey().String()}
	if len(events) != 1 || events[0] != want {
		t.Fatalf("decided %v, want %v", events, want)
	}
	s = s.Evolve(events[0], epoch)
	if again := s.Conflict(later, later.VariantKey()); again != nil {
		t.Errorf("the same conflict is told twice: %v", again)
	}
	third := mustParse(t, 7, `{"update_id":42,"message":{"text":"August"}}`)
	if s.Conflict(third, third.VariantKey()) == nil || third.VariantKey() == later.VariantKey() {
		t.Error("a third content under one id is lost")
	}
	plan1, plan2 := DefaultPlan(first.Key(), first), DefaultPlan(later.VariantKey(), later)
	if !plan1.Effect || !plan2.Effect || plan1.BusinessKey == plan2.BusinessKey {
		t.Errorf("the two updates make one lead: %v, %v", plan1, plan2)
	}
}

func TestT12_ARespelledDeliveryIsADuplicate(t *testing.T) {
	first := mustParse(t, 7, `{"update_id":42,"message":{"text":"Grüße 😀","chat":{"id":-5,"type":"private"}}}`)
	for _, respelled := range []string{
		`{"message":{"chat":{"type":"private","id":-5},"text":"Grüße 😀"},"update_id":42}`,
		"{\r\n\t\"update_id\" : 42 ,\n \"message\" : { \"text\" : \"Grüße 😀\" , \"chat\" : { \"id\" : -5 , \"type\" : \"private\" } } }\n",
		`{"update_id":42,"message":{"text":"Gr\u00fc\u00dfe \ud83d\uDE00","chat":{"id":-5,"type":"\u0070rivate"}}}`,
	} {
		u := mustParse(t, 7, respelled)
		if u.Fingerprint != first.Fingerprint || u.Key() != first.Key() || u.Kind != first.Kind || u.Chat != first.Chat {
			t.Errorf("%s is %+v, want a duplicate of %+v", respelled, u, first)
		}
	}
}

func TestT13_IDsAreExactTo64Bits(t *testing.T) {
	for _, id := range []int64{0, 1, 1 << 31, 1<<31 + 1, 1<<52 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		for _, id := range []int64{id, -id, math.MinInt64} {
			u := mustParse(t, 7, fmt.Sprintf(`{"update_id":%d,"message":{"chat":{"id":%d},"from":{"id":%d}}}`, id, id, id))
			if u.ID != id || u.Chat != id || u.User != id {
				t.Errorf("%d became update %d, chat %d, user %d", id, u.ID, u.Chat, u.User)
			}
			s := throughTheLog(t, Receive(u, u.Key()))
			if s.Key.Update != id || s.Chat != id || s.User != id {
				t.Errorf("the log made of %d: %+v", id, s.Key)
			}
			if k, err := ParseKey(u.Key().String()); err != nil || k.Update != id {
				t.Errorf("the key made of %d: %v, %v", id, k, err)
			}
		}
	}
}

func TestT22_AKindNobodyKnowsIsAccepted(t *testing.T) {
	tests := []struct{ raw, kind string }{
		{`{"update_id":1,"hologram":{"chat":{"id":5},"from":{"id":6}}}`, "hologram"},
		{`{"update_id":1}`, NoKind},
		{`{"hologram":null,"update_id":1}`, "hologram"},
		{`{"update_id":1,"hologram":{},"message":{}}`, "message"},
		{`{"update_id":1,"message":{},"hologram":{}}`, "message"},
		{`{"update_id":1,"hologram":{},"telegraph":{}}`, "hologram"},
		{`{"update_id":1,"poll":{},"message":{}}`, "poll"},
		{`{"update_id":1,"":{}}`, OddKind},
		{`{"update_id":1,"none":1,"poll":{}}`, "poll"},
		{`{"update_id":1,"` + strings.Repeat("x", MaxKind) + `":{}}`, strings.Repeat("x", MaxKind)},
		{`{"update_id":1,"` + strings.Repeat("x", MaxKind+1) + `":{}}`, OddKind},
		{`{"update_id":1,"é":{}}`, OddKind},
		{`{"update_id":1,"my phone is 123":{}}`, OddKind},
		{`{"update_id":1,"a-b":{}}`, OddKind},
		{`{"update_id":1,"Message":{"text":"x"}}`, "Message"},
	}
	for _, test := range tests {
		u := mustParse(t, 7, test.raw)
		if u.Kind != test.kind {
			t.Errorf("%s has kind %q, want %q", test.raw, u.Kind, test.kind)
		}
		if KnownKind(u.Kind) {
			continue
		}
		plan := DefaultPlan(u.Key(), u)
		if events := Start(plan); plan.Effect || len(events) != 1 {
			t.Errorf("%s is planned as %+v and starts with %v, want one event that ends it", test.raw, plan, events)
		}
	}
	if u := mustParse(t, 7, tests[0].raw); u.Chat != 5 || u.User != 6 {
		t.Errorf("chat and user of an unknown kind are %d and %d", u.Chat, u.User)
	}
	odd := mustParse(t, 7, `{"update_id":1,"hologram":{"chat":{"id":"five"},"user_chat_id":5,"from":{"id":null},"user":{"id":6}}}`)
	if odd.Chat != 5 || odd.User != 6 {
		t.Errorf("chat and user are %d and %d where the usual places have no number", odd.Chat, odd.User)
	}
}

func TestT23_WrongShapesAreStoredWhereTheIDIsUsable(t *testing.T) {
	accepted := []string{
		`{"update_id":1,"message":"text"}`, `{"update_id":1,"message":[]}`, `{"update_id":1,"message":null}`, `{"update_id":1,"message":7}`,
		`{"update_id":1,"message":{"chat":"x","from":[]}}`, `{"update_id":1,"message":{"chat":{"id":"5"},"from":{"id":1.5}}}`,
		`{"update_id":1,"message":{"chat":{"id":9223372036854775808}}}`, `{"update_id":-1}`, `{"update_id":0}`, `{"update_id":-0}`,
		`{"update_id":9223372036854775807}`, `{"update_id":-9223372036854775808}`, `{"message":{},"update_id":1}`,
		`{"update_id":1,"message":7,"id":9}`, `{"update_id":1,"message":{},"id":9}`, `{"update_id":1,"message":{"chat":7,"from":7},"id":9}`,
	}
	for _, raw := range accepted {
		if u := mustParse(t, 7, raw); u.Chat != 0 || u.User != 0 {
			t.Errorf("%s has chat %d and user %d", raw, u.Chat, u.User)
		}
	}
	for _, raw := range []string{
		`{}`, `{"message":{}}`, `{"Update_id":1}`, `{"update_id":"1"}`, `{"update_id":1.0}`, `{"update_id":1.5}`, `{"update_id":1e3}`,
		`{"update_id":null}`, `{"update_id":true}`, `{"update_id":[1]}`, `{"update_id":{"id":1}}`,
		`{"update_id":9223372036854775808}`, `{"update_id":-9223372036854775809}`, `{"update_id":99999999999999999999999999}`,
		`{"update_id":1,"update_id":1}`, `{"update_id":1,"update_id":2}`, `{"update_id":1,"update\u005fid":2}`, `{"\u0075pdate_id":1,"update_id":1}`,
		`{"message":{"update_id":1}}`,
	} {
		refused(t, []byte(raw))
	}
	if u := mustParse(t, 7, `{"update\u005fid":42}`); u.ID != 42 {
		t.Errorf("an escaped name is not read: %+v", u)
	}
}

func TestT24_WhatIsNoJSONObjectIsRefused(t *testing.T) {
	deep := func(n int, open, inner, end string) string {
		return `{"update_id":1,"x":` + strings.Repeat(open, n) + inner + strings.Repeat(end, n) + "}"
	}
	for _, raw := range []string{
		"", " ", "\n", "{", `{"update_id":1`, `{"update_id":1,}`, `{"update_id":1 "x":2}`, `{"update_id"}`, `{update_id:1}`, `{'update_id':1}`,
		`[{"update_id":1}]`, `"update_id"`, `1`, `null`, `true`,
		"\ufeff" + `{"update_id":1}`, `{"update_id":1}{"update_id":2}`, `{"update_id":1} x`, `{"update_id":1}` + "\x00",
		`{"update_id":1,"x":"` + "\xff" + `"}`, `{"update_id":1,"x":"` + "\xed\xa0\x80" + `"}`, `{"update_id":1,"x":"` + "\n" + `"}`,
		`{"update_id":01}`, `{"update_id":+1}`, `{"update_id":.1}`, `{"update_id":1,"x":NaN}`, `{"update_id":1,"x":"\x"}`, `{"update_id":1,"x":"\u12"}`,
		"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaaV*-HI,I\x8d\xcfLQ\xb22\xac\x05\x00", // gzip without saying so
		deep(100_000, "[", "", "]"), deep(100_000, `{"a":`, "1", "}"), deep(100_000, "[", "", ""), deep(10_000, "[", "", "]"),
	} {
		refused(t, []byte(raw))
	}
	for _, raw := range []string{deep(9_999, "[", "", "]"), deep(9_999, `{"a":`, "1", "}"), " \r\n\t" + `{"update_id":1}` + "\n"} {
		if _, err := ParseUpdate(7, []byte(raw)); err != nil {
			t.Errorf("%.40s… is refused: %v", raw, err)
		}
	}
}

func TestARefusalSaysWhatCameInstead(t *testing.T) {
	for raw, kind := range map[string]string{`[]`: "array", `"x"`: "string", `1`: "number", `null`: "null", `true`: "boolean", `false`: "boolean"} {
		if _, err := ParseUpdate(7, []byte(raw)); err == nil || !strings.Contains(err.Error(), "a JSON "+kind+",") {
			t.Errorf("%s: %v, want a word of the %s", raw, err, kind)
		}
	}
}

func refused(t *testing.T, raw []byte) {
	t.Helper()
	u, err := ParseUpdate(7, raw)
	if !errors.Is(err, ErrNotUpdate) {
		t.Errorf("%.80q is accepted as %+v, %v, want ErrNotUpdate", raw, u, err)
	}
	if err != nil && len(err.Error()) > 200 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestTheBodyIsKeptByteForByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := spell(values(2).Draw(t, "document"), rapid.Uint64().Draw(t, "spelling"))
		raw := []byte(" {\r\n\"update_id\":42,\"message\":" + content + "}\t")
		u, err := ParseUpdate(7, slices.Clone(raw))
		if err != nil {
			t.Fatal(err)
		}
		wire, data, err := Encode(Receive(u, u.Key()))
		if err != nil {
			t.Fatal(err)
		}
		e, err := Decode(wire, data)
		if err != nil {
			t.Fatal(err)
		}
		s := fold(e)
		if back := s.AsUpdate(); !bytes.Equal(back.Raw, raw) || back.Fingerprint != u.Fingerprint || back.Kind != u.Kind ||
			back.Chat != u.Chat || back.User != u.User || back.ID != 42 || back.Bot != 7 {
			t.Fatalf("%q became %q", raw, back.Raw)
		}
		if len(data) > 2*len(raw)+400 { // the log takes 4 MiB an event, ingress 1 MiB a body
			t.Fatalf("%d bytes became %d in the log", len(raw), len(data))
		}
	})
}

// throughTheLog is the state after one event that was encoded and decoded.
func throughTheLog(t *testing.T, e Event) State {
	t.Helper()
	wire, data, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(wire, data)
	if err != nil {
		t.Fatal(err)
	}
	return fold(back)
}

// fold is the state after the events, all recorded at epoch.
func fold(events ...Event) State {
	s := State{}
	for _, e := range events {
		s = s.Evolve(e, epoch)
	}
	return s
}

// TestKindsAreThoseOfTheBotAPI compares with one sample of each kind in the Bot
// API's schema, version 10.1.
func TestKindsAreThoseOfTheBotAPI(t *testing.T) {
	var sampled []string
	for kind, u := range sampleUpdates(t) {
		sampled = append(sampled, kind)
		if u.Kind != kind {
			t.Errorf("a %s is taken for a %s", kind, u.Kind)
		}
		chat, user := int64(-1002000000001), int64(7000000002)
		switch kind {
		case "business_connection":
			chat = 3003
		case "chosen_inline_result", "inline_query", "managed_bot", "poll_answer", "pre_checkout_query", "purchased_paid_media", "shipping_query":
			chat = 0
		case "chat_boost", "deleted_business_messages", "message_reaction_count", "removed_chat_boost":
			user = 0
		case "poll":
			chat, user = 0, 0
		}
		if u.Chat != chat || u.User != user || u.ID != 727334708 {
			t.Errorf("a %s has chat %d and user %d, want %d and %d", kind, u.Chat, u.User, chat, user)
		}
	}
	slices.Sort(sampled)
	if !slices.Equal(sampled, kinds) {
		t.Errorf("kinds are %q\nwant %q", kinds, sampled)
	}
	for _, kind := range []string{"", NoKind, "update_id", "Message", "hologram"} {
		if KnownKind(kind) {
			t.Errorf("%q is known as a kind", kind)
		}
	}
}

// sampleUpdates are updates of each kind with the required fields of the Bot
// API's schema.
func sampleUpdates(t testing.TB) map[string]Update {
	t.Helper()
	files, err := filepath.Glob("testdata/updates/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sample updates: %v", err)
	}
	samples := map[string]Update{}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		samples[strings.TrimSuffix(filepath.Base(path), ".json")] = mustParse(t, 7000000001, string(raw))
	}
	return samples
}

func TestAnyBytesArePlannedOrRefusedWithoutPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		checkParse(t, raw)
		checkParse(t, []byte(`{"update_id":1,"message":`+string(raw)+`}`))
	})
}

// checkParse holds for every body whatsoever.
func checkParse(t interface {
	Helper()
	Fatalf(string, ...any)
}, raw []byte) {
	t.Helper()
	before := bytes.Clone(raw)
	u, err := ParseUpdate(7, raw)
	if !bytes.Equal(raw, before) {
		t.Fatalf("%q was changed to %q", before, raw)
	}
	if err != nil {
		if !errors.Is(err, ErrNotUpdate) {
			t.Fatalf("%q fails with %v", raw, err)
		}
		return
	}
	if !bytes.Equal(u.Raw, raw) || len(u.Fingerprint) != 64 || len(u.Kind) > MaxKind || !json.Valid(raw) {
		t.Fatalf("%q is accepted as %+v", raw, u)
	}
	doc := outline(raw)
	form := doc.canonical()
	if again := outline(form); !json.Valid(form) || !bytes.Equal(again.canonical(), form) {
		t.Fatalf("%q has the canonical form %q, which is none", raw, form)
	}
	if events := Start(DefaultPlan(u.Key(), u)); len(events) > 1 {
		t.Fatalf("%q starts with %v", raw, events)
	}
	if key, err := BusinessKey(u.Key(), u); err == nil && key == "" {
		t.Fatalf("%q has an empty business key", raw)
	}
}
