package projections

import (
	"context"
	"database/sql"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

var incidentsModel = model{
	name: "incidents",
	tables: `
CREATE TABLE {incidents} (
	id          INTEGER PRIMARY KEY, -- grows in the log's order
	number      INTEGER NOT NULL,    -- of the job
	kind        TEXT    NOT NULL,
	at          TEXT    NOT NULL,
	position    TEXT    NOT NULL,
	fingerprint TEXT    NOT NULL,
	stored_as   TEXT    NOT NULL,
	step        TEXT    NOT NULL,
	crm_id      TEXT    NOT NULL,
	confirmed   TEXT    NOT NULL
) STRICT;`,
	derived: `CREATE INDEX incidents_job ON incidents (number);`,
	record:  func() recorder { return incidentsRecorder{} },
}

// IncidentKind is what contradicts what is recorded.
type IncidentKind string

// The kinds of incident.
const (
	KeyConflict     IncidentKind = "key_conflict"     // another update came under the job's key
	ReceiptConflict IncidentKind = "receipt_conflict" // another CRM id came for the job's operation
)

type incidentsRecorder struct{ unbuffered }

func (incidentsRecorder) apply(ctx context.Context, s *session, c *change) error {
	i := Incident{Number: c.row.job.Number, At: c.Time, Position: c.Recorded.Position.String()}
	switch e := c.event.(type) {
	case job.KeyConflicted:
		i.Kind, i.Fingerprint, i.StoredAs = KeyConflict, e.Fingerprint, e.StoredAs
	case job.ReceiptConflicted:
		i.Kind, i.Step, i.CRMID, i.Confirmed = ReceiptConflict, e.Step, e.CRMID, e.Confirmed
	default:
		return nil
	}
	return s.exec(ctx, `INSERT INTO {incidents} (number, kind, at, position, fingerprint, stored_as, step, crm_id, confirmed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		i.Number, string(i.Kind), stampText(i.At), i.Position, i.Fingerprint, i.StoredAs, i.Step, i.CRMID, i.Confirmed)
}

// Incident is one contradiction, for a human.
type Incident struct {
	ID       int64        `json:"id"`     // grows in the log's order
	Number   int64        `json:"number"` // of the job
	Key      string       `json:"event_key"`
	Kind     IncidentKind `json:"kind"`
	At       time.Time    `json:"at"`
	Position string       `json:"position"` // of its event, commit/prepare

	Fingerprint string `json:"fingerprint,omitempty"` // of the other update
	StoredAs    string `json:"stored_as,omitempty"`   // event key of the other update
	Step        string `json:"step,omitempty"`        // whose id came; empty: the lead's
	CRMID       string `json:"crm_id,omitempty"`      // the id that came
	Confirmed   string `json:"confirmed,omitempty"`   // the id that is recorded
}

// Incidents answers for the jobs of the filter, the newest incident first. Here
// After and Since are about the incident: its ID, its time.
func (s *Store) Incidents(ctx context.Context, f Filter) ([]Incident, error) {
	about := f
	about.After, about.Since = 0, time.Time{}
	c := about.conditions()
	if !f.Since.IsZero() {
		c.add("i.at >= ?", stampText(f.Since))
	}
	where, args := c.page("i.id", f)
	query := `SELECT i.id, i.number, j.event_key, i.kind, i.at, i.position, i.fingerprint, i.stored_as, i.step, i.crm_id, i.confirmed
		FROM incidents i JOIN jobs j USING (number)` + where
	return list(ctx, s, query, args, func(rows *sql.Rows) (i Incident, err error) {
		err = rows.Scan(&i.ID, &i.Number, &i.Key, &i.Kind, (*stamp)(&i.At), &i.Position, &i.Fingerprint, &i.StoredAs, &i.Step, &i.CRMID, &i.Confirmed)
		return i, err
	})
}
