package restcrm_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/properties"
)

// rested is a connector whose pauses are over as soon as it asked for them: the
// engine waits for them in simulated time, and the connector lives in ours.
type rested struct {
	open func() (crm.Connector, error)

	mu    sync.Mutex
	inner crm.Connector
}

func (r *rested) current() crm.Connector {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inner
}

func (r *rested) rest(err error) {
	if err == nil || crm.Classify(err).RetryAfter == 0 {
		return
	}
	fresh, err := r.open()
	if err != nil {
		panic(err) // it was opened before
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inner = fresh
}

func (r *rested) Describe() crm.Description { return r.current().Describe() }

func (r *rested) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	receipt, err := r.current().Create(ctx, op)
	r.rest(err)
	return receipt, err
}

func (r *rested) Find(ctx context.Context, operationID string, deadline time.Time) ([]crm.Receipt, error) {
	receipts, err := r.current().Find(ctx, operationID, deadline)
	r.rest(err)
	return receipts, err
}

// TestTheEngineKeepsItsPromisesOverIt, while processes die and the wire lies. A class
// takes some seconds; LEADONCE_PROPERTIES_TIME asks for all of them, and for how long.
func TestTheEngineKeepsItsPromisesOverIt(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds for each class")
	}
	classes := []crm.Class{crm.UniqueCreate, crm.Lookup}
	if os.Getenv("LEADONCE_PROPERTIES_TIME") != "" {
		classes = crm.Classes
	}
	for _, class := range classes {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			s := subject(t, class, newSandbox(t, sim.Config{Class: sim.Class(class)}))
			connect := s.Connect
			s.Connect = func(url string) (crm.Connector, error) {
				open := func() (crm.Connector, error) { return connect(url) }
				inner, err := open()
				return &rested{open: open, inner: inner}, err
			}
			s.Short = 200 * time.Millisecond
			properties.CheckConnector(t, s, class)
		})
	}
}
