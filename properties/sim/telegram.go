package sim

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/leadonce/leadonce/ingress/telegram"
)

// telegramSide is the Bot API's side: per chat a queue, of which only the head is
// sent until it is answered 2xx.
type telegramSide struct {
	enquiries []*enquiry // in the order in which people made them
}

// enquiry is one update that a person caused.
type enquiry struct {
	*sent
	known        int    // its index among the known updates
	operation    string // operation_id, once it is accepted
	refused      bool   // by the CRM, for ever
	acknowledged bool
	deliveries   int
	first        time.Time // when it was first delivered
}

// How long Telegram goes on with an update that it has no 2xx for.
const (
	messageLife  = 24 * time.Hour
	callbackLife = 150 * time.Second
)

// expired reports whether Telegram has given the update up.
func (e *enquiry) expired(at time.Time) bool {
	life := messageLife
	if e.name == "callback_query" {
		life = callbackLife
	}
	return e.deliveries > 0 && !e.acknowledged && at.Sub(e.first) > life
}

func newTelegram(people []sent, updates []int, refused uint64) *telegramSide {
	t := &telegramSide{}
	for n, u := range updates {
		i := index(u, len(people))
		if !slices.ContainsFunc(t.enquiries, func(e *enquiry) bool { return e.known == i }) { // an update is made once
			t.enquiries = append(t.enquiries, &enquiry{
				sent: &people[i], known: i, operation: people[i].operation, refused: refused>>n&1 == 1,
			})
		}
	}
	return t
}

// next is the enquiry that is sent when that one is to be: the head of its chat's
// queue, or it itself once more.
func (t *telegramSide) next(wanted *enquiry, at time.Time) *enquiry {
	for _, e := range t.enquiries {
		if e == wanted {
			break
		}
		if e.bot == wanted.bot && e.chat == wanted.chat && !e.acknowledged && !e.expired(at) {
			return e
		}
	}
	return wanted
}

// answer is the http.ResponseWriter of one delivery.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return len(b), nil }

// deliver sends the enquiry to the process, whose handler stands at its first
// call then.
func (w *world) deliver(e *enquiry, p *process) *actor {
	raw := e.spellings[0].Raw
	switch {
	case e.deliveries > 0 && e.deliveries%3 == 0:
		raw = e.spellings[1].Raw
		w.happen(Respelled)
	case e.deliveries > 0:
		w.happen(Redelivered)
	}
	if e.deliveries++; e.deliveries == 1 {
		e.first = w.now
	}
	request := &http.Request{
		Method: http.MethodPost, ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "t:1", ContentLength: int64(len(raw)),
		Header: http.Header{telegram.SecretHeader: {"secret"}},
		Body:   io.NopCloser(bytes.NewReader(raw)),
	}
	request.SetPathValue("bot", strconv.FormatInt(e.bot, 10))
	a := &actor{name: "a delivery of " + e.label() + " to " + p.name, process: p, enquiry: e}
	before := w.stored(e)
	return w.spawn(a, func() {
		writer := &answer{header: http.Header{}}
		p.handler.ServeHTTP(writer, request)
		f := w.await(point{port: replying})
		w.answered(a, e, writer.status, before, f == ReplyLost)
	})
}

func (e *enquiry) label() string {
	return strconv.FormatInt(e.bot, 10) + "/" + strconv.FormatInt(e.id, 10) + " (" + e.name + ")"
}
