package restcrm_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

func salesforceUI() vendor {
	record := func(l kept) string { return fmt.Sprintf(`{"apiName":"Lead","id":"00Q%d","fields":{}}`, l.n) }
	fault := func(code string) string {
		return fmt.Sprintf(`{"message":"x","statusCode":400,"errorCode":"RECORD_ERROR","output":{"errors":[{"errorCode":%q}]}}`, code)
	}
	return vendor{
		file: "salesforce-uiapi", prefix: "00Q",
		isCreate: posts("/ui-api/records"),
		key: func(r *http.Request, body any) string {
			if r.Method == http.MethodGet {
				return quotedKey(r.URL.Query().Get("q"))
			}
			if key := r.Header.Get("Idempotency-Key"); len(key) != 36 || key[14] != '4' {
				return "no UUID of version 4"
			}
			return dig(body, "fields", "Tg_Op_Id__c")
		},
		made:   func(l kept) reply { return reply{status: 201, body: record(l)} },
		again:  func(l kept) reply { return reply{status: 201, body: record(l)} },
		listed: func(_ string, leads []kept) reply { return salesforceRecords(leads) },
		answers: []crmtest.Answer{
			{Name: "409_still_running", Status: 409, Header: map[string]string{"Retry-After": "2"}, Applied: true, Want: crm.Unknown},
			{Name: "422_another_request", Status: 422, Applied: true, Want: crm.Unknown},
			{Name: "429", Status: 429, Want: crm.NotApplied},
			{Name: "400_not_supported", Status: 400, Body: `[{"message":"Idempotency not supported"}]`, Want: crm.NotApplied},
			{Name: "400_unique_and_none_there", Status: 400, Body: fault("DUPLICATE_VALUE"), Want: crm.Unknown},
			{Name: "400_validation", Status: 400, Body: fault("REQUIRED_FIELD_MISSING"), Want: crm.Refused},
			{Name: "limit", Status: 403, Body: salesforceFault("REQUEST_LIMIT_EXCEEDED"), Want: crm.NotApplied},
			{Name: "session_over", Status: 401, Body: salesforceFault("INVALID_SESSION_ID"), Want: crm.NotApplied},
			{Name: "500", Status: 500, Applied: true, Want: crm.Unknown},
		},
		searches: salesforceSearches,
	}
}

func monday() vendor {
	fault := func(code, more string) string {
		return fmt.Sprintf(`{"data":{"create_item":null},"errors":[{"message":"x","extensions":{"code":%q%s}}]}`, code, more)
	}
	items := func(leads []kept, cursor string) string {
		return fmt.Sprintf(`{"data":{"items_page_by_column_values":{"cursor":%s,"items":[%s]}}}`, cursor,
			each(leads, func(l kept) string { return fmt.Sprintf(`{"id":%q,"column_values":[{"text":%q}]}`, l.id(), l.key) }))
	}
	return vendor{
		file: "monday", vars: map[string]string{"board": "123456", "column": "text_op"},
		isCreate: func(r *http.Request) bool { return r.Header.Get("Idempotency-Key") != "" },
		key: func(r *http.Request, body any) string {
			if key := r.Header.Get("Idempotency-Key"); key != "" {
				if dig(body, "variables", "v") != `{"text_op":"`+key+`"}` {
					return "not stored with the item"
				}
				return key
			}
			return dig(body, "variables", "k")
		},
		made: func(l kept) reply { return ok(`{"data":{"create_item":{"id":%q}}}`, l.id()) },
		again: func(l kept) reply {
			r := ok(`{"data":{"create_item":{"id":%q}}}`, l.id())
			r.header = map[string]string{"Idempotency-Replayed": "true"}
			return r
		},
		listed: func(_ string, leads []kept) reply { return ok("%s", items(leads, "null")) },
		answers: []crmtest.Answer{
			{Name: "409_key_in_use", Status: 409, Header: map[string]string{"Retry-After": "1"}, Applied: true, Want: crm.Unknown},
			{Name: "429", Status: 429, Header: map[string]string{"Retry-After": "1"}, Want: crm.NotApplied},
			{Name: "200_complexity", Status: 200, Body: fault("COMPLEXITY_BUDGET_EXHAUSTED", `,"retry_in_seconds":15`), Want: crm.NotApplied},
			{Name: "200_column", Status: 200, Body: fault("ColumnValueException", ""), Want: crm.Refused},
			{Name: "200_internal", Status: 200, Body: fault("INTERNAL_SERVER_ERROR", ""), Applied: true, Want: crm.Unknown},
			{Name: "200_item_and_errors", Status: 200, Body: `{"data":{"create_item":{"id":"7"}},"errors":[{"extensions":{"code":"ColumnValueException"}}]}`, Applied: true, Want: crm.Unknown},
			{Name: "401", Status: 401, Body: `{"errors":["Not Authenticated"]}`, Want: crm.NotApplied},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 200, Body: always(items(nil, "null"))},
			{Name: "more_pages", Status: 200, Body: always(items(nil, `"MSw5"`)), Fails: true},
			{Name: "two_and_a_neighbour", Status: 200, Body: func(op string) string {
				return items([]kept{{1, op}, {2, op}, {3, op + " "}}, "null")
			}, Want: []string{"1", "2"}},
			{Name: "errors", Status: 200, Body: always(`{"data":null,"errors":[{}]}`), Fails: true},
		},
	}
}

