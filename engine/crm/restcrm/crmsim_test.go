package restcrm_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sandbox is a simulated CRM, judged by its own journal.
type sandbox struct {
	*sim.Server
	url string
}

func (s sandbox) URL() string { return s.url }

func (s sandbox) Leads(_ context.Context, operationID string) (ids []string, err error) {
	for _, e := range s.Effects() {
		if e.ExternalID == operationID {
			ids = append(ids, e.CRMID)
		}
	}
	return ids, nil
}

func newSandbox(t *testing.T, config sim.Config) sandbox {
	t.Helper()
	server, err := sim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return sandbox{server, web.URL}
}

const password = "hunter2-of-the-suite"

func shipped(t testing.TB, name string, config restcrm.Config) (*restcrm.Connector, error) {
	t.Helper()
	definition, err := restcrm.LoadShipped(name)
	if err != nil {
		t.Fatal(err)
	}
	return restcrm.New(definition, config)
}

func subject(t testing.TB, class crm.Class, box crmtest.Sandbox) crmtest.Subject {
	return crmtest.Subject{
		Connect: func(url string) (crm.Connector, error) {
			secret := strings.Replace(url, "http://", "http://leadonce:"+password+"@", 1)
			return shipped(t, "crmsim", restcrm.Config{BaseURL: secret, Class: class, Settle: 2 * time.Second})
		},
		Sandbox:  box,
		Answers:  simAnswers,
		Searches: simSearches,
		Secrets:  []string{password},
	}
}

func code(code string) string { return fmt.Sprintf(`{"error":{"code":%q}}`, code) }

var simAnswers = []crmtest.Answer{
	{Name: "429", Status: 429, Body: code("rate_limited"), Want: crm.NotApplied},
	{Name: "429_empty", Status: 429, Want: crm.NotApplied},
	{Name: "503_not_executed", Status: 503, Body: code("not_executed"), Want: crm.NotApplied},
	{Name: "503_internal", Status: 503, Body: code("internal"), Applied: true, Want: crm.Unknown},
	{Name: "500_not_executed", Status: 500, Body: code("not_executed"), Applied: true, Want: crm.Unknown},
	{Name: "422_validation", Status: 422, Body: code("validation"), Want: crm.Refused},
	{Name: "422_id_missing", Status: 422, Body: code("external_id_missing"), Want: crm.Refused},
	{Name: "422_empty", Status: 422, Applied: true, Want: crm.Unknown},
	{Name: "422_key_reused", Status: 422, Body: code("idempotency_key_reused"), Want: crm.Unknown},
	{Name: "409_key_in_use", Status: 409, Body: code("idempotency_key_in_use"), Applied: true, Want: crm.Unknown},
	{Name: "409_look_alike", Status: 409, Body: `{"error":{"code":"look_alike"},"id":"L-000001"}`, Want: crm.Refused},
	{Name: "400_malformed", Status: 400, Body: code("malformed"), Want: crm.Refused},
	{Name: "400_bad_request", Status: 400, Body: code("bad_request"), Applied: true, Want: crm.Unknown},
	{Name: "200_error_and_id", Status: 200, Body: `{"error":{"code":"internal"},"id":"L-000001"}`, Applied: true, Want: crm.Unknown},
	{Name: "201_empty_id", Status: 201, Body: `{"id":""}`, Applied: true, Want: crm.Unknown},
	{Name: "201_blank_id", Status: 201, Body: `{"id":" "}`, Applied: true, Want: crm.Unknown},
	{Name: "201_number_id", Status: 201, Body: `{"id":7}`, Applied: true, Want: crm.Unknown},
	{Name: "201_two_values", Status: 201, Body: `{"id":"L-1"} {"id":"L-2"}`, Applied: true, Want: crm.Unknown},
	{Name: "500_journal_failed", Status: 500, Body: code("journal_failed"), Applied: true, Want: crm.Unknown},
}

