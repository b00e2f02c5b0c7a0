package botapitest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// Fault is how a call fails.
type Fault struct {
	// Status answers with this status and Body instead of doing anything.
	Status int
	Body   string
	// RetryAfter answers 429 and asks to wait for so many seconds; nothing is done.
	RetryAfter int
	// Drop closes the connection; nothing is done.
	Drop bool
	// Hang answers nothing until the caller gives up; nothing is done.
	Hang bool
	// Cut does the call, and breaks the answer off behind half of it.
	Cut bool
	// Late does the call, and answers this status with Body.
	Late int
}

// Refused is how the Bot API refuses a call: 403 "Forbidden: bot was blocked by the
// user", for example.
func Refused(code int, description string) Fault {
	body, err := json.Marshal(map[string]any{"ok": false, "error_code": code, "description": description})
	if err != nil {
		panic(err)
	}
	return Fault{Status: code, Body: string(body)}
}

// before fails a call of which nothing is done.
func (f Fault) before(ctx context.Context, w http.ResponseWriter) bool {
	switch {
	case f.RetryAfter > 0:
		description := "Too Many Requests: retry after " + strconv.Itoa(f.RetryAfter)
		Fault{}.write(w, result{code: http.StatusTooManyRequests, description: description, retryAfter: f.RetryAfter})
	case f.Status > 0:
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Hang:
		<-ctx.Done()
	default:
		return false
	}
	return true
}

// write answers in the form of the Bot API.
func (f Fault) write(w http.ResponseWriter, r result) {
	status := http.StatusOK
	document := map[string]any{"ok": true, "result": r.value}
	if r.code != 0 {
		status = r.code
		document = map[string]any{"ok": false, "error_code": r.code, "description": r.description}
	}
	if r.retryAfter > 0 {
		document["parameters"] = map[string]any{"retry_after": r.retryAfter}
	}
	body, err := json.Marshal(document)
	if raw, ok := r.value.([]byte); ok {
		// Updates as they are: encoding/json would respell them.
		body = append(append([]byte(`{"ok":true,"result":[`), raw...), "]}"...)
	}
	if err != nil {
		panic(err)
	}
	if f.Late > 0 {
		w.WriteHeader(f.Late)
		_, _ = w.Write([]byte(f.Body))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if f.Cut {
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}