func bitrix24() vendor {
	fault := func(code string) string { return fmt.Sprintf(`{"error":%q,"error_description":"x"}`, code) }
	item := func(l kept) string { return fmt.Sprintf(`{"id":%d,"originId":%q}`, l.n, l.key) }
	return vendor{
		file:     "bitrix24",
		isCreate: posts("/crm.item.add.json"),
		key: func(_ *http.Request, body any) string {
			return dig(body, "fields", "originId") + dig(body, "filter", "=originId")
		},
		made: func(l kept) reply { return ok(`{"result":{"item":%s},"time":{}}`, item(l)) },
		listed: func(_ string, leads []kept) reply {
			return ok(`{"result":{"items":[%s]},"total":%d}`, each(leads, item), len(leads))
		},
		answers: []crmtest.Answer{
			{Name: "503_query_limit", Status: 503, Body: fault("QUERY_LIMIT_EXCEEDED"), Want: crm.NotApplied},
			{Name: "429_time_limit", Status: 429, Body: fault("OPERATION_TIME_LIMIT"), Want: crm.NotApplied},
			{Name: "503_blocked", Status: 503, Body: fault("OVERLOAD_LIMIT"), Want: crm.NotApplied},
			{Name: "503_other_code", Status: 503, Body: fault("INTERNAL_SERVER_ERROR"), Applied: true, Want: crm.Unknown},
			{Name: "500_query_limit", Status: 500, Body: fault("QUERY_LIMIT_EXCEEDED"), Applied: true, Want: crm.Unknown},
			{Name: "401", Status: 401, Body: fault("INVALID_CREDENTIALS"), Want: crm.NotApplied},
			{Name: "400_required", Status: 400, Body: fault("CRM_FIELD_ERROR_REQUIRED"), Want: crm.Refused},
			{Name: "400_other_code", Status: 400, Body: fault("ERROR_CORE"), Applied: true, Want: crm.Unknown},
			{Name: "200_error_beside", Status: 200, Body: `{"result":{"item":{"id":7}},"error":"x"}`, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 200, Body: always(`{"result":{"items":[]},"total":0}`)},
			{Name: "filter_ignored", Status: 200, Body: always(`{"result":{"items":[{"id":1,"originId":null}]},"next":50,"total":900}`), Fails: true},
			{Name: "two", Status: 200, Body: func(op string) string {
				return `{"result":{"items":[` + item(kept{1, op}) + "," + item(kept{2, op}) + `]}}`
			}, Want: []string{"1", "2"}},
			{Name: "query_limit", Status: 503, Body: always(fault("QUERY_LIMIT_EXCEEDED")), Fails: true},
		},
	}
}

