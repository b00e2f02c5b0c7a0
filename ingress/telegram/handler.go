package telegram

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadonce/leadonce/engine/job"
)

// Handler answers Telegram's deliveries. Its route is /telegram/{bot}: it reads
// the path value "bot", and knows no other word of the URL. It is safe for
// concurrent use.
type Handler struct {
	Config
	bots       map[string]*bot
	memory     *semaphore.Weighted // bytes of bodies
	retryAfter []string
}

// answer is what a delivery comes to.
type answer struct {
	result Result
	mend   string // one line for the sender: what is wrong, and the mend; "" for a 200
	cause  error  // for the log
	button string // for a 200: the callback query to answer; "" for none
}

var (
	answerUnknownBot   = answer{result: UnknownBot, mend: "no such bot: the path is /telegram/<bot id>, the number in front of the token's colon"}
	answerUnauthorized = answer{result: Unauthorized, mend: "header " + SecretHeader + ": missing, wrong or repeated: call setWebhook with the configured secret_token"}
	answerEncoded      = bad("header Content-Encoding: send the body without any", errors.New("the body has a content encoding"))
	answerTooLarge     = answer{result: TooLarge, mend: "the body is over 1 MiB: send one update"}
	errBacklogFull     = errors.New("the backlog is full")
)

// bad refuses a delivery for good.
func bad(mend string, cause error) answer { return answer{result: Bad, mend: mend, cause: cause} }

// unavailable asks for the update to be delivered again.
func unavailable(cause error) answer {
	return answer{result: Unavailable, mend: "not stored: send it again later", cause: cause}
}

// ServeHTTP answers one delivery. Any method but POST is refused.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed: send a POST", http.StatusMethodNotAllowed)
		return
	}
	began := time.Now()
	d := Delivery{Result: Unavailable} // what a panic comes to
	var a answer
	defer func() {
		d.Took = time.Since(began)
		h.Observe(d)
		h.log(r, &d, a.cause)
	}()
	a = h.deliver(w, r, &d)
	d.Result = a.result
	h.reply(w, a)
}

func (h *Handler) reply(w http.ResponseWriter, a answer) {
	outcome := outcomes[a.result]
	if outcome.status == http.StatusOK {
		if a.button == "" {
			w.WriteHeader(outcome.status)
			return
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		w.WriteHeader(outcome.status)
		_, _ = io.WriteString(w, answerToButton(a.button)) // what becomes of it is never known
		return
	}
	if outcome.status == http.StatusServiceUnavailable {
		w.Header()["Retry-After"] = h.retryAfter
	}
	if outcome.hangUp {
		w.Header().Set("Connection", "close")
	}
	http.Error(w, a.mend, outcome.status)
}

// deliver judges a delivery, from what costs least to what costs most. No byte
// of the body is read for a sender without the secret.
func (h *Handler) deliver(w http.ResponseWriter, r *http.Request, d *Delivery) answer {
	bot := h.bots[r.PathValue("bot")]
	if bot == nil {
		return answerUnknownBot
	}
	d.Bot = bot.id
	switch {
	case !bot.secrets.admit(r.Header[SecretHeader]):
		return answerUnauthorized
	case r.Header.Get("Content-Encoding") != "":
		return answerEncoded
	case r.ContentLength > MaxBody:
		return answerTooLarge
	}
	memory := weight(r.ContentLength)
	if err := h.reserve(w, r, memory); err != nil {
		return unavailable(err)
	}
	defer h.memory.Release(memory)
	body := buffers.Get().(*bytes.Buffer)
	defer giveBack(body)
	if refused, ok := h.read(w, r, body); !ok {
		return refused
	}
	u, err := job.ParseUpdate(bot.id, body.Bytes())
	if err != nil {
		return bad(oneLine(err.Error())+": send one Update object", job.ErrNotUpdate)
	}
	d.describe(u)
	a := h.accept(context.WithoutCancel(r.Context()), u)
	a.button = CallbackQueryID(u)
	return a
}

// accept stores the update. The body is here, so the client is not needed any
// more: ctx must not end with it.
func (h *Handler) accept(ctx context.Context, u job.Update) answer {
	accepting, cancel := context.WithTimeout(ctx, h.AcceptTimeout)
	defer cancel()
	stored := false
	if h.Full() {
		// The limit is for what is new. What is stored must not be told to come
		// again.
		var err error
		if stored, err = h.Accepter.Stored(accepting, u); !stored {
			return unavailable(errors.Join(errBacklogFull, err))
		}
	}
	_, acceptance, err := h.Accepter.Accept(accepting, u)
	switch {
	case err == nil:
		return answer{result: Result(acceptance)}
	case stored || h.proven(ctx, u):
		return answer{result: Duplicate, cause: err}
	default:
		return unavailable(err)
	}
}

// proven reports whether an update is stored whose append failed. A log that
// takes no appends may still be readable, and the update an old one.
func (h *Handler) proven(ctx context.Context, u job.Update) bool {
	ctx, cancel := context.WithTimeout(ctx, h.ProofTimeout)
	defer cancel()
	stored, err := h.Accepter.Stored(ctx, u)
	return stored && err == nil
}

// oneLine is s without the line breaks and control characters that came with
// the sender's own words.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
}
