package crmsim_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
)

// served is a CRM run by Serve; stop ends it and returns what Serve returned.
func served(t *testing.T, config crmsim.Config) (sim *crm, stop func() error) {
	t.Helper()
	ticking := newClock()
	config.Now, config.After = ticking.Now, ticking.After
	server, err := crmsim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	stop = func() error {
		cancel()
		return errors.Join(<-ended, server.Close())
	}
	return &crm{Server: server, clock: ticking, t: t, class: config.Class, url: "http://" + listener.Addr().String()}, stop
}

func TestOutageReallyRefusesAndEnds(t *testing.T) {
	sim, stop := served(t, crmsim.Config{Class: crmsim.Lookup})
	sim.create(t.Context(), "e-1", nil, crmsim.NoFault).want(t, 201, "")
	ended, err := sim.Down(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if a := sim.create(t.Context(), "e-2", nil, ""); !errors.Is(a.err, syscall.ECONNREFUSED) {
		t.Fatalf("client saw %d %s (%v), want a refused connection", a.status, a.body, a.err)
	}
	select {
	case <-ended:
		t.Fatal("the outage ended before its time")
	default:
	}
	sim.open()
	<-ended
	sim.create(t.Context(), "e-2", nil, crmsim.NoFault).want(t, 201, "")
	sim.wantEffects(2)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestOutageEndsIdleConnectionsToo(t *testing.T) {
	sim, stop := served(t, crmsim.Config{Class: crmsim.Lookup})
	kept := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer kept.CloseIdleConnections()
	post := func() error {
		response, err := kept.Post(sim.url+"/leads", "application/json", strings.NewReader(`{"external_id":"e-1"}`))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	if err := post(); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Down(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if err := post(); err == nil {
		t.Fatal("a kept connection got through the outage")
	}
	sim.wantEffects(1)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestOutageOverTheWireAndStopInTheMiddle(t *testing.T) {
	sim, stop := served(t, crmsim.Config{Class: crmsim.Lookup})
	sim.do(t.Context(), "POST", "/control/down", `{"seconds":0}`, nil).want(t, 409, "no_outage")
	sim.do(t.Context(), "POST", "/control/down", `{"seconds":0.2}`, nil).want(t, 204, "")
	if a := sim.find("e-1", ""); !errors.Is(a.err, syscall.ECONNREFUSED) {
		t.Fatalf("client saw %d %s (%v), want a refused connection", a.status, a.body, a.err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestOutageNeedsAListener(t *testing.T) {
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup})
	sim.do(t.Context(), "POST", "/control/down", `{"seconds":1}`, nil).want(t, 409, "no_outage")
}

func TestStopLetsHungRequestsFinish(t *testing.T) {
	sim, stop := served(t, crmsim.Config{Class: crmsim.Lookup})
	seen := sim.startCreate(t.Context(), "e-1", crmsim.HangThenApply)
	sim.awaitPending(1)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	(<-seen).want(t, 201, "")
	sim.wantEffects(1)
}

func TestOnlyLoopbackIsServedUnlessAllowed(t *testing.T) {
	for _, allow := range []bool{false, true} {
		sim, err := crmsim.New(crmsim.Config{Class: crmsim.None, AllowRemote: allow})
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = sim.Serve(ctx, listener)
		if refused := err != nil && strings.Contains(err.Error(), "not loopback"); refused == allow {
			t.Errorf("AllowRemote %v: Serve on every address returned %v", allow, err)
		}
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	}
}
