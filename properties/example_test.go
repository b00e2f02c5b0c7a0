package properties_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/properties"
)

// sandbox is the CRM of this example: the simulated one. That of a team is its
// vendor's sandbox, and Leads asks the vendor's list or export, by another way than
// the connector does.
type sandbox struct {
	crm *crmsim.Server
	url string
}

func (s sandbox) URL() string { return s.url }

func (s sandbox) Leads(_ context.Context, operationID string) (ids []string, err error) {
	for _, e := range s.crm.Effects() {
		if e.ExternalID == operationID {
			ids = append(ids, e.CRMID)
		}
	}
	return ids, nil
}

func openSandbox(t *testing.T) sandbox {
	server, err := crmsim.New(crmsim.Config{Class: crmsim.UniqueCreate})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	return sandbox{server, web.URL}
}

// TestMyConnector is the contract of a team's connector.
func TestMyConnector(t *testing.T) {
	t.Parallel()
	definition, err := restcrm.LoadShipped("crmsim")
	if err != nil {
		t.Fatal(err)
	}
	properties.CheckConnector(t, crmtest.Subject{
		Connect: func(url string) (crm.Connector, error) {
			return restcrm.New(definition, restcrm.Config{BaseURL: url, Class: crm.UniqueCreate, Settle: time.Second})
		},
		Sandbox: openSandbox(t),
		Fields:  map[string]string{"name": "Ada", "phone": "+100"},
		Answers: []crmtest.Answer{ // as the vendor documents them
			{Name: "busy", Status: 429, Body: `{"error":{"code":"rate_limited"}}`, Want: crm.NotApplied},
			{Name: "invalid", Status: 422, Body: `{"error":{"code":"validation"}}`, Want: crm.Refused},
			{Name: "internal", Status: 500, Body: `{"error":{"code":"internal"}}`, Applied: true, Want: crm.Unknown},
		},
		Searches: []crmtest.Search{{
			Name: "neighbours", Status: 200,
			Body: func(id string) string { return fmt.Sprintf(`{"leads":[{"id":"L-1","external_id":"%sx"}]}`, id) },
		}},
		Short: 50 * time.Millisecond, // a CRM in this process answers at once
	}, crm.UniqueCreate)
}

// TestMyLog is the contract of a team's log: here the one in memory, behind a
// connection that can be cut. Reopen, Second and Crash, where a log can, make it
// harder.
func TestMyLog(t *testing.T) {
	properties.CheckLog(t, eventlogtest.Backend{
		Open: func(testing.TB) eventlog.Log { return eventlogtest.NewFaultyLog(memory.New()) },
		LoseAck: func(_ testing.TB, log eventlog.Log, loss eventlogtest.Loss) {
			log.(*eventlogtest.FaultyLog).LoseAck(loss)
		},
		CutRead: func(_ testing.TB, log eventlog.Log, after int) {
			log.(*eventlogtest.FaultyLog).CutRead(after)
		},
	})
}

// rules are a team's own: a lead for an order, and for whatever is one by default.
func rules(key job.Key, u job.Update) job.Plan {
	if u.Kind != "pre_checkout_query" {
		return job.DefaultPlan(key, u)
	}
	return job.Plan{
		Effect: true, Action: job.CreateLead, BusinessKey: key.String(),
		Fields: map[string]string{"source": "checkout", "user_id": fmt.Sprint(u.User)},
	}
}

// TestMyRules is the contract of a team's rules, with updates that its bot got.
func TestMyRules(t *testing.T) {
	t.Parallel()
	properties.CheckRules(t, rules,
		[]byte(`{"update_id":1,"message":{"message_id":1,"chat":{"id":5},"from":{"id":5},"text":"two chairs, please"}}`),
		[]byte(`{"update_id":2,"pre_checkout_query":{"id":"q","from":{"id":5},"currency":"EUR","total_amount":1200,"invoice_payload":"chairs"}}`),
	)
}
