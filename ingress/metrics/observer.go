package metrics

import (
	"strconv"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// Recorded counts the events.
func (m *Metrics) Recorded(_ job.State, events []job.Event) {
	for _, event := range events {
		m.events.WithLabelValues(event.Name()).Inc()
		switch e := event.(type) {
		case job.UpdateReceived:
			m.accepted.WithLabelValues(telegram.Label(e.Kind)).Inc()
		case job.ReconciliationNeeded:
			m.reconciling.WithLabelValues(strconv.FormatBool(e.Human)).Inc()
		case job.ReceiptConflicted:
			m.receiptsClash.Inc()
		case job.KeyConflicted:
			m.keysClash.Inc()
		}
	}
}

// Called times the request.
func (m *Metrics) Called(_ job.State, request engine.Request, took time.Duration, err *crm.Error) {
	outcome := "ok"
	if err != nil {
		outcome = strings.ReplaceAll(err.Outcome.String(), " ", "_")
	}
	m.calling.WithLabelValues(string(request), outcome).Observe(took.Seconds())
}

// Troubled counts.
func (m *Metrics) Troubled(string, error) { m.troubles.Inc() }

// Observers is one observer that tells all of them, in their order.
func Observers(all ...engine.Observer) engine.Observer { return fanOut(all) }

type fanOut []engine.Observer

func (f fanOut) Recorded(s job.State, events []job.Event) {
	for _, o := range f {
		o.Recorded(s, events)
	}
}

func (f fanOut) Called(s job.State, request engine.Request, took time.Duration, err *crm.Error) {
	for _, o := range f {
		o.Called(s, request, took, err)
	}
}

func (f fanOut) Troubled(stream string, err error) {
	for _, o := range f {
		o.Troubled(stream, err)
	}
}
