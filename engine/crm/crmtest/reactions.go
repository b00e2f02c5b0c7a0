package crmtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// answers answers without asking the CRM.
func answers(status int, contentType, body string) reaction {
	return func(_ *wire, out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", contentType)
		out.WriteHeader(status)
		_, _ = out.Write([]byte(body))
	}
}

// redirects points at the CRM itself, so that following it makes the lead.
func redirects(status int) reaction {
	return func(_ *wire, out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Location", in.URL.RequestURI())
		out.WriteHeader(status)
	}
}

// after lets the request have its effect and loses the answer to it.
func after(then reaction) reaction {
	return func(w *wire, out http.ResponseWriter, in *http.Request) {
		if _, _, _, err := w.forward(in); err != nil {
			HangUp(out, false)
			return
		}
		then(w, out, in)
	}
}

func cut(_ *wire, out http.ResponseWriter, _ *http.Request)    { HangUp(out, false) }
func resets(_ *wire, out http.ResponseWriter, _ *http.Request) { HangUp(out, true) }

// silent withholds the answer for as long as the client or the case lasts.
func silent(w *wire, _ http.ResponseWriter, in *http.Request) {
	select {
	case <-in.Context().Done():
	case <-w.stopped:
	}
}

func garbage(_ *wire, out http.ResponseWriter, _ *http.Request) {
	raw(out, "220 mail.example ESMTP\r\n")
}

// brokenHeader has the lead where an HTTP library quotes it in its error.
func brokenHeader(w *wire, out http.ResponseWriter, _ *http.Request) {
	raw(out, "HTTP/1.1 201 Created\r\n"+said(w.subject.Fields)+"\r\n\r\n")
}

func brokenOff(_ *wire, out http.ResponseWriter, _ *http.Request) {
	raw(out, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"id\":")
}

func said(fields map[string]string) string {
	return strings.Join(slices.Sorted(maps.Values(fields)), " ")
}

// echoes repeats what the lead says wherever a client may look for a reason.
func echoes(w *wire, out http.ResponseWriter, _ *http.Request) {
	said := said(w.subject.Fields)
	body, err := json.Marshal(map[string]any{
		"error": map[string]string{"code": said, "message": said}, "message": said, "errors": []string{said},
	})
	if err != nil {
		panic(err) // it is of strings
	}
	out.Header().Set("X-Reason", said)
	out.WriteHeader(http.StatusBadRequest)
	_, _ = out.Write(body)
}

// endless answers more than any client should read.
func endless(w *wire, out http.ResponseWriter, _ *http.Request) {
	out.WriteHeader(http.StatusOK)
	chunk := []byte(strings.Repeat(" ", 64<<10))
	for range 1 << 10 { // 64 MiB
		if _, err := out.Write(chunk); err != nil {
			return
		}
		select {
		case <-w.stopped:
			return
		default:
		}
	}
}

// closesKept answers the first request of a connection, and closes it without
// an answer once another one has had its effect.
func closesKept(w *wire, out http.ResponseWriter, in *http.Request) {
	if in.Context().Value(used{}).(*atomic.Int64).Add(1) == 1 {
		pass(w, out, in)
		return
	}
	after(cut)(w, out, in)
}

// situation is a reaction with a name.
type situation struct {
	name string
	reaction
}

const html = "<!doctype html><title>Sign in</title><p>Please sign in."

// everywhere is what can happen to any request, whatever the vendor. None of it
// proves what became of a create, and none is a list of leads.
var everywhere = []situation{
	{"connection_cut", cut},
	{"connection_reset", resets},
	{"no_answer", silent},
	{"garbage_instead_of_http", garbage},
	{"broken_header", brokenHeader},
	{"answer_breaks_off", brokenOff},
	{"endless_answer", endless},
	{"200_empty", answers(http.StatusOK, "application/json", "")},
	{"200_empty_object", answers(http.StatusOK, "application/json", "{}")},
	{"200_null", answers(http.StatusOK, "application/json", "null")},
	{"200_error_inside", answers(http.StatusOK, "application/json", `{"error":"internal","errors":["internal"]}`)},
	{"200_html", answers(http.StatusOK, "text/html", html)},
	{"202_empty_object", answers(http.StatusAccepted, "application/json", "{}")},
	{"301_to_the_crm", redirects(http.StatusMovedPermanently)},
	{"302_to_the_crm", redirects(http.StatusFound)},
	{"307_to_the_crm", redirects(http.StatusTemporaryRedirect)},
	{"308_to_the_crm", redirects(http.StatusPermanentRedirect)},
	{"400_html", answers(http.StatusBadRequest, "text/html", html)},
	{"400_echoes_the_lead", echoes},
	{"403_html", answers(http.StatusForbidden, "text/html", html)},
	{"404_html", answers(http.StatusNotFound, "text/html", html)},
	{"408_empty", answers(http.StatusRequestTimeout, "text/plain", "")},
	{"409_empty", answers(http.StatusConflict, "text/plain", "")},
	{"500_html", answers(http.StatusInternalServerError, "text/html", html)},
	{"502_html", answers(http.StatusBadGateway, "text/html", html)},
	{"503_html", answers(http.StatusServiceUnavailable, "text/html", html)},
	{"504_html", answers(http.StatusGatewayTimeout, "text/html", html)},
}
