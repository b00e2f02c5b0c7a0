package restcrm_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

const (
	personField = "fedcba9876543210fedcba9876543210fedcba98"
	leadField   = "0123456789abcdef0123456789abcdef01234567"
)

// pipedrive is what its persons and leads have in common; id is the form of their ids.
func pipedrive(step, path, id string) vendor {
	found := func(leads []kept) string {
		return fmt.Sprintf(`{"success":true,"data":{"items":[%s]}}`, each(leads, func(l kept) string {
			return fmt.Sprintf(`{"result_score":0.9,"item":{"id":`+id+`,"custom_fields":["y",%q]}}`, l.n, l.key)
		}))
	}
	return vendor{
		file: "pipedrive", step: step, vars: map[string]string{"field": leadField, "person_field": personField},
		isCreate: posts(path),
		made: func(l kept) reply {
			return reply{status: 201, body: fmt.Sprintf(`{"success":true,"data":{"id":`+id+`}}`, l.n)}
		},
		listed: func(_ string, leads []kept) reply { return ok("%s", found(leads)) },
		answers: []crmtest.Answer{
			{Name: "429", Status: 429, Header: map[string]string{"X-RateLimit-Reset": "2"}, Want: crm.NotApplied},
			{Name: "400_validation", Status: 400, Body: `{"success":false,"error":"A lead must be linked to a person or an organization"}`, Want: crm.Refused},
			{Name: "401", Status: 401, Body: `{"success":false,"error":"unauthorized access"}`, Want: crm.NotApplied},
			{Name: "201_not_a_success", Status: 201, Body: `{"success":false,"data":{"id":"7"}}`, Applied: true, Want: crm.Unknown},
			{Name: "500", Status: 500, Body: `{"success":false}`, Applied: true, Want: crm.Unknown},
		},
		searches: []crmtest.Search{
			{Name: "none", Status: 200, Body: always(found(nil))},
			{Name: "other_case", Status: 200, Body: func(op string) string { return found([]kept{{1, strings.ToUpper(op)}}) }},
			{Name: "a_full_page_of_neighbours", Status: 200, Body: func(op string) string { return found(make([]kept, 10)) }, Fails: true},
			{Name: "not_a_success", Status: 200, Body: always(`{"success":false,"data":{"items":[]}}`), Fails: true},
		},
	}
}

func pipedriveContact() vendor {
	v := pipedrive("contact", "/api/v2/persons", "%d")
	v.key = func(r *http.Request, body any) string {
		return dig(body, "custom_fields", personField) + r.URL.Query().Get("term")
	}
	return v
}

func pipedriveLead() vendor {
	v := pipedrive("lead", "/v1/leads", `"%d"`)
	v.before = map[string]string{"contact": "70"}
	v.key = func(r *http.Request, body any) string {
		if m, _ := body.(map[string]any); r.Method == http.MethodPost && m["person_id"] == nil {
			return "linked to nobody"
		}
		return dig(body, leadField) + r.URL.Query().Get("term")
	}
	return v
}

func hubspotContact() vendor {
	v := hubspot("hubspot-lead", "contact", "contacts/batch/upsert")
	batch := func(l kept, isNew bool) string {
		return fmt.Sprintf(`{"status":"COMPLETE","results":[{"id":%q,"new":%t,"properties":{"tg_op_id":%q}}]}`, l.id(), isNew, l.key)
	}
	v.key = func(r *http.Request, body any) string {
		if r.Method == http.MethodGet && r.URL.Query().Get("idProperty") == "tg_op_id" {
			return lastSegment(r)
		}
		if key := dig(body, "inputs", 0, "id"); key == dig(body, "inputs", 0, "properties", "tg_op_id") && dig(body, "inputs", 0, "idProperty") == "tg_op_id" {
			return key
		}
		return "no key"
	}
	v.made = func(l kept) reply { return ok("%s", batch(l, true)) }
	v.again = func(l kept) reply { return ok("%s", batch(l, false)) }
	v.answers = append(v.answers,
		crmtest.Answer{Name: "207_of_the_batch", Status: 207, Body: `{"status":"COMPLETE","results":[],"numErrors":1,"errors":[{"category":"VALIDATION_ERROR"}]}`, Applied: true, Want: crm.Unknown},
		crmtest.Answer{Name: "200_without_results", Status: 200, Body: `{"status":"COMPLETE","results":[]}`, Applied: true, Want: crm.Unknown},
		crmtest.Answer{Name: "200_still_running", Status: 200, Body: `{"status":"PROCESSING","results":[{"id":"7"}]}`, Applied: true, Want: crm.Unknown},
		crmtest.Answer{Name: "200_of_another", Status: 200, Body: batch(kept{7, "x"}, true), Applied: true, Want: crm.Unknown},
		crmtest.Answer{Name: "200_two", Status: 200, Body: `{"status":"COMPLETE","results":[{"id":"7"},{"id":"8"}]}`, Applied: true, Want: crm.Unknown},
	)
	return v
}

func hubspotLead() vendor {
	v := hubspot("hubspot-lead", "lead", "leads")
	v.before = map[string]string{"contact": "70"}
	of := v.key
	v.key = func(r *http.Request, body any) string {
		if r.Method == http.MethodPost && dig(body, "associations", 0, "to", "id") == "" {
			return "associated with nobody"
		}
		return of(r, body)
	}
	return v
}
