package job

import (
	"encoding/json"
	"fmt"
	"time"
)

// State is a job as its events tell it. The zero State is a job without events.
type State struct {
	Phase Phase // New for the zero State as well: see Now
	Key   Key

	Fingerprint string
	Kind        string
	Chat, User  int64
	Update      string // the body, byte for byte
	ReceivedAt  time.Time

	Action      string
	BusinessKey string
	OperationID string

	// Fields of the lead, as its first claim has them; "" before, and in logs of
	// releases that did not record them.
	Fields Fields
	Step   string // that the newest claim is for; "" where one effect makes the lead
	Made   []Made // by the steps so far; read only

	Claim    Claim // meaningful while claimed
	Attempts int   // claims so far
	Spent    int   // attempts that count against the policy's budget
	Releases int   // claims given up in a row before a request left
	Lookups  int   // lookups that failed, since the outcome became unknown

	// Ambiguous: an earlier request may have had its effect, and nothing has
	// settled it yet.
	Ambiguous bool
	// FirstSent is when the oldest request of the operation may have left, since
	// the operation was last proven to be without effect.
	FirstSent time.Time
	// LastDeadline is after which no request so far can still have left, for the
	// step that the job stands at.
	LastDeadline time.Time
	// DoubtedUntil is until when requests may have left that this log does not know
	// of. Zero: there are none.
	DoubtedUntil time.Time

	NotBefore time.Time // when the next step is due
	Human     bool      // only an operator can go on
	CRMID     string
	How       Confirmation
	LastError string

	Repeats      int               // DeliveryRepeated events
	Variants     map[string]string // fingerprint → event key of other updates under this key; read only
	OtherCRMIDs  []string          // of ReceiptConflicted, behind the name of their step
	Requeues     int
	ConfirmedBy  string // event key of the job that made the effect instead
	SharedCRMID  string // and its lead
	EventCount   uint64
	LastEventAt  time.Time
	LastOperator string
}

// Claim is a worker's permission to send one request.
type Claim struct {
	Fence      uint64 // revision of the JobClaimed event
	Worker     string
	At         time.Time
	LeaseUntil time.Time
	Deadline   time.Time
}

// Now is the job's phase.
func (s State) Now() Phase {
	if s.Phase == "" {
		return New
	}
	return s.Phase
}

// Revision is the revision of the newest event; only for a job that has one.
func (s State) Revision() uint64 { return s.EventCount - 1 }

// Evolve is the state after one more event, recorded at the given time. It
// never fails: what is recorded happened.
func (s State) Evolve(e Event, at time.Time) State {
	revision := s.EventCount
	s.EventCount++
	s.LastEventAt = at
	switch e := e.(type) {
	case UpdateReceived:
		s.Phase, s.Key, s.Fingerprint, s.Kind = Pending, e.Key, e.Fingerprint, e.Kind
		s.Chat, s.User, s.Update, s.ReceivedAt = e.Chat, e.User, e.Update, at
		s.NotBefore = at
	case DeliveryRepeated:
		s.Repeats++
	case KeyConflicted:
		s.Variants = with(s.Variants, e.Fingerprint, e.StoredAs)
	case JobClaimed:
		s.Phase, s.Attempts = Claimed, s.Attempts+1
		s.Action, s.BusinessKey, s.OperationID, s.Step = e.Action, e.BusinessKey, e.OperationID, e.Step
		if s.Fields == "" {
			s.Fields = e.Fields
		}
		s.Claim = Claim{Fence: revision, Worker: e.Worker, At: at, LeaseUntil: e.LeaseUntil, Deadline: e.Deadline}
		s.NotBefore = e.LeaseUntil
	case ClaimRenewed:
		s.Claim.LeaseUntil, s.Claim.Deadline, s.NotBefore = e.LeaseUntil, e.Deadline, e.LeaseUntil
	case ClaimReleased:
		s = s.unclaimed(Pending, e.NotBefore, e.Reason)
		s.Releases++
	case AttemptNotApplied:
		s = s.attempted().unclaimed(Pending, e.NotBefore, e.Reason)
	case OutcomeUnknown:
		s = s.attempted().unclaimed(Pending, e.NotBefore, e.Reason)
		s.Ambiguous = true
	case ReconciliationNeeded:
		if s.Phase == Claimed {
			s = s.attempted()
			s.Lookups = 0
		} else {
			s.Lookups++
		}
		if !e.DoubtedUntil.IsZero() {
			s = s.doubted(e.DoubtedUntil)
		}
		s = s.unclaimed(NeedsReconciliation, e.NotBefore, e.Reason)
		s.Ambiguous, s.Human = true, e.Human
	default:
		s = s.evolveEnding(e)
	}
	return s
}

