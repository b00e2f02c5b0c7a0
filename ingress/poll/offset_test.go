package poll_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/ingress/poll"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// Whatever Telegram sends is stored as it came, byte for byte, and confirmed: kinds
// that nobody knows and shapes that nobody expects too.
func TestT22_T23_StoredByteForByte(t *testing.T) {
	s := newMemoryScene(t)
	bodies := []string{
		`{"update_id":1,"message":{"text":"canary \u00e9\/ é 😀 \ud83d\ude00"}}`,
		"{ \"update_id\" : 2 ,\n\t\"message\" : { \"a\" : 1.50e+3 , \"a\" : -0.0 } }",
		`{"message":{"text":"<b>&"},"update_id":3}`,
		`{"update_id":4,"hologram":{"chat":{"id":5}}}`,
		`{"update_id":5,"message":"canary"}`,
		`{"update_id":6}`,
		`{"update_id":7,"callback_query":null}`,
		`{"update_id":4503599627370495,"message":{"chat":{"id":-1001234567890123}}}`,
	}
	for i, body := range bodies {
		s.api.PushRaw(int64(i+1), int64(i), body)
	}
	s.api.PushRaw(4503599627370495, 9, bodies[7]) // the id that its body has
	s.start()
	s.await("all are stored", func() bool { got, _ := s.stored(); return len(got) == len(bodies) })
	_, got := s.stored()
	slices.Sort(got)
	slices.Sort(bodies)
	if !slices.Equal(got, bodies) {
		t.Errorf("stored %q, want %q", got, bodies)
	}
	s.awaitConfirmed()
}

// T20: the log refuses an update. Its offset and those behind it are not confirmed,
// and all are stored once the log is back.
func TestT20_OffsetStopsAtWhatIsNotStored(t *testing.T) {
	s := newMemoryScene(t)
	var ids []int64
	for range 5 {
		ids = append(ids, s.push(77))
	}
	s.log.set(func(stream string) error {
		if stream == key(ids[2]).Stream() {
			return fmt.Errorf("append: %w: disk full", eventlog.ErrUnavailable)
		}
		return nil
	}, nil)
	s.start()
	s.await("the first two are confirmed", func() bool { return len(s.api.Pending()) == 3 })
	tries := s.api.Calls("getUpdates")
	s.await("some tries", func() bool { return s.api.Calls("getUpdates") > tries+5 })
	if got := s.api.Pending(); !slices.Equal(got, ids[2:]) {
		t.Fatalf("waiting are %v, want %v", got, ids[2:])
	}
	s.wantStored(ids[:2]...)
	s.log.set(nil, nil)
	s.awaitConfirmed()
	s.wantStored(ids...)
	if s.count(telegram.Unavailable) < 3 || s.count(telegram.Stored) != 5 || s.count(telegram.Duplicate) > 0 {
		t.Errorf("observed %v", s.fetched)
	}
	s.work()
	s.crm.want(t, 5)
}

// An update that cannot be stored, since it has no id, is never confirmed by the
// offset of a later one; and the later ones are stored.
func TestT23_WithoutAnIDNothingBehindItIsConfirmed(t *testing.T) {
	s := newMemoryScene(t)
	s.api.PushRaw(100, 1, `{"update_id":100,"message":{}}`)
	s.api.PushRaw(101, 2, `{"update_id":"canary"}`)
	s.api.PushRaw(102, 3, `{"update_id":102,"message":{}}`)
	s.start()
	s.await("the first is confirmed", func() bool { return len(s.api.Pending()) == 2 })
	s.await("the third is stored", func() bool { got, _ := s.stored(); return len(got) == 2 })
	s.wantStored(100, 102)
	tries := s.api.Calls("getUpdates")
	s.await("some tries", func() bool { return s.api.Calls("getUpdates") > tries+3 })
	if got := s.api.Pending(); !slices.Equal(got, []int64{101, 102}) {
		t.Errorf("waiting are %v", got)
	}
	s.awaitLine("not stored: not an update")
}

