package crmsim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// An Effect is one lead that exists. Two leads with one external id are two effects.
type Effect struct {
	ExternalID string            `json:"external_id"`
	CRMID      string            `json:"crm_id"`
	At         time.Time         `json:"at"`     // when it was created
	Fields     map[string]string `json:"fields"` // as last written
}

// A Request is one request that reached the CRM, with what became of it.
type Request struct {
	Number     int       `json:"number"` // from 1, in order of arrival
	At         time.Time `json:"at"`
	Op         Op        `json:"op"`
	ExternalID string    `json:"external_id"` // empty if the request had none that could be read
	Key        string    `json:"idempotency_key,omitempty"`
	Fault      Fault     `json:"fault"`
	Outcome    Outcome   `json:"outcome"`
	Status     int       `json:"status"` // 0 without an answer
}

// A Total counts the requests that bore one external id.
type Total struct {
	Creates int `json:"creates"`
	Finds   int `json:"finds"`
}

// Stats counts what has happened since the journal began.
type Stats struct {
	Requests int           `json:"requests"`
	Answered int           `json:"answered"`
	Created  int           `json:"created"`
	Updated  int           `json:"updated"`
	Removed  int           `json:"removed"`
	Leads    int           `json:"leads"` // that exist
	Faults   map[Fault]int `json:"faults"`

	// Pending counts late effects that are still to come, and LoginVisits requests that followed a
	// redirect to the login page; both since the start of the process.
	Pending     int `json:"pending"`
	LoginVisits int `json:"login_visits"`
}

type lead struct {
	Effect
	gone bool
}

// ledger is the journal folded in memory.
type ledger struct {
	requests   []Request
	totals     map[string]Total
	created    []*lead // in order of creation, removed ones too
	byID       map[string]*lead
	byExternal map[string][]*lead
	keys       map[string]usedKey
	stats      Stats
}

func newLedger() *ledger {
	return &ledger{
		totals:     map[string]Total{},
		byID:       map[string]*lead{},
		byExternal: map[string][]*lead{},
		keys:       map[string]usedKey{},
		stats:      Stats{Faults: map[Fault]int{}},
	}
}

// fold refuses only entries that no CRM can have written.
func (l *ledger) fold(e entry) error {
	switch e.Kind {
	case kindRequest:
		return l.foldRequest(e)
	case kindAnswer:
		if e.Request < 1 || e.Request > len(l.requests) {
			return fmt.Errorf("answer to request %d, which is not there", e.Request)
		}
		l.requests[e.Request-1].Outcome, l.requests[e.Request-1].Status = e.Outcome, e.Status
		if e.Outcome == OutcomeAnswered {
			l.stats.Answered++
		}
		return nil
	case kindCreated:
		return l.foldCreated(e)
	case kindUpdated, kindRemoved:
		return l.foldChange(e)
	default:
		return fmt.Errorf("entry of kind %q is not known", e.Kind)
	}
}

func (l *ledger) foldRequest(e entry) error {
	if e.Request != len(l.requests)+1 {
		return fmt.Errorf("request %d comes after request %d", e.Request, len(l.requests))
	}
	l.requests = append(l.requests, Request{
		Number: e.Request, At: e.At, Op: e.Op, ExternalID: e.ExternalID, Key: e.Key,
		Fault: e.Fault, Outcome: OutcomePending,
	})
	total := l.totals[e.ExternalID]
	if e.Op == Find {
		total.Finds++
	} else {
		total.Creates++
	}
	l.totals[e.ExternalID] = total
	l.stats.Requests++
	l.stats.Faults[e.Fault]++
	return nil
}

func (l *ledger) foldCreated(e entry) error {
	if e.CRMID != l.nextID() {
		return fmt.Errorf("lead %q comes where %s should", e.CRMID, l.nextID())
	}
	made := &lead{Effect: Effect{ExternalID: e.ExternalID, CRMID: e.CRMID, At: e.At, Fields: fieldsOf(e.Fields)}}
	l.created = append(l.created, made)
	l.byID[e.CRMID] = made
	l.byExternal[e.ExternalID] = append(l.byExternal[e.ExternalID], made)
	if !e.KeyAt.IsZero() {
		l.keys[e.Key] = usedKey{externalID: e.ExternalID, fields: made.Fields, at: e.KeyAt, crmID: e.CRMID}
	}
	l.stats.Created++
	l.stats.Leads++
	return nil
}

func (l *ledger) foldChange(e entry) error {
	changed, ok := l.byID[e.CRMID]
	if !ok {
		return fmt.Errorf("lead %q is not there", e.CRMID)
	}
	if e.Kind == kindUpdated {
		written := maps.Clone(changed.Fields)
		maps.Copy(written, e.Fields)
		changed.Fields = written
		l.stats.Updated++
		return nil
	}
	changed.gone = true
	delete(l.byID, e.CRMID)
	l.byExternal[changed.ExternalID] = slices.DeleteFunc(l.byExternal[changed.ExternalID],
		func(other *lead) bool { return other == changed })
	l.stats.Removed++
	l.stats.Leads--
	return nil
}

func (l *ledger) nextID() string { return fmt.Sprintf("L-%06d", len(l.created)+1) }

// effects shares no memory with the ledger that a later fold writes to.
func (l *ledger) effects() []Effect {
	existing := make([]Effect, 0, l.stats.Leads)
	for _, candidate := range l.created {
		if !candidate.gone {
			existing = append(existing, candidate.Effect)
		}
	}
	return existing
}

// recent lists the newest wanted requests, newest last.
func (l *ledger) recent(limit int, wanted func(externalID string) bool) []Request {
	newest := []Request{}
	for _, request := range slices.Backward(l.requests) {
		if len(newest) == limit {
			break
		}
		if wanted(request.ExternalID) {
			newest = append(newest, request)
		}
	}
	slices.Reverse(newest)
	return newest
}

func (l *ledger) totalsOf(wanted func(externalID string) bool) map[string]Total {
	totals := map[string]Total{}
	for externalID, total := range l.totals {
		if wanted(externalID) {
			totals[externalID] = total
		}
	}
	return totals
}

// fieldsOf makes "no fields" one thing before and after a trip through the file.
func fieldsOf(fields map[string]string) map[string]string {
	if fields == nil {
		return map[string]string{}
	}
	return fields
}
