package crmsim_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadonce/leadonce/crmsim"
)

func TestEffectHappensAfterTheClientGaveUp(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		sim := newCRM(t, crmsim.Config{Class: class})
		patience, giveUp := context.WithCancel(t.Context())
		seen := sim.startCreate(patience, "e-1", crmsim.HangThenApply)
		sim.awaitPending(1)
		giveUp()
		if a := <-seen; !isTimeout(a.err) {
			t.Fatalf("client saw %d %s (%v), want its own time-out", a.status, a.body, a.err)
		}
		sim.wantEffects(0)
		if class.CanFind() {
			if a := sim.find("e-1", crmsim.NoFault); a.body != miss {
				t.Fatalf("lookup before the effect saw %s", a.body)
			}
		}
		sim.open()
		sim.awaitPending(0)
		sim.wantEffects(1)
	})
}

func TestLateEffectIsExactlyHangLate(t *testing.T) {
	for _, fault := range []crmsim.Fault{crmsim.HangThenApply, crmsim.AcceptedLater} {
		synctest.Test(t, func(t *testing.T) {
			sim, err := crmsim.New(crmsim.Config{Class: crmsim.Lookup, Hang: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			request := httptest.NewRequest(http.MethodPost, "/leads", strings.NewReader(`{"external_id":"e-1"}`))
			request.Header.Set("X-Crmsim-Fault", string(fault))
			sim.ServeHTTP(httptest.NewRecorder(), request)
			if err := sim.Wait(t.Context(), func(s crmsim.Stats) bool { return s.Pending == 0 }); err != nil {
				t.Fatal(err)
			}
			if late := sim.Effects()[0].At.Sub(begun); late != 300*time.Millisecond {
				t.Errorf("%s: the effect is %v late, want 300ms", fault, late)
			}
			if err := sim.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStoppedCRMLosesNoEffectItAccepted(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	sim.create(t.Context(), "e-1", nil, crmsim.AcceptedLater).want(t, 202, "")
	seen := sim.startCreate(t.Context(), "e-2", crmsim.HangThenApply)
	sim.awaitPending(2)
	sim.wantEffects(0)
	if err := sim.Close(); err != nil {
		t.Fatal(err)
	}
	sim.wantEffects(2)
	(<-seen).want(t, 201, "")
	if a := sim.create(t.Context(), "e-3", nil, ""); a.err == nil {
		t.Fatalf("a closed CRM answered %d %s", a.status, a.body)
	}
	sim.wantEffects(2)
}