// A negative offset would make Telegram forget all but the last updates.
func TestNoOffsetIsNegative(t *testing.T) {
	for _, id := range []int64{-7, -1, 9223372036854775807} {
		t.Run(fmt.Sprint(id), func(t *testing.T) {
			s := newMemoryScene(t)
			s.api.PushRaw(id, 1, fmt.Sprintf(`{"update_id":%d,"message":{}}`, id))
			s.start()
			s.awaitLine("no offset can confirm it")
			s.wantStored(id)
			for _, offset := range s.api.Offsets() {
				if offset != 0 {
					t.Errorf("offset %d", offset)
				}
			}
		})
	}
}

// T07: after a quiet week Telegram begins anew at a lower id, even right below the
// last offset.
func TestT07_IDsBeginAnew(t *testing.T) {
	for _, next := range []int64{117314199, 727334708 - 5, 2000000000} {
		t.Run(fmt.Sprint(next), func(t *testing.T) {
			s := newMemoryScene(t)
			s.api.RestartAt(727334708)
			first := s.push(1)
			s.start()
			s.awaitConfirmed()
			// The call that confirmed ends empty; only then does a week go by.
			calls := s.api.Calls("getUpdates")
			s.await("the next call", func() bool { return s.api.Calls("getUpdates") > calls })
			s.api.RestartAt(next)
			second, third := s.push(2), s.push(3)
			s.await("both are stored", func() bool { got, _ := s.stored(); return len(got) == 3 })
			s.awaitConfirmed()
			s.wantStored(first, second, third)
		})
	}
}

// The end of ctx ends the poller once the batch in hand is durable and confirmed.
func TestStopsWhenTheBatchIsDurable(t *testing.T) {
	s := newMemoryScene(t)
	appending, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.log.set(func(string) error {
		once.Do(func() { close(appending); <-goOn })
		return nil
	}, nil)
	ids := []int64{s.push(1), s.push(1), s.push(1)}
	s.start()
	<-appending
	s.stopping()
	select {
	case err := <-s.ended:
		t.Fatalf("it ended with %v while an append was in hand", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	s.stop()
	s.wantStored(ids...)
	if got := s.api.Pending(); len(got) > 0 {
		t.Errorf("%v are not confirmed", got)
	}
}

// Updates of one chat are stored in their order, whatever the others do.
func TestOrderWithinAChat(t *testing.T) {
	s := newMemoryScene(t)
	want := map[int64][]string{}
	for i := range 90 {
		chat := int64(i % 7)
		want[chat] = append(want[chat], key(s.push(chat)).Stream())
	}
	s.start()
	s.awaitConfirmed()
	streams, bodies := s.stored()
	got := map[int64][]string{}
	for i, body := range bodies {
		for chat := range int64(7) {
			if strings.Contains(body, fmt.Sprintf(`"chat":{"id":%d,`, chat)) {
				got[chat] = append(got[chat], streams[i])
			}
		}
	}
	for chat := range want {
		if !slices.Equal(got[chat], want[chat]) {
			t.Errorf("chat %d: stored in the order %v, want %v", chat, got[chat], want[chat])
		}
	}
}

// T29: what has come together during an outage is fetched fast, none of it lost.
func TestT29_FiveHundredWait(t *testing.T) {
	s := newScene(t, openSQLite(t, logFile(t)))
	var ids []int64
	for i := range int64(500) {
		ids = append(ids, s.push(i))
	}
	began := time.Now()
	s.start()
	s.awaitConfirmed()
	t.Logf("500 updates: durable and confirmed after %s", time.Since(began))
	s.wantStored(ids...)
	s.work()
	s.crm.want(t, 500)
}

// A full backlog leaves the updates with Telegram.
func TestNothingIsFetchedIntoAFullBacklog(t *testing.T) {
	s := newMemoryScene(t)
	var mu sync.Mutex
	full := true
	s.config = func(c *poll.Config) {
		c.Full = func() bool { mu.Lock(); defer mu.Unlock(); return full }
	}
	id := s.push(1)
	s.start()
	s.await("some pauses", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.sleeps) > 3 })
	if n := s.api.Calls("getUpdates"); n > 0 {
		t.Errorf("%d calls", n)
	}
	mu.Lock()
	full = false
	mu.Unlock()
	s.awaitConfirmed()
	s.wantStored(id)
}
