package restcrm_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

// salesforceFault is an error as the REST API gives it.
func salesforceFault(code string) string {
	return fmt.Sprintf(`[{"message":"A message","errorCode":%q,"fields":[]}]`, code)
}

func salesforceRecords(leads []kept) reply {
	records := each(leads, func(l kept) string { return fmt.Sprintf(`{"Id":"00Q%d","Tg_Op_Id__c":%q}`, l.n, l.key) })
	return ok(`{"totalSize":%d,"done":true,"records":[%s]}`, len(leads), records)
}

// quotedKey is the operation id in a query.
func quotedKey(query string) string {
	_, rest, _ := strings.Cut(query, "'")
	key, _, _ := strings.Cut(rest, "'")
	return key
}

var salesforceSearches = []crmtest.Search{
	{Name: "none", Status: 200, Body: always(`{"totalSize":0,"done":true,"records":[]}`)},
	{Name: "not_done", Status: 200, Body: always(`{"totalSize":9000,"done":false,"records":[]}`), Fails: true},
	{Name: "two", Status: 200, Body: func(op string) string {
		return salesforceRecords([]kept{{1, op}, {2, op}, {3, strings.ToUpper(op)}}).body
	}, Want: []string{"00Q1", "00Q2"}},
	{Name: "error", Status: 400, Body: always(salesforceFault("INVALID_FIELD")), Fails: true},
}

func salesforce() vendor {
	result := func(l kept, created bool) string {
		return fmt.Sprintf(`{"id":"00Q%d","success":true,"errors":[],"created":%t}`, l.n, created)
	}
	return vendor{
		file: "salesforce", prefix: "00Q",
		isCreate: func(r *http.Request) bool { return r.Method == http.MethodPatch },
		key: func(r *http.Request, _ any) string {
			if r.Method == http.MethodPatch {
				return lastSegment(r)
			}
			return quotedKey(r.URL.Query().Get("q"))
		},
		made:   func(l kept) reply { return reply{status: 201, body: result(l, true)} },
		again:  func(l kept) reply { return ok("%s", result(l, false)) },
		listed: func(_ string, leads []kept) reply { return salesforceRecords(leads) },
		answers: []crmtest.Answer{
			{Name: "204_and_none_there", Status: 204, Want: crm.Unknown},
			{Name: "300_several", Status: 300, Body: `["/services/data/v62.0/sobjects/Lead/00Q1"]`, Want: crm.Unknown},
			{Name: "200_not_a_success", Status: 200, Body: `{"id":"00Q7","success":false,"errors":[{}]}`, Applied: true, Want: crm.Unknown},
			{Name: "429", Status: 429, Want: crm.NotApplied},
			{Name: "lock", Status: 400, Body: salesforceFault("UNABLE_TO_LOCK_ROW"), Want: crm.NotApplied},
			{Name: "limit", Status: 403, Body: salesforceFault("REQUEST_LIMIT_EXCEEDED"), Want: crm.NotApplied},
			{Name: "session_over", Status: 401, Body: salesforceFault("INVALID_SESSION_ID"), Want: crm.NotApplied},
			{Name: "duplicate_rule", Status: 400, Body: salesforceFault("DUPLICATES_DETECTED"), Want: crm.Refused},
			{Name: "validation", Status: 400, Body: salesforceFault("REQUIRED_FIELD_MISSING"), Want: crm.Refused},
			{Name: "lost_race_and_none_there", Status: 400, Body: salesforceFault("DUPLICATE_VALUE"), Want: crm.Unknown},
			{Name: "other_code", Status: 400, Body: salesforceFault("CANNOT_INSERT_UPDATE_ACTIVATE_ENTITY"), Applied: true, Want: crm.Unknown},
			{Name: "500", Status: 500, Body: salesforceFault("UNKNOWN_EXCEPTION"), Applied: true, Want: crm.Unknown},
		},
		searches: salesforceSearches,
	}
}

