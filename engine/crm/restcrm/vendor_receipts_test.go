package restcrm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/httponce"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// tokenlessScript is a script behind an account that grants every token.
type tokenlessScript struct {
	*scripted
	accounts tokenless
}

func (s *tokenlessScript) Send(ctx context.Context, r httponce.Request) (httponce.Answer, error) {
	if strings.Contains(r.URL.Path, "token") {
		return s.accounts.Send(ctx, r)
	}
	return s.scripted.Send(ctx, r)
}

func vendorConnector(t *testing.T, file string, answers ...any) (*restcrm.Connector, *scripted) {
	t.Helper()
	s := &scripted{answers: answers}
	vars := map[string]string{}
	for _, v := range vendors() {
		if v.file == file {
			vars = v.vars
		}
	}
	c, err := shipped(t, file, restcrm.Config{
		BaseURL: "http://crm.example", Vars: vars, Secrets: vendorEnvironment,
		Sender: &tokenlessScript{scripted: s}, Store: restcrm.FileStore{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// TestVendorReceipts: the documented answers that prove a lead, and where its id
// comes from.
func TestVendorReceipts(t *testing.T) {
	ours := uuid.NewSHA1(space, []byte("op-1")).String()
	records := answer(200, `{"totalSize":1,"done":true,"records":[{"Id":"00Q5","Tg_Op_Id__c":"op-1"}]}`)
	for _, c := range []struct {
		name, file string
		answers    []any
		want       crm.Receipt
	}{
		{"204 with the GUID in a header", "dataverse", []any{answer(204, "", "OData-EntityId", "https://org.crm.dynamics.com/api/data/v9.2/leads("+strings.ToUpper(ours)+")")}, crm.Receipt{CRMID: ours}},
		{"412, and it is there", "dataverse", []any{answer(412, `{"error":{"message":"A record with matching key values already exists."}}`), answer(200, `{"leadid":"`+ours+`"}`)}, crm.Receipt{CRMID: ours, Existing: true}},
		{"204 for an update", "salesforce", []any{answer(204, ""), records}, crm.Receipt{CRMID: "00Q5", Existing: true}},
		{"updated", "salesforce", []any{answer(200, `{"id":"00Q6","success":true,"errors":[],"created":false}`)}, crm.Receipt{CRMID: "00Q6", Existing: true}},
		{"lost a race", "salesforce", []any{answer(400, salesforceFault("DUPLICATE_VALUE")), records}, crm.Receipt{CRMID: "00Q5", Existing: true}},
		{"the unique field has it", "salesforce-uiapi", []any{answer(400, salesforceFault("DUPLICATE_VALUE")), records}, crm.Receipt{CRMID: "00Q5", Existing: true}},
		{"replayed", "monday", []any{answer(200, `{"data":{"create_item":{"id":"9"}}}`, "Idempotency-Replayed", "true")}, crm.Receipt{CRMID: "9", Existing: true}},
		{"updated", "zoho", []any{answer(200, `{"data":[{"code":"SUCCESS","status":"success","action":"update","details":{"id":"551"}}]}`)}, crm.Receipt{CRMID: "551", Existing: true}},
		{"lost a race", "zoho", []any{answer(400, `{"data":[{"code":"DUPLICATE_DATA","status":"error","details":{"api_name":"Tg_Op_Id"}}]}`), answer(200, `{"data":[{"id":"551","Tg_Op_Id":"op-1"}]}`)}, crm.Receipt{CRMID: "551", Existing: true}},
		{"has that value", "hubspot", []any{answer(409, `{"status":"error","message":"5 already has that value"}`), answer(200, `{"id":"5","properties":{"tg_op_id":"op-1"}}`)}, crm.Receipt{CRMID: "5", Existing: true}},
	} {
		t.Run(c.file+" "+c.name, func(t *testing.T) {
			connector, s := vendorConnector(t, c.file, c.answers...)
			receipt, err := connector.Create(t.Context(), operation("op-1", nil))
			if err != nil || receipt != c.want || s.count() != len(c.answers) {
				t.Errorf("%+v, %v after %d requests; want %+v after %d", receipt, err, s.count(), c.want, len(c.answers))
			}
		})
	}
}

// TestVendorPauses: how long each limit asks the connector to rest.
func TestVendorPauses(t *testing.T) {
	for _, c := range []struct {
		file   string
		answer httponce.Answer
		want   time.Duration
	}{
		{"hubspot", answer(477, "", "Retry-After", "86400"), 24 * time.Hour},
		{"hubspot", answer(423, "", "Retry-After", "2"), 2 * time.Second},
		{"dataverse", answer(429, "", "Retry-After", "30"), 30 * time.Second},
		{"monday", answer(200, `{"errors":[{"extensions":{"code":"COMPLEXITY_BUDGET_EXHAUSTED","retry_in_seconds":15}}]}`), 15 * time.Second},
		{"monday", answer(409, "", "Retry-After", "3"), 3 * time.Second},
		{"bitrix24", answer(503, `{"error":"OVERLOAD_LIMIT"}`), 5 * time.Minute},
		{"salesforce", answer(403, salesforceFault("REQUEST_LIMIT_EXCEEDED")), 5 * time.Minute},
		{"twenty", answer(429, ""), 0},
	} {
		connector, _ := vendorConnector(t, c.file, c.answer)
		_, err := connector.Create(t.Context(), operation("op-1", nil))
		if e := crm.Classify(err); err == nil || e.RetryAfter != c.want {
			t.Errorf("%s, HTTP %d: come back after %s, want %s", c.file, c.answer.Status, e.RetryAfter, c.want)
		}
	}
}
