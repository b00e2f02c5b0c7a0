package job

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestUnknownEventTypesAreNamed(t *testing.T) {
	for _, wire := range []string{"", "UpdateReceived", "UpdateReceived.v2", "updatereceived.v1", "JobForgotten.v1"} {
		_, err := Decode(wire, []byte("{}"))
		var unknown *UnknownTypeError
		if !errors.As(err, &unknown) || unknown.Type != wire || !strings.Contains(err.Error(), wire) {
			t.Errorf("Decode(%q) fails with %v, want an UnknownTypeError that names it", wire, err)
		}
	}
}

func TestBrokenDataIsNoEvent(t *testing.T) {
	broken := []string{"", " ", "null", "[]", "1", `"x"`, "true", "{", "{}{}", "{}x", "\xff", `{"reason":`}
	for _, w := range wires {
		for _, data := range append(broken, wrongTypes[w.name]) {
			if data == "" && w.name != wires[0].name {
				continue
			}
			e, err := Decode(w.name, []byte(data))
			if err == nil || e != nil || !strings.Contains(err.Error(), w.name) {
				t.Errorf("Decode(%s, %q) is %v, %v, want an error that names the type", w.name, data, e, err)
			}
		}
	}
}

// wrongTypes is data with one member of the wrong type.
var wrongTypes = map[string]string{
	"UpdateReceived.v1":        `{"bot":1.5}`,
	"DeliveryRepeated.v1":      `{"reason":1}`,
	"KeyConflicted.v1":         `{"stored_as":[]}`,
	"JobClaimed.v1":            `{"attempt":"1"}`,
	"ClaimRenewed.v1":          `{"deadline":"yesterday"}`,
	"ClaimReleased.v1":         `{"not_before":0}`,
	"AttemptNotApplied.v1":     `{"not_before":"2026-13-01T00:00:00Z"}`,
	"OutcomeUnknown.v1":        `{"reason":{}}`,
	"ReconciliationNeeded.v1":  `{"human":"yes"}`,
	"LeadConfirmed.v1":         `{"crm_id":4711}`,
	"ReceiptConflicted.v1":     `{"crm_id":4711}`,
	"NoEffectNeeded.v1":        `{"crm_id":4711}`,
	"LeadAbsent.v1":            `{"how":true}`,
	"JobDeadLettered.v1":       `{"by":1}`,
	"JobRequeued.v1":           `{"by":1}`,
	"OperationReserved.v1":     `{"requeues":-0.5}`,
	"ReplyClaimed.v1":          `{"until":"soon"}`,
	"ReplySent.v1":             `{"message_id":"7"}`,
	"ReplyRefused.v1":          `{"reason":1}`,
	"ReplyUnknown.v1":          `{"reason":[]}`,
	"PendingUpdatesDropped.v1": `{"count":"5"}`,
}

func TestAnEventWithoutARowCannotBeEncoded(t *testing.T) {
	if wire, data, err := Encode(named("JobForgotten")); err == nil || wire != "" || data != nil {
		t.Errorf("Encode gives %q %s %v, want an error", wire, data, err)
	}
}

// TestATimeThatJSONCannotSay: RFC 3339 ends with the year 9999.
func TestATimeThatJSONCannotSay(t *testing.T) {
	wire, data, err := Encode(ClaimReleased{NotBefore: epoch.AddDate(8000, 0, 0)})
	if err == nil || wire != "" || data != nil || !strings.Contains(err.Error(), "ClaimReleased.v1") {
		t.Errorf("Encode gives %q %s %v, want an error that names the type", wire, data, err)
	}
}

func TestEncodedEventsStayReadableByPeople(t *testing.T) {
	_, data, err := Encode(DeliveryRepeated{Reason: "<a & b>"})
	if want := `{"reason":"<a & b>"}`; err != nil || string(data) != want {
		t.Errorf("encoded %s, want %s (%v)", data, want, err)
	}
}

// TestEveryEventSurvivesTheLog fills every field by its type.
func TestEveryEventSurvivesTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, w := range wires {
			empty, _ := w.decode([]byte("{}"))
			pointer := reflect.New(reflect.TypeOf(empty))
			fill(t, pointer.Elem())
			before := pointer.Elem().Interface().(Event)
			wire, data, err := Encode(before)
			if err != nil {
				t.Fatal(err)
			}
			after, err := Decode(wire, data)
			if err != nil || !reflect.DeepEqual(after, before) {
				t.Fatalf("%s became %#v, was %#v (%v)", data, after, before, err)
			}
			if !json.Valid(data) {
				t.Fatalf("%s is no JSON", data)
			}
		}
	})
}

func fill(t *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeOf(epoch) {
		v.Set(reflect.ValueOf(epoch.Add(drawDuration(t, "after"))))
		return
	}
	if v.Type() == reflect.TypeFor[Fields]() {
		fields := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "fields")
		v.Set(reflect.ValueOf(NewFields(fields)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	default:
		t.Fatalf("an event has a field of kind %s", v.Kind())
	}
}

func TestANewerReleasesExtraMemberIsNoError(t *testing.T) {
	e, err := Decode("LeadConfirmed.v1", []byte(`{"crm_id":"1","how":"create","since":"v9"}`))
	if want := (LeadConfirmed{CRMID: "1", How: ByCreate}); err != nil || e != want {
		t.Errorf("decoded %#v, %v", e, err)
	}
}
