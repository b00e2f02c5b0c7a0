package restcrm_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

// inParentheses is the GUID of leads(<GUID>).
func inParentheses(r *http.Request) string {
	_, rest, _ := strings.Cut(r.URL.Path, "(")
	return strings.TrimSuffix(rest, ")")
}

func lastSegment(r *http.Request) string {
	return r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
}

func dataverse() vendor {
	fault := func(code string) string { return fmt.Sprintf(`{"error":{"code":%q,"message":"A message"}}`, code) }
	return vendor{
		file: "dataverse", hashed: true,
		isCreate: func(r *http.Request) bool {
			return r.Method == http.MethodPatch && r.Header.Get("If-None-Match") == "*"
		},
		key:  func(r *http.Request, _ any) string { return inParentheses(r) },
		made: func(l kept) reply { return reply{status: 201, body: fmt.Sprintf(`{"leadid":%q,"subject":"x"}`, l.key)} },
		again: func(kept) reply {
			return reply{status: 412, body: `{"error":{"code":"0x80060892","message":"A record with matching key values already exists."}}`}
		},
		listed: func(_ string, leads []kept) reply {
			if len(leads) == 0 {
				return reply{status: 404, body: fault("0x80040217")}
			}
			return ok(`{"leadid":%q}`, leads[0].key)
		},
		answers: []crmtest.Answer{
			{Name: "429", Status: 429, Header: map[string]string{"Retry-After": "1"}, Body: fault("0x80072322"), Want: crm.NotApplied},
			{Name: "401", Status: 401, Want: crm.NotApplied},
			{Name: "403_privilege", Status: 403, Body: fault("0x80040220"), Want: crm.NotApplied},
			{Name: "400_validation", Status: 400, Body: fault("0x80048408"), Want: crm.Refused},
			{Name: "400_other_code", Status: 400, Body: fault("HttpRequestPayloadError"), Applied: true, Want: crm.Unknown},
			{Name: "201_of_another", Status: 201, Body: `{"leadid":"2f0c7b1e-3c55-5f0e-9d37-0b8ad3a0a7e1"}`, Applied: true, Want: crm.Unknown},
			{Name: "204_without_id", Status: 204, Applied: true, Want: crm.Unknown},
			{Name: "412_nothing_there", Status: 412, Body: `{"error":{"code":"x","message":"A record with matching key values already exists."}}`, Want: crm.Unknown},
			{Name: "500", Status: 500, Body: fault("0x80040216"), Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 404, Body: always(fault("0x80040217"))},
			{Name: "404_other", Status: 404, Body: always(fault("0x80060888")), Fails: true},
			{Name: "of_another", Status: 200, Body: always(`{"leadid":"2f0c7b1e-3c55-5f0e-9d37-0b8ad3a0a7e1"}`)},
			{Name: "429", Status: 429, Body: always(fault("0x80072322")), Fails: true},
		},
	}
}

func hubspotFault(category, message string) string {
	return fmt.Sprintf(`{"status":"error","message":%q,"correlationId":"c-1","category":%q}`, message, category)
}

func hubspotRecord(l kept) string {
	return fmt.Sprintf(`{"id":%q,"properties":{"tg_op_id":%q},"archived":false}`, l.id(), l.key)
}

// hubspot is that of one kind of records.
func hubspot(file, step, records string) vendor {
	fault := hubspotFault
	return vendor{
		file: file, step: step,
		isCreate: posts("/crm/v3/objects/" + records),
		key: func(r *http.Request, body any) string {
			if r.Method == http.MethodGet && r.URL.Query().Get("idProperty") == "tg_op_id" {
				return lastSegment(r)
			}
			return dig(body, "properties", "tg_op_id")
		},
		made: func(l kept) reply { return reply{status: 201, body: hubspotRecord(l)} },
		again: func(l kept) reply {
			return reply{status: 400, body: fault("VALIDATION_ERROR", "Property values were not valid: "+l.id()+" already has that value.")}
		},
		listed: func(_ string, leads []kept) reply {
			if len(leads) == 0 {
				return reply{status: 404, body: fault("OBJECT_NOT_FOUND", "Object not found")}
			}
			return ok("%s", hubspotRecord(leads[0]))
		},
		answers: []crmtest.Answer{
			{Name: "429", Status: 429, Body: `{"status":"error","policyName":"TEN_SECONDLY_ROLLING"}`, Want: crm.NotApplied},
			{Name: "423", Status: 423, Want: crm.NotApplied},
			{Name: "477", Status: 477, Header: map[string]string{"Retry-After": "86400"}, Want: crm.NotApplied},
			{Name: "401", Status: 401, Body: fault("INVALID_AUTHENTICATION", "x"), Want: crm.NotApplied},
			{Name: "403", Status: 403, Body: fault("MISSING_SCOPES", "x"), Want: crm.NotApplied},
			{Name: "400_validation", Status: 400, Body: fault("VALIDATION_ERROR", "Property x does not exist"), Want: crm.Refused},
			{Name: "400_exists_elsewhere", Status: 400, Body: fault("VALIDATION_ERROR", "12 already has that value."), Want: crm.Unknown},
			{Name: "201_of_another", Status: 201, Body: `{"id":"7","properties":{"tg_op_id":"x"}}`, Applied: true, Want: crm.Unknown},
			{Name: "502_cloudflare", Status: 502, Applied: true, Want: crm.Unknown},
			{Name: "524", Status: 524, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 404, Body: always(fault("OBJECT_NOT_FOUND", "x"))},
			{Name: "404_no_such_property", Status: 404, Body: always(fault("VALIDATION_ERROR", "x")), Fails: true},
			{Name: "other_case", Status: 200, Body: func(op string) string { return hubspotRecord(kept{7, strings.ToUpper(op)}) }},
			{Name: "429", Status: 429, Body: always(""), Fails: true},
		},
	}
}

