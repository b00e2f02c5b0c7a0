package eventlogtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// timesRoundTrip stays within the years 1 to 9999 in UTC: RFC 3339 and most
// databases know no others.
func timesRoundTrip(s *scene) {
	far := time.FixedZone("far", 14*60*60)
	odd := time.FixedZone("odd", -(23*60*60 + 59*60 + 59)) // RFC 3339 has no seconds in a zone
	times := []time.Time{
		time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC),
		time.Date(1, 1, 1, 14, 0, 0, 2, far), // close to the first instant in UTC
		time.Date(1, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(1677, 9, 21, 0, 12, 43, 145224191, time.UTC), // one before the first UnixNano
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Unix(0, 0),
		time.Unix(0, 1),
		time.Unix(-1, 1),
		time.Date(2026, 3, 29, 2, 30, 0, 100, far),
		time.Date(2026, 3, 1, 0, 0, 0, 120000000, odd),
		time.Date(2026, 3, 1, 0, 0, 0, 0, time.Local),
		time.Date(2262, 4, 11, 23, 47, 16, 854775808, time.UTC), // one behind the last UnixNano
		time.Date(2500, 1, 1, 0, 0, 0, 999999999, odd),
		time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Now(), // with a monotonic part
	}
	events := batch("time", len(times))
	for i := range events {
		events[i].Time = times[i]
	}
	s.append("times", eventlog.NoStream, events...)
	s.holds("times", events...)
	for i, r := range s.allOf(len(times)) {
		if r.Time.Before(times[i]) || r.Time.After(times[i]) || r.Time.Location() != time.UTC {
			s.Errorf("read all: time is %s, want %s", r.Time, times[i].UTC())
		}
	}
}

func dataRoundTrips(s *scene) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	random := make([]byte, 1<<20)
	for i, source := 0, rand.New(rand.NewPCG(1, 2)); i < len(random); i++ {
		random[i] = byte(source.Uint32())
	}
	events := []eventlog.Proposed{proposed("nil")}
	events[0].Data = nil
	for _, data := range []string{
		"", "\x00", "\x00\x00tail", "text\x00", "\n", "\r\n", " ", "null", `""`, `{"a": 1.0e2 , "b":"\u00e9"}`,
		"é e\u0301 \U0001f600 \u202e \ufeff \u2028", "\xff\xfe", "\xed\xa0\x80", "'; DROP TABLE events; --", `\x00 %s %d \`,
		string(every), string(random), strings.Repeat("é", 1<<19),
	} {
		events = append(events, proposed(data))
	}
	s.append("data", eventlog.NoStream, events...)
	s.holds("data", events...)
	for i, r := range s.allOf(len(events)) {
		if r.Data == nil || !bytes.Equal(r.Data, events[i].Data) {
			s.Errorf("read all: event %d has %d bytes (nil: %t), want %d", i, len(r.Data), r.Data == nil, len(events[i].Data))
		}
	}
}

func idsAndTypesRoundTrip(s *scene) {
	types := []string{
		"T", "UpdateReceived", "updatereceived", "a.b/c:v1", "$internal", "%_", `'"`, `\`, "[]{}<>", "!", "~",
		strings.Repeat("T", eventlog.MaxTypeName),
	}
	ids := []eventlog.EventID{
		{15: 1}, {0: 1}, {0: 0x80}, {7: 0xff}, {8: 0xff},
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1},
		{'i', 'd', 0, '\'', '"', '\\', '\n', 0xc3, 0x28},
	}
	events := batch("id", max(len(types), len(ids)))
	for i := range events {
		events[i].Type = types[i%len(types)]
		if i < len(ids) {
			events[i].ID = ids[i]
		}
	}
	s.append("ids", eventlog.NoStream, events...)
	s.holds("ids", events...)
}

func hostileStreamNames(s *scene) {
	longest := strings.Repeat("l", eventlog.MaxStreamName)
	names := []string{
		"a", "A", "aa", "aA", "a-", "a-1", "a-10", "a-1-", "a_1", "a%1", "a%", "a_", "%", "_", "%%", "*", "?", "a*", "[a]", "a.1",
		"'", "''", `"`, "`", `\`, `\'`, "';drop/**/table/**/events;--", `");--`, "--", ";", "$a", "$$a", "$all", "$streams",
		"/", "../a", "a/../b", "./a", "/etc/passwd", `C:\a`, "a/b", "a//b", "%2F", "a%2Fb", "a%00", "a+b", "a&b=c#d",
		"update-123456-1", "update-123456-11", "update--1-1", "0", "00", "-0", "1e3", "NULL", "null", "true", "{}", "{{a}}", "<a>", "!", "~", "@a",
		longest, longest[1:], longest[1:] + "L", longest[1:] + "m",
	}
	events := make([]eventlog.Proposed, len(names))
	for i, name := range names {
		events[i] = proposed(name)
		at := s.append(name, eventlog.NoStream, events[i])
		if at.Revision != 0 {
			s.Errorf("first event on %q has revision %d", name, at.Revision)
		}
	}
	for i, name := range names {
		s.holds(name, events[i])
	}
	for i, r := range s.allOf(len(names)) {
		if r.Stream != names[i] {
			s.Errorf("read all: stream is %q, want %q", r.Stream, names[i])
		}
	}
}

// callerKeepsBytes: what the caller does with its slices after an append is not
// history.
func callerKeepsBytes(s *scene) {
	events := batch("mine", 2)
	want := slices.Clone(events)
	for i := range want {
		want[i].Data = slices.Clone(want[i].Data)
	}
	s.append("mine", eventlog.NoStream, events...)
	for i := range events {
		for j := range events[i].Data {
			events[i].Data[j] = '!'
		}
		events[i].ID, events[i].Type = newID(), "Changed"
	}
	s.holds("mine", want...)
}

// readerKeepsBytes: what a reader has kept stays as it was while it, and
// others, read on.
func readerKeepsBytes(s *scene) {
	var want []eventlog.Proposed
	for i := range 20 {
		want = append(want, proposed(fmt.Sprintf("%02d %s", i, strings.Repeat("k", 19-i))))
	}
	s.append("kept", eventlog.NoStream, want...)
	kept := slices.Concat(s.stream("kept"), s.all())
	s.stream("kept")
	s.append("kept", eventlog.Any, proposed("later"))
	s.all()
	for i, r := range kept {
		if why := differs(r, "kept", want[i%len(want)]); why != "" {
			s.Errorf("event %d, after more was read: %s", i, why)
		}
	}
}
