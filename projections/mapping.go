package projections

import (
	"context"
	"database/sql"
)

var mappingModel = model{
	name: "mapping",
	derived: `
CREATE VIEW mapping AS SELECT
	number, stream, event_key, operation_id,
	CASE crm_id WHEN '' THEN shared_crm_id ELSE crm_id END AS crm_id,
	how, confirmed_by
FROM jobs WHERE operation_id != '' OR crm_id != '' OR confirmed_by != '';`,
}

// Mapping is which operation and which lead belong to an update.
type Mapping struct {
	Number      int64  `json:"number"` // of the job
	Key         string `json:"event_key"`
	OperationID string `json:"operation_id,omitempty"`
	CRMID       string `json:"crm_id,omitempty"`
	How         string `json:"how,omitempty"`
	ConfirmedBy string `json:"confirmed_by,omitempty"` // event key of the job that made the lead instead
}

// Mappings answers for the jobs of the filter that have an operation or a lead.
func (s *Store) Mappings(ctx context.Context, f Filter) ([]Mapping, error) {
	where, args := f.where()
	query := `SELECT m.number, m.event_key, m.operation_id, m.crm_id, m.how, m.confirmed_by
		FROM mapping m JOIN jobs j USING (number)` + where
	return list(ctx, s, query, args, func(rows *sql.Rows) (m Mapping, err error) {
		err = rows.Scan(&m.Number, &m.Key, &m.OperationID, &m.CRMID, &m.How, &m.ConfirmedBy)
		return m, err
	})
}
