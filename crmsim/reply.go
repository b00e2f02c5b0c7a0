package crmsim

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
)

const (
	typeJSON = "application/json"
	typeHTML = "text/html; charset=utf-8"
)

// An Outcome is how a request ended on the wire.
type Outcome string

const (
	OutcomePending  Outcome = "pending"
	OutcomeAnswered Outcome = "answered"
	OutcomeCut      Outcome = "cut"   // closed without an answer
	OutcomeReset    Outcome = "reset" // closed by a TCP reset without an answer
)

// reply is what the client is to see. A reply that is not answered has no status.
type reply struct {
	outcome Outcome
	status  int
	header  map[string]string
	body    []byte
}

func answered(status int, contentType, body string) reply {
	r := reply{outcome: OutcomeAnswered, status: status, body: []byte(body)}
	if contentType == "" {
		return r
	}
	return r.with("Content-Type", contentType)
}

func inJSON(status int, body any) reply {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // every body is of strings, numbers and times
	}
	return answered(status, typeJSON, string(text)+"\n")
}

type errorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message,omitempty"`
	} `json:"error"`
	ID string `json:"id,omitempty"`
}

func problem(status int, code string) reply { return problemWithID(status, code, "") }

func problemWithID(status int, code, crmID string) reply {
	body := errorBody{ID: crmID}
	body.Error.Code = code
	return inJSON(status, body)
}

func explained(status int, code string, err error) reply {
	var body errorBody
	body.Error.Code, body.Error.Message = code, err.Error()
	return inJSON(status, body)
}

func madeLead(status int, crmID string) reply {
	return inJSON(status, map[string]string{"id": crmID})
}

func (r reply) with(name, value string) reply {
	header := maps.Clone(r.header)
	if header == nil {
		header = map[string]string{}
	}
	header[name] = value
	r.header = header
	return r
}

func (r reply) send(w http.ResponseWriter) {
	if r.outcome != OutcomeAnswered {
		hangUp(w, r.outcome == OutcomeReset)
		return
	}
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // a client that is gone is no failure of the CRM
}

// hangUp closes the connection without an answer. A reset discards what the client sent; it needs a
// TCP connection and is a plain close on any other.
func hangUp(w http.ResponseWriter, byReset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // net/http's own way to close without an answer
	}
	if tcp, ok := conn.(*net.TCPConn); ok && byReset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
