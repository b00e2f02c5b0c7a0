package projections

import (
	"context"

	"github.com/leadonce/leadonce/engine/job"
)

// model is one read model.
type model struct {
	name string

	// tables creates its tables. {x} stands for the table x of the set that is
	// being fed: the live one, or the one of a rebuild.
	tables string

	// derived creates its indexes and views. They exist in the live set only, so
	// that a rebuild makes each index in one go.
	derived string

	// record makes what feeds the tables; nil for a model without tables.
	record func() recorder
}

// models lists every read model. A view comes behind the tables that it reads.
var models = []model{
	jobsModel,
	mappingModel,
	timingsModel,
	countsModel,
	duplicatesModel,
	incidentsModel,
}

// recorder feeds the tables of one model. It is made anew after a transaction
// that failed, so what it remembers is of the running one or was committed.
type recorder interface {
	// apply takes one change. It may write, or remember it for flush.
	apply(ctx context.Context, s *session, c *change) error

	// flush writes what apply remembered, at the end of the transaction.
	flush(ctx context.Context, s *session) error
}

// change is one event and what it did to its job.
type change struct {
	arrival
	row           *row
	first         bool // the row was made by this event
	before, after job.State
	stopped       bool // the event stopped the job; then before and after are the same
}

// unbuffered is for recorders that write at once.
type unbuffered struct{}

func (unbuffered) flush(context.Context, *session) error { return nil }