func odoo() vendor {
	return vendor{
		file: "odoo", vars: map[string]string{"database": "example"},
		isCreate: posts("/crm.lead/load"),
		key: func(_ *http.Request, body any) string {
			if row := dig(body, "data", 0, 0); row != "" {
				return strings.TrimPrefix(row, "__tgops__.")
			}
			return dig(body, "domain", 1, 2)
		},
		made:  func(l kept) reply { return ok(`{"ids":[%d],"messages":[],"nextrow":0}`, l.n) },
		again: func(l kept) reply { return ok(`{"ids":[%d],"messages":[],"nextrow":0}`, l.n) },
		listed: func(_ string, leads []kept) reply {
			return ok("[%s]", each(leads, func(l kept) string { return fmt.Sprintf(`{"id":%d,"name":%q,"res_id":%d}`, 900+l.n, l.key, l.n) }))
		},
		answers: []crmtest.Answer{
			{Name: "200_rolled_back", Status: 200, Body: `{"ids":false,"messages":[{"type":"error","message":"No matching record found"}]}`, Want: crm.Refused},
			{Name: "200_false_alone", Status: 200, Body: `{"ids":false}`, Applied: true, Want: crm.Unknown},
			{Name: "200_false_in_ids", Status: 200, Body: `{"ids":[false],"messages":[]}`, Applied: true, Want: crm.Unknown},
			{Name: "200_jsonrpc_error", Status: 200, Body: `{"jsonrpc":"2.0","error":{"code":200}}`, Applied: true, Want: crm.Unknown},
			{Name: "422_validation", Status: 422, Body: `{"name":"odoo.exceptions.ValidationError","message":"x"}`, Want: crm.Refused},
			{Name: "403_access", Status: 403, Body: `{"name":"odoo.exceptions.AccessError","message":"x"}`, Want: crm.NotApplied},
			{Name: "401_key", Status: 401, Body: `{"name":"werkzeug.exceptions.Unauthorized","message":"Invalid apikey"}`, Want: crm.NotApplied},
			{Name: "429", Status: 429, Want: crm.NotApplied},
			{Name: "500_serialization", Status: 500, Body: `{"name":"psycopg2.errors.SerializationFailure"}`, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 200, Body: always("[]")},
			{Name: "neighbour", Status: 200, Body: func(op string) string { return `[{"id":1,"name":"` + op + `x","res_id":5}]` }},
			{Name: "no_id", Status: 200, Body: func(op string) string { return `[{"id":1,"name":"` + op + `","res_id":false}]` }, Fails: true},
			{Name: "error_inside", Status: 200, Body: always(`{"error":{}}`), Fails: true},
		},
	}
}

func zoho() vendor {
	record := func(l kept, action string) string {
		return fmt.Sprintf(`{"data":[{"code":"SUCCESS","duplicate_field":null,"action":%q,"details":{"id":"55%d"},"message":"record added","status":"success"}]}`, action, l.n)
	}
	fault := func(code, field string) string {
		return fmt.Sprintf(`{"data":[{"code":%q,"details":{"api_name":%q},"message":"x","status":"error"}]}`, code, field)
	}
	return vendor{
		file: "zoho", prefix: "55",
		isCreate: posts("/Leads/upsert"),
		key: func(_ *http.Request, body any) string {
			if dig(body, "duplicate_check_fields", 0) == "Tg_Op_Id" {
				return dig(body, "data", 0, "Tg_Op_Id")
			}
			return quotedKey(dig(body, "select_query"))
		},
		made:  func(l kept) reply { return reply{status: 201, body: record(l, "insert")} },
		again: func(l kept) reply { return ok("%s", record(l, "update")) },
		listed: func(_ string, leads []kept) reply {
			if len(leads) == 0 {
				return reply{status: 204}
			}
			return ok(`{"data":[%s],"info":{"more_records":false}}`, each(leads, func(l kept) string { return fmt.Sprintf(`{"Tg_Op_Id":%q,"id":"55%d"}`, l.key, l.n) }))
		},
		answers: []crmtest.Answer{
			{Name: "200_record_failed", Status: 200, Body: fault("MANDATORY_NOT_FOUND", "Last_Name"), Want: crm.Refused},
			{Name: "202_record_failed", Status: 202, Body: fault("INVALID_DATA", "Description"), Want: crm.Refused},
			{Name: "202_success_inside", Status: 202, Body: record(kept{7, ""}, "insert"), Applied: true, Want: crm.Unknown},
			{Name: "200_no_record", Status: 200, Body: `{"data":[]}`, Applied: true, Want: crm.Unknown},
			{Name: "duplicate_of_email", Status: 400, Body: fault("DUPLICATE_DATA", "Email"), Want: crm.Refused},
			{Name: "lost_race_and_none_there", Status: 400, Body: fault("DUPLICATE_DATA", "Tg_Op_Id"), Want: crm.Unknown},
			{Name: "429", Status: 429, Body: `{"code":"TOO_MANY_REQUESTS"}`, Want: crm.NotApplied},
			{Name: "401_token", Status: 401, Body: `{"code":"INVALID_TOKEN","status":"error"}`, Want: crm.NotApplied},
			{Name: "401_scope", Status: 401, Body: `{"code":"OAUTH_SCOPE_MISMATCH","status":"error"}`, Want: crm.NotApplied},
			{Name: "500", Status: 500, Body: `{"code":"INTERNAL_ERROR","status":"error"}`, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 204, Body: always("")},
			{Name: "other_case", Status: 200, Body: func(op string) string { return `{"data":[{"id":"1","Tg_Op_Id":"` + strings.ToUpper(op) + `"}]}` }},
			{Name: "error", Status: 400, Body: always(`{"code":"SYNTAX_ERROR","status":"error"}`), Fails: true},
		},
	}
}
