package job

// OperationReserved: the job Holder may make the effect of the operation. The
// newest one on the stream operation-<operation_id> counts.
type OperationReserved struct {
	Holder Key `json:"holder"`

	// Requeues is how often the holder had been requeued when it reserved. A
	// requeued holder reserves anew, so that it and a job that takes over from
	// the dead letter compete for one revision, and one of them loses.
	Requeues int `json:"requeues"`
}

// Name is the event's name.
func (OperationReserved) Name() string { return "OperationReserved" }

// OperationStream is the stream on which an operation is reserved.
func OperationStream(operationID string) string { return OperationStreams + operationID }

// Standing is what a job may do about the operation that it shares.
type Standing int

// The standings.
const (
	Holds     Standing = iota // it may make the effect
	MayTake                   // it may reserve the operation, at the revision that was read
	MustWait                  // another job is about it
	Satisfied                 // another job confirmed it
	Blocked                   // another job gave up without knowing its outcome, or after a part of it
)

// Stand judges the reservation r for the job self. holder is the state of the
// job that holds it, read after r.
func Stand(r OperationReserved, self State, holder State) Standing {
	if r.Holder == self.Key {
		if r.Requeues == self.Requeues {
			return Holds
		}
		return MayTake
	}
	switch {
	case holder.Phase == Done && holder.CRMID != "":
		return Satisfied
	case !holder.Phase.Final():
		return MustWait
	case holder.Requeues < r.Requeues:
		return MustWait // it was read too early: it has been requeued since
	case holder.Ambiguous || len(holder.Made) > 0:
		return Blocked
	default:
		return MayTake // also from a holder that was requeued and ended before it reserved again
	}
}
