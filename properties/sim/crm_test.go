package sim

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	crmserver "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
)

// faultOf is the name under which the CRM of package crmsim has a fault. Those whose
// effect is late are left out: there, goroutines decide when.
var faultOf = map[Fault]crmserver.Fault{
	None: crmserver.NoFault, CutBefore: crmserver.CutBefore, CutAfter: crmserver.CutAfter,
	RateLimited: crmserver.RateLimited, RateLimitedDate: crmserver.RateLimitedDate,
	RateLimitedAbsent: crmserver.RateLimitedAbsent, RateLimitedPast: crmserver.RateLimitedPast,
	RateLimitedFar: crmserver.RateLimitedFar, ErrorBefore: crmserver.ErrorBefore, ErrorAfter: crmserver.ErrorAfter,
	NotExecuted: crmserver.NotExecuted, UnavailableBefore: crmserver.UnavailableBefore,
	UnavailableAfter: crmserver.UnavailableAfter, WithoutID: crmserver.OKWithoutID,
	ErrorInside: crmserver.OKWithErrorBefore, ErrorInsideAfter: crmserver.OKWithErrorAfter,
	HTMLBefore: crmserver.OKHTMLBefore, HTMLAfter: crmserver.OKHTMLAfter,
	BadRequestAfter: crmserver.BadRequestAfter, LoginRedirect: crmserver.LoginRedirect,
	Duplicated: crmserver.Duplicated, LookupLags: crmserver.LookupLags,
}

// TestTheSimulatedCRMIsTheServer sends the same requests, with the same faults, to
// the CRM in this package and to the one that is a server of its own and has a
// journal. They must answer alike and make the same leads.
func TestTheSimulatedCRMIsTheServer(t *testing.T) {
	for _, class := range crm.Classes {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			w := newWorld(Plan{Setup: Setup{Class: class, Attempts: 1}}, &Coverage{}, nil, &stage{})
			defer w.end()
			var clock atomic.Int64 // the server still looks at it when its answer is here
			clock.Store(w.now.UnixNano())
			server, err := crmserver.New(crmserver.Config{
				Class: crmserver.Class(class), KeyValidity: keyValidity, IndexLag: indexLag, RetryAfter: 5 * time.Second,
				Now: func() time.Time { return time.Unix(0, clock.Load()).UTC() },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			web := httptest.NewServer(server)
			defer web.Close()
			compareCRMs(t, w, web, &clock)
			leads := 0
			for _, o := range w.crm.ops {
				leads += len(o.leads)
			}
			if got := len(server.Effects()); got != leads || leads == 0 {
				t.Errorf("%d leads here, %d there", leads, got)
			}
		})
	}
}

func compareCRMs(t *testing.T, w *world, web *httptest.Server, clock *atomic.Int64) {
	r := rand.New(rand.NewPCG(7, uint64(len(w.plan.Class))))
	n := &network{w.processes[0]}
	base, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	const requests = 250
	for i := range requests {
		w.pass(time.Duration(r.IntN(120)) * time.Second)
		clock.Store(w.now.UnixNano())
		operation := "e-" + strconv.Itoa(r.IntN(8))
		request, faults := createOf(w.plan.Class, base, operation), w.possible(creating)
		if w.plan.Class != crm.None && r.IntN(3) == 0 {
			request, faults = searchFor(base, operation), w.possible(finding)
		}
		request.Deadline = w.now.Add(callTimeout)
		fault := None
		if r.IntN(2) == 0 {
			fault = faults[r.IntN(len(faults))]
		}
		name, known := faultOf[fault]
		if !known {
			continue
		}
		here, err := n.meet(request, fault)
		there := send(t, request, name)
		if a, b := plain(here, err), there; a != b {
			t.Fatalf("request %d, %s %s, %s: here %+v, there %+v", i, request.Method, operation, fault, a, b)
		}
	}
}

func createOf(class crm.Class, base *url.URL, operation string) httponce.Request {
	r := httponce.Request{Method: http.MethodPost, URL: base.JoinPath("leads"), Header: http.Header{}}
	r.Body = []byte(`{"external_id":"` + operation + `","fields":{"name":"Ada"}}`)
	switch class {
	case crm.Upsert:
		r.Method, r.URL = http.MethodPut, r.URL.JoinPath(operation)
	case crm.IdempotencyKey:
		r.Header.Set("Idempotency-Key", operation)
	}
	return r
}

func searchFor(base *url.URL, operation string) httponce.Request {
	r := httponce.Request{Method: http.MethodGet, URL: base.JoinPath("leads"), Header: http.Header{}}
	r.URL.RawQuery = "external_id=" + operation
	return r
}

// meet lets the simulated CRM answer with the fault, outside of any plan.
func (n *network) meet(r httponce.Request, f Fault) (answer httponce.Answer, err error) {
	a := &actor{name: "the test", process: n.p, fenced: "none"}
	w := n.p.w
	w.view("none")
	w.spawn(a, func() { answer, err = n.Send(context.Background(), r) })
	w.step(a, f)
	w.step(a, None)
	w.broken = nil // there is no claim behind it
	return answer, err
}

// seen is what a client can tell of an answer. The number of a lead is its name.
type seen struct {
	status        int
	id, code      string
	leads         string
	retry, replay bool
}

func plain(a httponce.Answer, err error) seen {
	if err != nil {
		return seen{}
	}
	return read(a.Status, a.Header, a.Body)
}

func read(status int, header http.Header, body []byte) seen {
	var doc struct {
		ID    string
		Error struct{ Code string }
		Leads []struct{ ID string }
	}
	_ = json.Unmarshal(body, &doc)
	s := seen{status: status, id: number(doc.ID), code: doc.Error.Code, retry: header.Get("Retry-After") != "", replay: header.Get("Idempotency-Replayed") != ""}
	for _, l := range doc.Leads {
		s.leads += number(l.ID) + " "
	}
	return s
}

func number(id string) string { return strings.TrimLeft(strings.TrimPrefix(id, "L-"), "0") }

func send(t *testing.T, r httponce.Request, fault crmserver.Fault) seen {
	request, err := http.NewRequestWithContext(t.Context(), r.Method, r.URL.String(), strings.NewReader(string(r.Body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = r.Header.Clone()
	request.Header.Set("X-Crmsim-Fault", string(fault))
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return seen{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return seen{}
	}
	return read(response.StatusCode, response.Header, body)
}