func kommo() vendor {
	found := func(leads []kept) string {
		return fmt.Sprintf(`{"_page":1,"_embedded":{"leads":[%s]}}`, each(leads, func(l kept) string {
			return fmt.Sprintf(`{"id":%d,"custom_fields_values":[{"field_id":1,"values":[{"value":"x"}]},{"field_id":77,"values":[{"value":%q}]}]}`, l.n, l.key)
		}))
	}
	return vendor{
		file: "kommo", vars: map[string]string{"field": "77"},
		isCreate: posts("/api/v4/leads"),
		key: func(r *http.Request, body any) string {
			if r.Method == http.MethodGet {
				return r.URL.Query().Get("query")
			}
			return dig(body, 0, "custom_fields_values", 0, "values", 0, "value")
		},
		made: func(l kept) reply { return ok(`{"_embedded":{"leads":[{"id":%d,"request_id":%q}]}}`, l.n, l.key) },
		listed: func(_ string, leads []kept) reply {
			if len(leads) == 0 {
				return reply{status: 204}
			}
			return ok("%s", found(leads))
		},
		answers: []crmtest.Answer{
			{Name: "429", Status: 429, Body: `{"title":"Too Many Requests","status":429}`, Want: crm.NotApplied},
			{Name: "403_blocked", Status: 403, Body: "<html>403 Forbidden</html>", Applied: true, Want: crm.Unknown},
			{Name: "401", Status: 401, Body: `{"title":"Unauthorized","status":401}`, Want: crm.NotApplied},
			{Name: "400_validation", Status: 400, Body: `{"validation-errors":[{"request_id":"0","errors":[]}],"status":400}`, Want: crm.Refused},
			{Name: "200_of_another", Status: 200, Body: `{"_embedded":{"leads":[{"id":7,"request_id":"0"}]}}`, Applied: true, Want: crm.Unknown},
			{Name: "200_two", Status: 200, Body: `{"_embedded":{"leads":[{"id":7},{"id":8}]}}`, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 204, Body: always("")},
			{Name: "neighbours", Status: 200, Body: func(op string) string { return found([]kept{{1, op + "x"}, {2, strings.ToUpper(op)}}) }},
			{Name: "a_full_page_of_neighbours", Status: 200, Body: func(op string) string { return found(make([]kept, 50)) }, Fails: true},
			{Name: "no_custom_fields", Status: 200, Body: always(`{"_embedded":{"leads":[{"id":1,"custom_fields_values":null}]}}`)},
		},
	}
}

func espocrm() vendor {
	lead := func(l kept) string { return fmt.Sprintf(`{"id":"%d","lastName":"x","cTgOpId":%q}`, l.n, l.key) }
	return vendor{
		file: "espocrm",
		isCreate: func(r *http.Request) bool {
			return posts("/api/v1/Lead")(r) && r.Header.Get("X-Skip-Duplicate-Check") == "true"
		},
		key: func(r *http.Request, body any) string {
			return dig(body, "cTgOpId") + r.URL.Query().Get("where[0][value]")
		},
		made: func(l kept) reply { return ok("%s", lead(l)) },
		listed: func(_ string, leads []kept) reply {
			return ok(`{"total":%d,"list":[%s]}`, len(leads), each(leads, lead))
		},
		answers: []crmtest.Answer{
			{Name: "429_of_a_proxy", Status: 429, Want: crm.NotApplied},
			{Name: "409_look_alikes", Status: 409, Body: `[{"id":"9","name":"x"}]`, Want: crm.Unknown},
			{Name: "400_of_a_hook_after_the_save", Status: 400, Applied: true, Want: crm.Unknown},
			{Name: "403_of_a_hook_after_the_save", Status: 403, Applied: true, Want: crm.Unknown},
			{Name: "500_of_a_hook_after_the_save", Status: 500, Applied: true, Want: crm.Unknown},
			{Name: "401", Status: 401, Want: crm.NotApplied},
			{Name: "200_of_another", Status: 200, Body: `{"id":"7","cTgOpId":"x"}`, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 200, Body: always(`{"total":0,"list":[]}`)},
			{Name: "two", Status: 200, Body: func(op string) string {
				return `{"total":2,"list":[` + lead(kept{1, op}) + "," + lead(kept{2, op}) + `]}`
			}, Want: []string{"1", "2"}},
			{Name: "no_list", Status: 200, Body: always(`{"total":0}`), Fails: true},
		},
	}
}
