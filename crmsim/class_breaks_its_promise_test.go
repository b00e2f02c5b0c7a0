package crmsim_test

import (
	"maps"
	"sync"
	"testing"

	"github.com/leadonce/leadonce/crmsim"
)

const crowd = 100

func TestCreatesWithOneKeyAtOnce(t *testing.T) {
	effects := map[crmsim.Class]int{
		crmsim.IdempotencyKey: 1, crmsim.Upsert: 1, crmsim.UniqueCreate: 1,
		crmsim.Lookup: crowd, crmsim.None: crowd,
	}
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		sim := newCRM(t, crmsim.Config{Class: class})
		seen := make(chan answer, crowd)
		var clients sync.WaitGroup
		for range crowd {
			clients.Go(func() { seen <- sim.create(t.Context(), "e-1", nil, crmsim.NoFault) })
		}
		clients.Wait()
		close(seen)
		sim.wantEffects(effects[class])
		first := 0
		for a := range seen {
			switch {
			case a.status == 201 && a.header.Get("Idempotency-Replayed") == "":
				first++
			case class == crmsim.IdempotencyKey && (a.status == 201 || a.code() == "idempotency_key_in_use"):
			case class == crmsim.Upsert && a.status == 200 && a.body == made:
			case class == crmsim.UniqueCreate && a.code() == "already_exists":
			default:
				t.Errorf("a client of %s saw %d %s (%v)", class, a.status, a.body, a.err)
			}
		}
		if first != effects[class] {
			t.Errorf("%d clients saw a first creation, want %d", first, effects[class])
		}
		if total := sim.Totals()["e-1"]; total != (crmsim.Total{Creates: crowd}) {
			t.Errorf("journal counts %+v, want %d creates", total, crowd)
		}
	})
}

func TestSecondUpsertWritesItsFieldsOver(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Upsert})
	sim.create(t.Context(), "a/b c", fields{"name": "Ada", "phone": "1"}, crmsim.NoFault).want(t, 201, "")
	before := sim.Effects()[0]
	sim.create(t.Context(), "a/b c", fields{"name": "Eve"}, crmsim.NoFault).want(t, 200, "")
	sim.wantEffects(1)
	after := sim.Effects()[0]
	if after.ExternalID != "a/b c" || !maps.Equal(after.Fields, fields{"name": "Eve", "phone": "1"}) {
		t.Fatalf("lead is %+v", after)
	}
	if !maps.Equal(before.Fields, fields{"name": "Ada", "phone": "1"}) {
		t.Fatalf("what was read before has changed to %+v", before)
	}
	if stats := sim.Stats(); stats.Created != 1 || stats.Updated != 1 {
		t.Fatalf("stats are %+v, want one creation and one update", stats)
	}
}

func TestExistsWithoutTheID(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.UniqueCreate, OmitExistingID: true})
	sim.create(t.Context(), "e-1", nil, crmsim.NoFault).want(t, 201, "")
	seen := sim.create(t.Context(), "e-1", nil, crmsim.NoFault)
	if seen.status != 409 || seen.body != `{"error":{"code":"already_exists"}}` {
		t.Fatalf("client saw %d %s", seen.status, seen.body)
	}
}

func TestRefusalsMakeNoLead(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		sim := newCRM(t, crmsim.Config{
			Class:    class,
			Poisoned: func(id string, given map[string]string) bool { return id == "e-bad" && given["name"] == "Ada" },
		})
		ctx := t.Context()
		sim.create(ctx, "e-1", fields{"reject": ""}, crmsim.NoFault).want(t, 422, "validation")
		sim.create(ctx, "e-bad", fields{"name": "Ada"}, crmsim.NoFault).want(t, 422, "validation")
		if a := sim.create(ctx, "e-1", fields{"look_alike": "L-000777"}, crmsim.NoFault); a.body !=
			`{"error":{"code":"look_alike"},"id":"L-000777"}` || a.status != 409 {
			t.Errorf("client saw %d %s", a.status, a.body)
		}
		sim.create(ctx, "e-1", fields{"reject": ""}, crmsim.BadRequestAfter).want(t, 400, "bad_request")
		sim.wantEffects(0)
	})
}

func TestRequestThatIsNoCreateMakesNoLead(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	post := func(body, fault string) answer {
		return sim.do(t.Context(), "POST", "/leads", body, map[string]string{"X-Crmsim-Fault": fault})
	}
	post("{", "").want(t, 400, "malformed")
	post(`{"fields":{}}`, "").want(t, 422, "external_id_missing")
	post(`{"external_id":"e-1"}`, "nonsense").want(t, 400, "unknown_fault")
	post(`{"external_id":"e-1"}`, "key_ignored").want(t, 400, "unknown_fault")
	sim.do(t.Context(), "PUT", "/leads/e-1", "{}", nil).want(t, 405, "not_supported")
	sim.do(t.Context(), "GET", "/nothing", "", nil).want(t, 404, "no_route")
	sim.wantEffects(0)
	if n := len(sim.Requests()); n != 2 {
		t.Fatalf("journal has %d requests, want the two that the CRM tried to read", n)
	}
}

func TestRemovedLeadIsGoneAndItsExternalIDFree(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.UniqueCreate})
	ctx := t.Context()
	sim.create(ctx, "e-1", nil, crmsim.NoFault)
	sim.create(ctx, "e-2", nil, crmsim.NoFault)
	sim.do(ctx, "DELETE", "/leads/L-000002?merged_into=L-000009", "", nil).want(t, 404, "not_found")
	sim.do(ctx, "DELETE", "/leads/L-000002?merged_into=L-000002", "", nil).want(t, 404, "not_found")
	sim.wantEffects(2)
	sim.do(ctx, "DELETE", "/leads/L-000002?merged_into=L-000001", "", nil).want(t, 204, "")
	sim.do(ctx, "DELETE", "/leads/L-000002", "", nil).want(t, 404, "not_found")
	if a := sim.find("e-2", crmsim.NoFault); a.body != miss {
		t.Fatalf("lookup of a merged lead saw %s", a.body)
	}
	sim.do(ctx, "DELETE", "/leads/L-000001", "", nil).want(t, 204, "")
	sim.wantEffects(0)
	if a := sim.create(ctx, "e-1", nil, crmsim.NoFault); a.body != `{"id":"L-000003"}` {
		t.Fatalf("client saw %s, want an id that was never given before", a.body)
	}
}
