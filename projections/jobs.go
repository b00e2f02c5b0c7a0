package projections

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/leadonce/leadonce/engine/job"
)

// jobsModel is the table that the others hang on: its rows are what the fold
// begins from again.
var jobsModel = model{
	name:   "jobs",
	tables: createJobs(),
	derived: `
CREATE INDEX jobs_phase     ON jobs (phase);
CREATE INDEX jobs_received  ON jobs (received_at);
CREATE INDEX jobs_chat      ON jobs (chat) WHERE chat != 0;
CREATE INDEX jobs_user      ON jobs (user) WHERE user != 0;
CREATE INDEX jobs_operation ON jobs (operation_id) WHERE operation_id != '';
CREATE INDEX jobs_crm       ON jobs (crm_id) WHERE crm_id != '';
CREATE INDEX jobs_shared    ON jobs (shared_crm_id) WHERE shared_crm_id != '';
CREATE INDEX jobs_human     ON jobs (number) WHERE human;
CREATE INDEX jobs_stopped   ON jobs (number) WHERE stopped_position != '';`,
	record: func() recorder { return &jobsRecorder{} },
}

var insertJob, updateJob, selectRow = insertStatement(), updateStatement(),
	"SELECT " + columnList("") + ", state FROM {jobs} WHERE stream = ?"

func createJobs() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE {jobs} (\n\tnumber INTEGER PRIMARY KEY,\n")
	for _, c := range columns {
		b.WriteString("\t" + c.name + " " + c.kind + ",\n")
	}
	b.WriteString("\tstate TEXT NOT NULL -- JSON\n) STRICT;")
	return b.String()
}

func insertStatement() string {
	return "INSERT INTO {jobs} (" + columnList("") + ", state) VALUES (?" + strings.Repeat(", ?", len(columns)+1) + ")"
}

// updateStatement leaves the fixed columns alone, and so their indexes.
func updateStatement() string {
	var b strings.Builder
	b.WriteString("UPDATE {jobs} SET state = ?")
	for _, c := range columns {
		if !c.fixed {
			b.WriteString(", " + c.name + " = ?")
		}
	}
	b.WriteString(" WHERE number = ?")
	return b.String()
}

// row is one job while it is fed.
type row struct {
	job    Job
	state  job.State
	stored bool // it is in the table
	dirty  bool // the table has an older one
}

// loadRow is nil when the table has no such stream.
func loadRow(ctx context.Context, s *session, stream string) (*row, error) {
	r := &row{stored: true}
	var state string
	err := s.scan(ctx, selectRow, []any{stream}, append(r.job.fields(), &state)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.state, err = decodeState(state)
	return r, err
}

// jobsRecorder writes each job once a transaction, whatever happened to it.
type jobsRecorder struct{ dirty []*row }

func (j *jobsRecorder) apply(_ context.Context, _ *session, c *change) error {
	if !c.row.dirty {
		c.row.dirty = true
		j.dirty = append(j.dirty, c.row)
	}
	return nil
}

func (j *jobsRecorder) flush(ctx context.Context, s *session) error {
	for i, r := range j.dirty {
		if err := r.write(ctx, s); err != nil {
			return err
		}
		j.dirty[i] = nil
	}
	j.dirty = j.dirty[:0]
	return nil
}

func (r *row) write(ctx context.Context, s *session) error {
	r.job.derive(r.state)
	state, err := encodeState(r.state)
	if err != nil {
		return err
	}
	if r.stored {
		args := []any{state}
		for _, c := range columns {
			if !c.fixed {
				args = append(args, c.field(&r.job))
			}
		}
		err = s.exec(ctx, updateJob, append(args, r.job.Number)...)
	} else {
		err = s.exec(ctx, insertJob, append(r.job.fields(), state)...)
	}
	r.stored, r.dirty = true, false
	return err
}
