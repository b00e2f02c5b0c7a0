package properties

import (
	"context"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// rested is a connector that is opened anew as soon as it asks to be left alone. The
// engine waits through that pause in simulated time, which is no time at all, and a
// connector that keeps the pause by itself lives in real time.
type rested struct {
	crm.Connector
	open func() (crm.Connector, error)
}

func openRested(open func() (crm.Connector, error)) (crm.Connector, error) {
	c, err := open()
	if err != nil {
		return nil, err
	}
	return &rested{c, open}, nil
}

func (r *rested) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	receipt, err := r.Connector.Create(ctx, op)
	return receipt, r.rest(err)
}

func (r *rested) Find(ctx context.Context, operationID string, deadline time.Time) ([]crm.Receipt, error) {
	receipts, err := r.Connector.Find(ctx, operationID, deadline)
	return receipts, r.rest(err)
}

// rest ends the pause that the error asks for. A run makes one call at a time, so the
// connector can be exchanged between two of them.
func (r *rested) rest(err error) error {
	if err == nil || crm.Classify(err).RetryAfter == 0 {
		return err
	}
	if fresh, failed := r.open(); failed == nil {
		r.Connector = fresh
	}
	return err
}