func list(leads ...string) string { return `{"leads":[` + strings.Join(leads, ",") + `]}` }

func lead(id, externalID string) string {
	return fmt.Sprintf(`{"id":%q,"external_id":%q}`, id, externalID)
}

var simSearches = []crmtest.Search{
	{Name: "none", Status: 200, Body: func(string) string { return list() }},
	{Name: "two", Status: 200, Body: func(op string) string { return list(lead("L-1", op), lead("L-2", op)) }, Want: []string{"L-1", "L-2"}},
	{Name: "one_twice", Status: 200, Body: func(op string) string { return list(lead("L-1", op), lead("L-1", op)) }, Want: []string{"L-1"}},
	{Name: "neighbours", Status: 200, Body: func(op string) string {
		return list(lead("L-1", op+"x"), lead("L-2", strings.ToUpper(op)), lead("L-3", op[1:]), lead("L-4", ""), `{"id":"L-5"}`)
	}},
	{Name: "ours_among_neighbours", Status: 200, Body: func(op string) string {
		return list(lead("L-1", op+"x"), lead("L-2", op))
	}, Want: []string{"L-2"}},
	{Name: "no_id", Status: 200, Body: func(op string) string { return list(lead("", op)) }, Fails: true},
	{Name: "null_list", Status: 200, Body: func(string) string { return `{"leads":null}` }, Fails: true},
	{Name: "list_beside_an_error", Status: 200, Body: func(string) string { return `{"leads":[],"error":{"code":"internal"}}` }, Fails: true},
	{Name: "list_in_an_error", Status: 500, Body: func(string) string { return list() }, Fails: true},
	{Name: "partial", Status: 206, Body: func(string) string { return list() }, Fails: true},
	{Name: "429", Status: 429, Body: func(string) string { return code("rate_limited") }, Fails: true},
}

func TestDescription(t *testing.T) {
	for _, class := range crm.Classes {
		c, err := shipped(t, "crmsim", restcrm.Config{BaseURL: "http://h", Class: class})
		if err != nil {
			t.Fatal(err)
		}
		want := crm.Description{Name: "crmsim", Class: class, Settle: 30 * time.Second, CanFind: class != crm.None}
		if class == crm.IdempotencyKey {
			want.KeyValidity = 24 * time.Hour
		}
		if got := c.Describe(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestOnlyItsOwnAnswers: 200 with an id is what an upsert answers for a lead that was
// there, and 409 what a unique create does; of another class they prove nothing.
func TestOnlyItsOwnAnswers(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		proves crm.Class
	}{
		{200, `{"id":"L-1"}`, crm.Upsert},
		{409, `{"error":{"code":"already_exists"},"id":"L-1"}`, crm.UniqueCreate},
	} {
		for _, class := range crm.Classes {
			connector, err := shipped(t, "crmsim", restcrm.Config{
				BaseURL: "http://h", Class: class, Sender: &scripted{answers: []any{answer(c.status, c.body)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			receipt, err := connector.Create(t.Context(), operation("op-1", nil))
			switch {
			case class == c.proves && (err != nil || receipt != crm.Receipt{CRMID: "L-1", Existing: true}),
				class != c.proves && (err == nil || crm.Classify(err).Outcome != crm.Unknown):
				t.Errorf("HTTP %d in class %s: %+v, %v", c.status, class, receipt, err)
			}
		}
	}
}

func TestConformance(t *testing.T) {
	for _, class := range crm.Classes {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			crmtest.Run(t, subject(t, class, newSandbox(t, sim.Config{Class: sim.Class(class)})))
		})
	}
}

// TestConformanceOmittedID: "exists" without the id is looked up.
func TestConformanceOmittedID(t *testing.T) {
	t.Parallel()
	crmtest.Run(t, subject(t, crm.UniqueCreate, newSandbox(t, sim.Config{Class: sim.UniqueCreate, OmitExistingID: true})))
}
