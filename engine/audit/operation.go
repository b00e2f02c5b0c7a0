package audit

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// operation checks one stream of reservations.
func (v *verifier) operation(ctx context.Context, stream string) error {
	return v.each(ctx, stream, func(r eventlog.Recorded, event job.Event) error {
		reserved, ok := event.(job.OperationReserved)
		if !ok {
			v.find(Illegal, stream, "revision %d: %s is no reservation", r.Revision, event.Name())
			return nil
		}
		// A job is stored before it reserves, so a log in use has it by now.
		exists, err := v.exists(ctx, reserved.Holder)
		if err == nil && !exists {
			v.find(Illegal, stream, "revision %d: reserved for %s, which does not exist", r.Revision, reserved.Holder)
		}
		return err
	})
}

func (v *verifier) exists(ctx context.Context, key job.Key) (bool, error) {
	if _, err := job.ParseKey(key.String()); err != nil {
		return false, nil
	}
	for _, err := range v.log.ReadStream(ctx, key.Stream(), 0) {
		return err == nil, err
	}
	return false, nil
}

// reserved checks that a job with a shared operation reserved it, which it does
// before it claims.
func (v *verifier) reserved(ctx context.Context, s job.State) error {
	for r, err := range v.log.ReadStream(ctx, job.OperationStream(s.OperationID), 0) {
		if err != nil {
			return err
		}
		event, err := job.Decode(r.Type, r.Data)
		if err != nil {
			return nil // a finding of its own, and it may be the reservation
		}
		if e, ok := event.(job.OperationReserved); ok && e.Holder == s.Key {
			return nil
		}
	}
	v.find(Illegal, s.Key.String(), "claimed the shared operation %s without a reservation", s.OperationID)
	return nil
}

// confirmedBy checks that the job which is said to have made the lead did. That
// was so before it was said, and nothing undoes it.
func (v *verifier) confirmedBy(ctx context.Context, s job.State) error {
	key, err := job.ParseKey(s.ConfirmedBy)
	if err != nil {
		v.find(Illegal, s.Key.String(), "its lead is said to be of %q: %v", s.ConfirmedBy, err)
		return nil
	}
	other, err := engine.Load(ctx, v.log, key.Stream())
	switch {
	case errors.Is(err, engine.ErrNoJob):
		v.find(Illegal, s.Key.String(), "its lead is said to be of %s, which does not exist", key)
	case engine.IsStopped(err): // a finding of its own
	case err != nil:
		return err
	case other.Phase != job.Done || other.CRMID == "":
		v.find(Illegal, s.Key.String(), "its lead is said to be of %s, which is in phase %s and has none", key, other.Now())
	case s.SharedCRMID != "" && s.SharedCRMID != other.CRMID:
		v.find(Illegal, s.Key.String(), "its lead is said to be %s of %s, which has %s", s.SharedCRMID, key, other.CRMID)
	}
	return nil
}

// sharedLeads finds leads that stand for more than one operation.
func (v *verifier) sharedLeads() {
	operations := v.report.operations
	var ids []string
	for id, op := range operations {
		if op.crmID != "" {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(operations[a].crmID, operations[b].crmID), cmp.Compare(a, b))
	})
	for len(ids) > 0 {
		crmID, n := operations[ids[0]].crmID, 1
		for n < len(ids) && operations[ids[n]].crmID == crmID {
			n++
		}
		if n > 1 {
			v.find(Shared, crmID, "stands for %d operations, such as %s of %s and %s of %s",
				n, ids[0], operations[ids[0]].key, ids[1], operations[ids[1]].key)
		}
		ids = ids[n:]
	}
}
