package telegram

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"
)

// MaxBody is the size in bytes above which a body is refused. Telegram's own
// updates stay far below.
const MaxBody = 1 << 20

const (
	minWeight = 16 << 10 // what a delivery counts for at least, in bytes
	maxPooled = 64 << 10 // a buffer that has grown beyond is left to the collector
)

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func giveBack(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		b.Reset()
		buffers.Put(b)
	}
}

// weight is what a body counts for against Config.BodyMemory. One that does not
// say how long it is counts for the longest.
func weight(contentLength int64) int64 {
	if contentLength < 0 {
		return MaxBody
	}
	return min(max(contentLength, minWeight), MaxBody)
}

// reserve waits for n bytes of memory: a short burst is better made to wait than
// refused, since a refused update comes back seconds later.
func (h *Handler) reserve(w http.ResponseWriter, r *http.Request, n int64) error {
	if h.memory.TryAcquire(n) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.WaitTimeout)
	defer cancel()
	if err := h.memory.Acquire(ctx, n); err != nil {
		return errors.New("too many deliveries at the same time")
	}
	// The wait was ours: it must not be taken from the sender's time. Only a
	// writer without a connection cannot do this, and it has no read limit.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.BodyTimeout))
	return nil
}

// read fills b with the body. When it cannot, answer says why.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, b *bytes.Buffer) (refused answer, ok bool) {
	// Only so much in advance: the length is a promise of the sender's.
	b.Grow(int(min(max(r.ContentLength, 0), maxPooled-bytes.MinRead)) + bytes.MinRead)
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return answer{}, true
	case errors.As(err, &tooLarge):
		return answerTooLarge, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		return bad("the body came too slowly: send it in one piece", errors.New("the body came too slowly")), false
	default:
		return bad("the body broke off: send it again", errors.New("the body broke off")), false
	}
}