// evolveEnding folds the events that end a job or start it again.
func (s State) evolveEnding(e Event) State {
	switch e := e.(type) {
	case StepConfirmed:
		s = s.unclaimed(Pending, s.LastEventAt, s.LastError)
		s.Made = append(s.Made[:len(s.Made):len(s.Made)], Made{e.Step, e.CRMID, e.How})
		s.Spent, s.Releases, s.Lookups, s.LastOperator = 0, 0, 0, e.By // each step has its own
		s.Ambiguous, s.Human, s.FirstSent, s.LastDeadline = false, false, time.Time{}, time.Time{}
	case LeadConfirmed:
		s = s.unclaimed(Done, time.Time{}, "")
		s.CRMID, s.How, s.LastOperator = e.CRMID, e.How, e.By
		s.Ambiguous, s.Human = false, false
	case ReceiptConflicted:
		s.OtherCRMIDs = append(s.OtherCRMIDs[:len(s.OtherCRMIDs):len(s.OtherCRMIDs)], e.id())
		s.Ambiguous = s.Ambiguous || e.Confirmed == "" // a request did have an effect
	case NoEffectNeeded:
		s = s.unclaimed(Done, time.Time{}, e.Reason)
		s.ConfirmedBy, s.SharedCRMID = e.ConfirmedBy, e.CRMID
	case LeadAbsent:
		s = s.unclaimed(Pending, s.LastEventAt, s.LastError)
		s.Ambiguous, s.Human, s.FirstSent, s.LastOperator = false, false, time.Time{}, e.By
		s.DoubtedUntil = time.Time{} // then no later step was made either
		if e.How == ByOperator {
			s.Spent = 0
		}
	case JobDeadLettered:
		if s.Phase == Claimed {
			s = s.attempted()
		}
		s = s.unclaimed(DeadLetter, time.Time{}, e.Reason)
		s.Human, s.LastOperator = false, e.By
	case JobRequeued:
		s = s.unclaimed(Pending, s.LastEventAt, s.LastError)
		s.Requeues++
		s.Spent, s.LastOperator = 0, e.By
	}
	return s
}

// unclaimed leaves the claim for another phase.
func (s State) unclaimed(to Phase, notBefore time.Time, lastError string) State {
	s.Phase, s.NotBefore, s.Claim = to, notBefore, Claim{}
	if lastError != "" {
		s.LastError = lastError
	}
	return s
}

// attempted notes that the claim's request may have left.
func (s State) attempted() State {
	s.Spent++
	s.Releases = 0
	if s.FirstSent.IsZero() || s.Claim.At.Before(s.FirstSent) {
		s.FirstSent = s.Claim.At
	}
	if s.Claim.Deadline.After(s.LastDeadline) {
		s.LastDeadline = s.Claim.Deadline
	}
	return s
}

// doubted takes requests of unknown processes into account. The claim that a doubt
// makes sent nothing, and is no attempt.
func (s State) doubted(until time.Time) State {
	if s.Phase == Claimed {
		s.Spent--
	} else {
		s.Lookups = 0
	}
	if until.After(s.LastDeadline) {
		s.LastDeadline = until
	}
	if until.After(s.DoubtedUntil) {
		s.DoubtedUntil = until
	}
	return s
}

// with is m and one more entry, leaving m as it is: states share their history.
func with(m map[string]string, key, value string) map[string]string {
	next := make(map[string]string, len(m)+1)
	for k, v := range m {
		next[k] = v
	}
	next[key] = value
	return next
}

// Schedule is what one event says about when its job must be looked at again.
type Schedule int

// The schedules.
const (
	Unchanged Schedule = iota // nothing new
	DueAt                     // at the time given
	Waiting                   // open, but only an operator can go on
	Closed                    // the job is final
)

// Due tells from one event alone when its job is due. It lets a sweep find
// every open job without folding each of them.
func Due(e Event, at time.Time) (Schedule, time.Time) {
	switch e := e.(type) {
	case UpdateReceived, StepConfirmed, LeadAbsent, JobRequeued:
		return DueAt, at
	case JobClaimed:
		return DueAt, e.LeaseUntil
	case ClaimRenewed:
		return DueAt, e.LeaseUntil
	case ClaimReleased:
		return DueAt, e.NotBefore
	case AttemptNotApplied:
		return DueAt, e.NotBefore
	case OutcomeUnknown:
		return DueAt, e.NotBefore
	case ReconciliationNeeded:
		if e.Human {
			return Waiting, time.Time{}
		}
		return DueAt, e.NotBefore
	case LeadConfirmed, NoEffectNeeded, JobDeadLettered:
		return Closed, time.Time{}
	default:
		return Unchanged, time.Time{}
	}
}

// Next is what an event says about when to look at its job again, and who claimed
// the job by it.
type Next struct {
	Schedule Schedule
	At       time.Time // for DueAt
	Worker   string    // of a JobClaimed
}

// DueOf is Due of a recorded event, with Decode's error. It looks no further into an
// event than it must where whoever takes the job finds out whether it can be decoded,
// and into none that changes nothing. Those events are most of a log.
func DueOf(wireName string, data []byte, at time.Time) (Next, error) {
	switch wireName {
	case wireReceived:
		return Next{Schedule: DueAt, At: at}, nil
	case wireClaimed:
		var claim struct {
			Worker string    `json:"worker"`
			Until  time.Time `json:"lease_until"`
		}
		if err := json.Unmarshal(data, &claim); err != nil {
			return Next{}, fmt.Errorf("decode %s: %w", wireName, err)
		}
		return Next{DueAt, claim.Until, claim.Worker}, nil
	case wireRepeated:
		return Next{}, nil
	}
	e, err := Decode(wireName, data)
	if err != nil {
		return Next{}, err
	}
	schedule, due := Due(e, at)
	return Next{Schedule: schedule, At: due}, nil
}

var (
	wireReceived = currentName[UpdateReceived{}.Name()]
	wireClaimed  = currentName[JobClaimed{}.Name()]
	wireRepeated = currentName[DeliveryRepeated{}.Name()]
)
