package job

import (
	"fmt"
	"time"
)

// ReplyClaimed: Worker may send the reply about the outcome, until Until. It is the
// first event of the stream reply-<bot>-<update>[-<variant>], written before the
// request may leave; nobody else ever sends, not even when the worker dies. So a
// person gets at most one reply about a job.
type ReplyClaimed struct {
	Key
	Worker  string       `json:"worker"`
	Outcome ReplyOutcome `json:"outcome"`
	Until   time.Time    `json:"until"`
}

// ReplySent: the message is there, under this id.
type ReplySent struct {
	MessageID int64 `json:"message_id"`
}

// ReplyRefused: proof that the message was not sent; nobody tries again.
type ReplyRefused struct {
	Reason string `json:"reason"`
}

// ReplyUnknown: the message may have been sent. It is not sent again.
type ReplyUnknown struct {
	Reason string `json:"reason"`
}

// Name methods: the names of the events.

func (ReplyClaimed) Name() string { return "ReplyClaimed" }
func (ReplySent) Name() string    { return "ReplySent" }
func (ReplyRefused) Name() string { return "ReplyRefused" }
func (ReplyUnknown) Name() string { return "ReplyUnknown" }

// ReplyOutcome is what became of a job, for the person who wrote.
type ReplyOutcome string

// The outcomes.
const (
	LeadMade      ReplyOutcome = "done"
	GivenUp       ReplyOutcome = "dead_letter"
	LeftToHuman   ReplyOutcome = "needs_reconciliation"
	MadeElsewhere ReplyOutcome = "shared"    // the lead is another job's: of its album, or of the first tap
	NothingAsked  ReplyOutcome = "no_effect" // no rule asks for a lead
)

// ReplyOutcomes lists them.
func ReplyOutcomes() []ReplyOutcome {
	return []ReplyOutcome{LeadMade, GivenUp, LeftToHuman, MadeElsewhere, NothingAsked}
}

// OutcomeOf is the outcome of which a job's event tells. What a lookup will settle by
// itself is none yet, and neither is what a person gave up or doubts: whoever does
// that can write to people too.
func OutcomeOf(e Event) (o ReplyOutcome, ok bool) {
	switch e := e.(type) {
	case LeadConfirmed:
		return LeadMade, true
	case JobDeadLettered:
		return GivenUp, e.By == ""
	case ReconciliationNeeded:
		return LeftToHuman, e.Human && e.DoubtedUntil.IsZero()
	case NoEffectNeeded:
		if e.ConfirmedBy != "" {
			return MadeElsewhere, true
		}
		return NothingAsked, true
	default:
		return "", false
	}
}

// CanBeReplied reports whether the update came from a person's message or tap, and
// out of a chat that can be written to.
func CanBeReplied(s State) bool {
	return s.Chat != 0 && (s.Kind == "message" || s.Kind == "callback_query")
}

// ReplyPhase is how far a reply has come.
type ReplyPhase string

// The phases. A reply whose worker died stays claimed for ever.
const (
	NoReply        ReplyPhase = ""
	ReplyIsClaimed ReplyPhase = "claimed"
	ReplyIsSent    ReplyPhase = "sent"
	ReplyIsRefused ReplyPhase = "refused"
	ReplyIsUnknown ReplyPhase = "unknown"
)

// Reply is a reply as its events tell it.
type Reply struct {
	Phase     ReplyPhase
	Claim     ReplyClaimed
	ClaimedAt time.Time
	EndedAt   time.Time
	MessageID int64  // of a sent one
	Reason    string // of one that is refused or unknown
}

// Allows is an error when the event cannot be the reply's next.
func (r Reply) Allows(e Event) error {
	switch e.(type) {
	case ReplyClaimed:
		if r.Phase == NoReply {
			return nil
		}
	case ReplySent, ReplyRefused, ReplyUnknown:
		if r.Phase == ReplyIsClaimed {
			return nil
		}
	default:
		return fmt.Errorf("%s is no event of a reply", e.Name())
	}
	if r.Phase == NoReply {
		return fmt.Errorf("%s is not allowed before a claim", e.Name())
	}
	return fmt.Errorf("%s is not allowed on a reply that is %s", e.Name(), r.Phase)
}

// Evolve is the reply after one more event, recorded at the given time.
func (r Reply) Evolve(e Event, at time.Time) Reply {
	switch e := e.(type) {
	case ReplyClaimed:
		r.Phase, r.Claim, r.ClaimedAt = ReplyIsClaimed, e, at
	case ReplySent:
		r.Phase, r.MessageID, r.EndedAt = ReplyIsSent, e.MessageID, at
	case ReplyRefused:
		r.Phase, r.Reason, r.EndedAt = ReplyIsRefused, e.Reason, at
	case ReplyUnknown:
		r.Phase, r.Reason, r.EndedAt = ReplyIsUnknown, e.Reason, at
	}
	return r
}

// Telling is a job as far as its person can be told of it.
type Telling struct {
	State
	Outcome ReplyOutcome // how the job stands; "" while there is nothing to tell
	At      uint64       // revision of the event that made the outcome

	// Doubted: the log was restored from a backup, and what this job's person was told
	// since then is not in it.
	Doubted bool
}

// Evolve is the telling after one more event of the job.
func (t Telling) Evolve(e Event, at time.Time) Telling {
	if s, _ := Due(e, time.Time{}); s != Unchanged { // else a note, by which nothing changes for the person
		t.Outcome, t.At = "", t.EventCount
		if o, ok := OutcomeOf(e); ok {
			t.Outcome = o
		}
	}
	if r, _ := e.(ReconciliationNeeded); !r.DoubtedUntil.IsZero() {
		t.Doubted = true
	}
	t.State = t.State.Evolve(e, at)
	return t
}

// Tells reports whether the outcome of the event at the revision is to be told: it is
// still how the job stands, and there is a person to tell it to.
func (t Telling) Tells(revision uint64) bool {
	return t.Outcome != "" && t.At == revision && !t.Doubted && CanBeReplied(t.State)
}
