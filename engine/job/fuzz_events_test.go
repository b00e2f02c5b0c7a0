package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzEvents reads any bytes as an event of every type. What can be read is
// written, and read again as the same event; a history of such events folds, and
// as far as the table allows it, to what table and schedule say.
func FuzzEvents(f *testing.F) {
	files, err := filepath.Glob(goldenFolder + "/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wireOf(filepath.Base(path)), data, []byte{0, 3, 7, 8, 12, 3, 4, 9, 10, 1, 2})
	}
	const every = `{"bot":7,"update_id":42,"variant":"0123456789abcdef","fingerprint":"f","kind":"message","update":"{}","worker":"w","attempt":1,` +
		`"lease_until":"2026-07-01T12:00:00.5+02:00","deadline":"0001-01-01T00:00:00Z","not_before":"9999-12-31T23:59:59.999999999-23:59","human":true,` +
		`"doubted_until":"2026-07-01T12:00:00+00:00","reason":"\ud800","crm_id":"1","how":"create","by":"ann","stored_as":"x","holder":{"bot":1},"requeues":-1}`
	for _, history := range [][]byte{{0, 3, 4, 5, 3, 6, 3, 7, 3, 8, 8, 12, 3, 13, 14, 11, 10, 10, 2, 2, 1}, {0, 3, 8, 9, 10, 1}, {15, 9, 9, 0, 0, 14}, {}} {
		f.Add("JobForgotten.v1", []byte(every), history)
	}
	f.Add("UpdateReceived.v2", []byte(`null`), []byte{0})
	f.Fuzz(func(t *testing.T, name string, data, history []byte) {
		readable := map[string]Event{}
		for _, w := range append(slices.Clone(wires), wire{name: name}) {
			if e := checkCodec(t, w.name, data); e != nil {
				readable[w.name] = e
			}
		}
		var events []Event
		for _, b := range history[:min(len(history), 64)] {
			if e := readable[wires[int(b)%len(wires)].name]; e != nil {
				events = append(events, e)
			}
		}
		checkFold(t, events)
	})
}

// checkCodec is the event that the bytes are under the name; nil when they are
// none.
func checkCodec(t *testing.T, name string, data []byte) Event {
	t.Helper()
	e, err := Decode(name, data)
	var unknown *UnknownTypeError
	if known := slices.ContainsFunc(wires, func(w wire) bool { return w.name == name }); errors.As(err, &unknown) == known {
		t.Fatalf("%q is a type of this release: %t, and reading it gives %v", name, known, err)
	}
	if err != nil {
		if e != nil || unknown == nil && !strings.Contains(err.Error(), name) || unknown != nil && unknown.Type != name {
			t.Fatalf("%q under %q gives %v with the error %v", data, name, e, err)
		}
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		t.Fatalf("%q is read as %#v and is no JSON object: %v", data, e, err)
	}
	wire, written, err := Encode(e)
	if err != nil {
		t.Fatalf("%#v was read from %q and cannot be written: %v", e, data, err)
	}
	again, err := Decode(wire, written)
	if err != nil || !reflect.DeepEqual(inUTC(again), inUTC(e)) {
		t.Fatalf("%#v was written as %s and read as %#v, %v", e, written, again, err)
	}
	if _, rewritten, err := Encode(again); err != nil || !bytes.Equal(rewritten, written) {
		t.Fatalf("%s was read and written as %s, %v", written, rewritten, err)
	}
	return e
}

// inUTC is the event with its times in one time zone. A zone is an offset to the
// log and an object to Go, and one offset can be several objects.
func inUTC(e Event) Event {
	copied := reflect.New(reflect.TypeOf(e)).Elem()
	copied.Set(reflect.ValueOf(e))
	for _, field := range copied.Fields() {
		if at, ok := field.Interface().(time.Time); ok {
			field.Set(reflect.ValueOf(at.UTC()))
		}
	}
	return copied.Interface().(Event)
}

// checkFold folds the events twice, and keeps every state on the way.
func checkFold(t *testing.T, events []Event) {
	t.Helper()
	states := []State{{}}
	allowed := true
	for i, e := range events {
		before, at := states[i], epoch.Add(time.Duration(i)*time.Minute)
		after := before.Evolve(e, at)
		if after.EventCount != before.EventCount+1 || !after.LastEventAt.Equal(at) || !slices.Contains(Phases, after.Now()) {
			t.Fatalf("event %d, %#v, makes of\n%+v\n%+v", i, e, before, after)
		}
		to, can := next(before.Now(), e.Name())
		allowed = allowed && can
		if schedule, due := Due(e, at); allowed && (after.Now() != to || !scheduled(before, after, schedule, due)) {
			t.Fatalf("event %d, %#v, leads from %s to %s, by the table to %s; due %d at %s, and the fold says %s", i, e, before.Now(), after.Now(), to, schedule, due, after.NotBefore)
		}
		states = append(states, after)
	}
	s := State{}
	for i, e := range events {
		if !reflect.DeepEqual(s, states[i]) {
			t.Fatalf("the state before event %d was\n%+v and is now\n%+v", i, s, states[i])
		}
		s = s.Evolve(e, epoch.Add(time.Duration(i)*time.Minute))
	}
}
