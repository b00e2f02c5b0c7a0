package crmsim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
)

func TestKeyIsForgottenWhenItsValidityHasPassed(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.IdempotencyKey, KeyValidity: time.Hour})
	sim.create(t.Context(), "e-1", nil, crmsim.CutAfter)
	sim.advance(time.Hour - time.Nanosecond)
	replay := sim.create(t.Context(), "e-1", nil, crmsim.NoFault)
	if replay.body != made || replay.header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf("within the validity the client saw %s %v, want the first answer, flagged", replay.body, replay.header)
	}
	sim.wantEffects(1)
	sim.advance(time.Nanosecond)
	second := sim.create(t.Context(), "e-1", nil, crmsim.NoFault)
	if second.body != `{"id":"L-000002"}` || second.header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("after the validity the client saw %s %v, want a second lead", second.body, second.header)
	}
	sim.wantEffects(2)
}

func TestValidityCountsFromTheArrivalNotFromTheLateEffect(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.IdempotencyKey, KeyValidity: time.Hour, Hang: time.Minute})
	seen := sim.startCreate(t.Context(), "e-1", crmsim.HangThenApply)
	sim.awaitPending(1)
	sim.advance(time.Minute)
	sim.open()
	(<-seen).want(t, 201, "")
	sim.advance(59 * time.Minute)
	sim.create(t.Context(), "e-1", fields{"name": "Ada"}, crmsim.NoFault).want(t, 201, "")
	sim.wantEffects(2)
}

func TestKeyInFlightIsAConflictUntilTheEffect(t *testing.T) {
	for _, fault := range []crmsim.Fault{crmsim.HangThenApply, crmsim.AcceptedLater} {
		t.Run(string(fault), func(t *testing.T) {
			sim := newCRM(t, crmsim.Config{Class: crmsim.IdempotencyKey})
			seen := sim.startCreate(t.Context(), "e-1", fault)
			sim.awaitPending(1)
			sim.create(t.Context(), "e-1", fields{"name": "Ada"}, crmsim.NoFault).want(t, 409, "idempotency_key_in_use")
			sim.create(t.Context(), "e-1", fields{"name": "Eve"}, crmsim.NoFault).want(t, 422, "idempotency_key_reused")
			sim.open()
			<-seen
			sim.awaitPending(0)
			if a := sim.create(t.Context(), "e-1", fields{"name": "Ada"}, crmsim.NoFault); a.body != made {
				t.Fatalf("after the effect the client saw %d %s", a.status, a.body)
			}
			sim.wantEffects(1)
		})
	}
}

func TestKeyWithAnotherBodyIsRefused(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.IdempotencyKey})
	sim.create(t.Context(), "e-1", fields{"name": "Ada"}, crmsim.NoFault).want(t, 201, "")
	sim.create(t.Context(), "e-1", fields{"name": "Eve"}, crmsim.NoFault).want(t, 422, "idempotency_key_reused")
	sim.wantEffects(1)
}

func TestCreateWithoutAKeyIsAPlainOne(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.IdempotencyKey})
	for range 2 {
		sim.do(t.Context(), http.MethodPost, "/leads", `{"external_id":"e-1"}`, nil).want(t, 201, "")
	}
	sim.wantEffects(2)
}

func TestRefusedCreateLeavesItsKeyFree(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.IdempotencyKey})
	sim.create(t.Context(), "e-1", fields{"reject": "yes"}, crmsim.NoFault).want(t, 422, "validation")
	sim.create(t.Context(), "e-1", nil, crmsim.NoFault).want(t, 201, "")
	sim.wantEffects(1)
}
