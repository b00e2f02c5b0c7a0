package poll

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leadonce/leadonce/ingress/botapi"
)

// Trouble is why a bot's updates could not be fetched.
type Trouble string

// The troubles.
const (
	NoTrouble     Trouble = "" // fetched, be it none
	WebhookSet    Trouble = "webhook_set"
	OtherConsumer Trouble = "other_consumer"
	Unauthorized  Trouble = "unauthorized"
	Unreachable   Trouble = "unreachable" // no answer, or one that broke off
	Refused       Trouble = "refused"     // every other answer that has no updates
)

// Troubles lists them.
func Troubles() []Trouble {
	return []Trouble{WebhookSet, OtherConsumer, Unauthorized, Unreachable, Refused}
}

var mends = map[Trouble]string{
	WebhookSet:    "a webhook is set, and Telegram delivers to it alone: run `leadonce webhook delete`, or serve without --poll",
	OtherConsumer: "another program fetches this bot's updates: stop it; two processes of leadonce on one log are safe, but one is enough",
	Unauthorized:  "the token is refused: it was revoked; start again with the one that @BotFather shows now",
}

func troubleOf(err error) Trouble {
	var e *botapi.Error
	switch conflict := botapi.ConflictOf(err); {
	case err == nil:
		return NoTrouble
	case conflict == botapi.WebhookSet:
		return WebhookSet
	case conflict == botapi.OtherConsumer:
		return OtherConsumer
	case botapi.Unauthorized(err):
		return Unauthorized
	case errors.As(err, &e) && e.Status != 0:
		return Refused
	default:
		return Unreachable
	}
}

// Fetch is what became of one call of getUpdates.
type Fetch struct {
	Bot     int64
	Trouble Trouble
}

// Tolerable is how long a bot's updates may not be fetched before Probe is an error.
// Telegram keeps them for 24 hours.
const Tolerable = 5 * time.Minute

// Watch remembers when each bot's updates were fetched last. It is safe for
// concurrent use.
type Watch struct {
	now  func() time.Time
	bots []int64

	mu   sync.Mutex
	last map[int64]time.Time // of the last call that succeeded; else of the beginning
	why  map[int64]Trouble   // of the newest call
}

// NewWatch begins to watch: until a bot's first call succeeds, its silence counts from
// now.
func NewWatch(now func() time.Time, bots ...int64) *Watch {
	w := &Watch{now: now, bots: bots, last: map[int64]time.Time{}, why: map[int64]Trouble{}}
	for _, b := range bots {
		w.last[b] = now()
	}
	return w
}

// Fetched is for Config.Fetched.
func (w *Watch) Fetched(f Fetch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why[f.Bot] = f.Trouble
	if f.Trouble == NoTrouble {
		w.last[f.Bot] = w.now()
	}
}

// Silence is how long ago the bot's updates were fetched last.
func (w *Watch) Silence(bot int64) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now().Sub(w.last[bot])
}

// Probe is a readiness probe: an error while a bot's updates were not fetched for
// longer than Tolerable. Nobody sends deliveries to a process that fetches, so being
// not ready takes none away from it, and is how whoever runs it learns of it.
func (w *Watch) Probe(context.Context) error {
	var silent []string
	for _, b := range w.bots {
		silence := w.Silence(b)
		if silence <= Tolerable {
			continue
		}
		w.mu.Lock()
		why := w.why[b]
		w.mu.Unlock()
		text := fmt.Sprintf("bot %d: no updates fetched for %s", b, silence.Round(time.Second))
		switch {
		case mends[why] != "":
			text += ": " + mends[why]
		case why != NoTrouble:
			text += fmt.Sprintf(": %s; see the log", why)
		default:
			text += ": the backlog is full, or the log takes no appends"
		}
		silent = append(silent, text)
	}
	if len(silent) == 0 {
		return nil
	}
	return errors.New(strings.Join(silent, "; "))
}
