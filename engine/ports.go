package engine

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// Clock is the time of this process.
type Clock interface {
	Now() time.Time
	// Sleep waits for d, or returns the context's error when that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// IDs makes event ids that no other call in any process makes.
type IDs interface{ New() eventlog.EventID }

// Observer is told what the engine did and could not do. It must not block. It
// takes no part in any decision.
type Observer interface {
	// Recorded follows every append to a job's stream; state is after events.
	Recorded(state job.State, events []job.Event)
	// Called follows every request to the CRM. err is nil, or what it proves.
	Called(state job.State, request Request, took time.Duration, err *crm.Error)
	// Troubled says that a step could not be done; it is tried again.
	Troubled(stream string, err error)
}

// Request is the kind of a call to the CRM.
type Request string

// The requests.
const (
	Create Request = "create"
	Find   Request = "find"
)

// Config is what an Engine is made of. Every field must be set.
type Config struct {
	Log      eventlog.Log
	CRM      crm.Connector
	Clock    Clock
	IDs      IDs
	Observer Observer
	Plan     job.Planner
	Policy   job.Policy
	Worker   string // names this process in its claims
}

// Engine advances jobs. It is safe for concurrent use.
type Engine struct {
	Config
	steps steps
	pause pause
}

// New is an engine over the ports. The policy must hold its own relations.
func New(c Config) (*Engine, error) {
	if err := c.Policy.Check(); err != nil {
		return nil, err
	}
	return &Engine{Config: c, steps: crm.StepsOf(c.CRM)}, nil
}

// CapabilityOf is what a connector's description allows a job to do.
func CapabilityOf(d crm.Description) job.Capability {
	return job.Capability{
		Repeatable: d.Class.Repeatable(), Validity: d.KeyValidity,
		CanFind: d.CanFind, Settle: d.Settle,
	}
}

// share draws a number from [0,1) for the jitter of a wait.
func (e *Engine) share() float64 {
	id := e.IDs.New()
	return float64(binary.BigEndian.Uint32(id[12:])) / (1 << 32)
}
