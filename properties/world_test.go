package properties

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// box is a simulated CRM, judged by its own journal.
type box struct {
	*crmsim.Server
	url string
}

func (b box) URL() string { return b.url }

func (b box) Leads(_ context.Context, operation string) (ids []string, err error) {
	for _, e := range b.Effects() {
		if e.ExternalID == operation {
			ids = append(ids, e.CRMID)
		}
	}
	return ids, nil
}

// openBox opens a CRM; before may change what comes to it.
func openBox(t testing.TB, config crmsim.Config, before func(http.Handler) http.Handler) box {
	t.Helper()
	server, err := crmsim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	handler := http.Handler(server)
	if before != nil {
		handler = before(handler)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	t.Cleanup(func() { _ = server.Close() })
	return box{server, web.URL}
}

// connect makes the repository's own connector to a simulated CRM.
func connect(config restcrm.Config) (crm.Connector, error) {
	definition, err := restcrm.LoadShipped("crmsim")
	if err != nil {
		return nil, err
	}
	return restcrm.New(definition, config)
}

// sound is the repository's own connector to the box.
func sound(b box, class crm.Class) crmtest.Subject {
	return crmtest.Subject{
		Connect: func(url string) (crm.Connector, error) {
			return connect(restcrm.Config{BaseURL: url, Class: class, Settle: 2 * time.Second})
		},
		Sandbox: b, Answers: vendorAnswers, Searches: vendorSearches,
		Patience: 3 * time.Second, Short: 60 * time.Millisecond,
	}
}

var vendorAnswers = []crmtest.Answer{
	{Name: "429", Status: 429, Body: `{"error":{"code":"rate_limited"}}`, Want: crm.NotApplied},
	{Name: "503_not_executed", Status: 503, Body: `{"error":{"code":"not_executed"}}`, Want: crm.NotApplied},
	{Name: "422_validation", Status: 422, Body: `{"error":{"code":"validation"}}`, Want: crm.Refused},
	{Name: "409_key_in_use", Status: 409, Body: `{"error":{"code":"idempotency_key_in_use"}}`, Applied: true, Want: crm.Unknown},
	{Name: "400_bad_request", Status: 400, Body: `{"error":{"code":"bad_request"}}`, Applied: true, Want: crm.Unknown},
}

var vendorSearches = []crmtest.Search{
	{Name: "neighbours", Status: 200, Body: func(id string) string { return `{"leads":[{"id":"L-1","external_id":"` + id + `x"}]}` }},
	{Name: "429", Status: 429, Body: func(string) string { return `{"error":{"code":"rate_limited"}}` }, Fails: true},
}

// hunt looks for a run of the engine over the subject that breaks a promise.
func hunt(t testing.TB, subject crmtest.Subject, class crm.Class, seed uint64, limit time.Duration) (*failure, int) {
	t.Helper()
	w, err := openWire(subject.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	return search{draw: w.drawing(class), time: limit, seed: seed}.run()
}
