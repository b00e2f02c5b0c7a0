package poll_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadonce/leadonce/ingress/botapi"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
	"github.com/leadonce/leadonce/ingress/poll"
)

// Whoever is not fetched for is told of, by its name and with the mend, and is
// forgotten once it is.
func TestSilenceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := poll.NewWatch(time.Now, 7, 8)
		wantReady := func(about string) {
			t.Helper()
			if err := w.Probe(t.Context()); err != nil {
				t.Errorf("%s: %v", about, err)
			}
		}
		wantTold := func(words ...string) {
			t.Helper()
			err := w.Probe(t.Context())
			for _, word := range words {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("told is %v, want %q", err, word)
				}
			}
		}
		time.Sleep(poll.Tolerable)
		wantReady("at the end of what can be borne")
		w.Fetched(poll.Fetch{Bot: 8})
		w.Fetched(poll.Fetch{Bot: 7, Trouble: poll.WebhookSet})
		time.Sleep(time.Second)
		wantTold("bot 7: no updates fetched for 5m1s: a webhook is set", "`leadonce webhook delete`")
		if err := w.Probe(t.Context()); strings.Contains(err.Error(), "bot 8") {
			t.Errorf("told is %v, and bot 8 is fetched for", err)
		}
		if got := w.Silence(8); got != time.Second {
			t.Errorf("the silence of bot 8 is %s", got)
		}
		w.Fetched(poll.Fetch{Bot: 7, Trouble: poll.Unreachable})
		wantTold("unreachable; see the log")
		w.Fetched(poll.Fetch{Bot: 7})
		wantReady("fetched again")
		time.Sleep(poll.Tolerable + time.Second)
		wantTold("bot 7: no updates fetched for 5m1s: the backlog is full", "; bot 8: ")
	})
}

// Every way in which a call fails is counted under its name.
func TestTroublesAreTold(t *testing.T) {
	s := newMemoryScene(t)
	client, err := botapi.New(botapi.Config{Token: token, BaseURL: s.api.URL})
	s.must(err)
	defer client.Close()
	fetches := make(chan poll.Fetch, 100)
	s.config = func(c *poll.Config) {
		c.Fetched = func(f poll.Fetch) {
			select {
			case fetches <- f:
			default:
			}
		}
	}
	next := func(want poll.Trouble) {
		t.Helper()
		for deadline := time.After(20 * time.Second); ; {
			select {
			case f := <-fetches:
				if f.Bot != bot {
					t.Errorf("it is bot %d's", f.Bot)
				}
				if f.Trouble == want {
					return
				}
				t.Errorf("told is %q, want %q", f.Trouble, want)
				return
			case <-deadline:
				t.Fatalf("waited in vain for %q", want)
			}
		}
	}
	s.push(1)
	s.api.Fail("getUpdates", botapitest.Fault{}, botapitest.Refused(401, "Unauthorized"), botapitest.Fault{Drop: true}, botapitest.Fault{Cut: true},
		botapitest.Fault{RetryAfter: 1}, botapitest.Fault{Status: 502, Body: "<html>"}, botapitest.Refused(409, "Conflict: terminated by other getUpdates request"),
		botapitest.Refused(409, "Conflict: can't use getUpdates method while webhook is active"))
	s.start()
	for _, want := range []poll.Trouble{poll.NoTrouble, poll.Unauthorized, poll.Unreachable, poll.Unreachable, poll.Refused, poll.Refused, poll.OtherConsumer, poll.WebhookSet, poll.NoTrouble} {
		next(want)
	}
}