func suitecrm() vendor {
	bean := func(l kept) string { return fmt.Sprintf(`{"data":{"type":"Leads","id":%q,"attributes":{}}}`, l.key) }
	fault := func(detail string) string {
		return fmt.Sprintf(`{"errors":{"status":400,"title":null,"detail":%q}}`, detail)
	}
	return vendor{
		file: "suitecrm", hashed: true,
		isCreate: posts("/Api/V8/module"),
		key: func(r *http.Request, body any) string {
			if r.Method == http.MethodGet {
				return lastSegment(r)
			}
			return dig(body, "data", "id")
		},
		made: func(l kept) reply { return reply{status: 201, body: bean(l)} },
		again: func(l kept) reply {
			return reply{status: 400, body: fault("Bean Leads with id " + l.key + " is already exist")}
		},
		listed: func(key string, leads []kept) reply {
			if len(leads) == 0 {
				return reply{status: 400, body: fault("Bean Leads with id " + key + " is not found")}
			}
			return ok("%s", bean(leads[0]))
		},
		answers: []crmtest.Answer{
			{Name: "400_after_the_save", Status: 400, Body: fault("Could not upload the file"), Applied: true, Want: crm.Unknown},
			{Name: "400_before_the_save", Status: 400, Body: fault("Property xyz in Leads module is invalid"), Want: crm.Unknown},
			{Name: "400_other_exists", Status: 400, Body: fault("Bean Leads with id 2f0c7b1e-3c55-5f0e-9d37-0b8ad3a0a7e1 is already exist"), Want: crm.Unknown},
			{Name: "401", Status: 401, Body: `{"error":"access_denied"}`, Want: crm.NotApplied},
			{Name: "429_of_a_proxy", Status: 429, Want: crm.NotApplied},
			{Name: "201_of_another", Status: 201, Body: `{"data":{"type":"Leads","id":"x"}}`, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "400_other", Status: 400, Body: always(fault("Module Leads is not found")), Fails: true},
			{Name: "of_another", Status: 200, Body: always(`{"data":{"type":"Leads","id":"x"}}`)},
		},
	}
}

func twenty() vendor {
	fault := func(status int, message string) string {
		return fmt.Sprintf(`{"statusCode":%d,"error":"BadRequestException","messages":[%q]}`, status, message)
	}
	return vendor{
		file: "twenty", hashed: true,
		isCreate: posts("/rest/opportunities"),
		key: func(r *http.Request, body any) string {
			if r.Method == http.MethodGet {
				return lastSegment(r)
			}
			return dig(body, "id")
		},
		made: func(l kept) reply {
			return reply{status: 201, body: fmt.Sprintf(`{"data":{"createOpportunity":{"id":%q}}}`, l.key)}
		},
		again: func(kept) reply { return reply{status: 400, body: fault(400, "A duplicate entry was detected")} },
		listed: func(_ string, leads []kept) reply {
			if len(leads) == 0 {
				return reply{status: 404, body: fault(404, "Record not found")}
			}
			return ok(`{"data":{"opportunity":{"id":%q}}}`, leads[0].key)
		},
		answers: []crmtest.Answer{
			{Name: "429", Status: 429, Body: `{"statusCode":429}`, Want: crm.NotApplied},
			{Name: "401", Status: 401, Body: fault(401, "Token invalid."), Want: crm.NotApplied},
			{Name: "400_other", Status: 400, Body: fault(400, "Object has no field x"), Want: crm.Unknown},
			{Name: "duplicate_of_a_deleted_one", Status: 400, Body: fault(400, "A duplicate entry was detected"), Want: crm.Unknown},
			{Name: "200_graphql_error", Status: 200, Body: `{"errors":[{"message":"x"}]}`, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 404, Body: always(fault(404, "Record not found"))},
			{Name: "null", Status: 200, Body: always(`{"data":{"opportunity":null}}`), Fails: true},
			{Name: "429", Status: 429, Body: always(`{"statusCode":429}`), Fails: true},
		},
	}
}
