package audit_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/audit"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// A log with a job in every phase, repeated and conflicting deliveries, retries
// and streams of others keeps every promise.
func TestSoundLogHasNoFinding(t *testing.T) {
	s := newStory(t)
	s.done(1, "", "L-1")
	s.tell(key(1), job.DeliveryRepeated{Reason: "again"}, job.DeliveryRepeated{Reason: "again"}, job.KeyConflicted{Fingerprint: "f", StoredAs: "telegram/1/1/f"})
	s.begun(2, "")
	s.tell(key(3), received(t, 3, ""))
	s.tell(key(4), received(t, 4, ""), job.NoEffectNeeded{Reason: "nothing asked for"})
	s.begun(5, "")
	s.tell(key(5), job.ReconciliationNeeded{Reason: "unknown", Human: true})
	s.begun(6, "")
	s.tell(key(6), job.JobDeadLettered{Reason: "refused"})
	s.begun(7, "")
	s.tell(key(7), job.OutcomeUnknown{Reason: "time-out"})
	s.tell(key(7), s.claim(7), job.ClaimRenewed{}, job.LeadConfirmed{CRMID: "L-7", How: job.ByExists})
	s.done(8, "album", "L-8")
	s.tell(key(9), received(t, 9, "album"), job.NoEffectNeeded{Reason: "made by another", ConfirmedBy: key(8).String(), CRMID: "L-8"})
	s.append("readiness-probe", "ReadinessProbed.v1", []byte("{}"))
	s.append("somebody-elses", "Unheard.v9", nil)
	r := s.verify()
	want(t, r)
	if r.Findings == nil {
		t.Error("no findings are null in JSON, want an empty list")
	}
	if r.Jobs != 9 || r.Leads != 3 || r.Duplicates != 2 || r.Conflicts != 1 || r.Events != int(s.next) {
		t.Errorf("counted %+v", r)
	}
	phases := map[job.Phase]int{job.Done: 5, job.Claimed: 1, job.Pending: 1, job.NeedsReconciliation: 1, job.DeadLetter: 1}
	if fmt.Sprint(r.Phases) != fmt.Sprint(phases) {
		t.Errorf("phases %v, want %v", r.Phases, phases)
	}
	want(t, verify(t, newStory(t).log))
}

// Each row breaks one promise.
var breaches = map[string]struct {
	story func(s *story)
	want  [][3]string
}{
	"an event that the machine does not allow": {func(s *story) {
		s.done(1, "", "L-1")
		s.tell(key(1), job.LeadConfirmed{CRMID: "L-1"})
	}, [][3]string{{"illegal", "update-1-1", "revision 3: LeadConfirmed is not allowed in phase done"}}},
	"an event of another stream": {func(s *story) {
		kind, data, _ := job.Encode(received(s.t, 2, ""))
		s.append(key(1).Stream(), kind, data)
	}, [][3]string{{"illegal", "update-1-1", "holds the update of telegram/1/2"}}},
	"a changed update": {func(s *story) {
		e := received(s.t, 1, "")
		e.Update = strings.Replace(e.Update, "hello", "hullo", 1)
		s.tell(key(1), e)
	}, [][3]string{{"illegal", "update-1-1", "bytes do not give its id and fingerprint"}}},
	"a changed fingerprint": {func(s *story) {
		e := received(s.t, 1, "")
		e.Fingerprint = strings.Repeat("0", 64)
		s.tell(key(1), e)
	}, [][3]string{{"illegal", "update-1-1", "bytes do not give its id and fingerprint"}}},
	"another operation than the business key's": {func(s *story) {
		s.tell(key(1), received(s.t, 1, ""))
		claim := s.claim(1)
		claim.OperationID = job.OperationID(1, job.CreateLead, "another")
		s.tell(key(1), claim)
	}, [][3]string{{"illegal", "telegram/1/1", "is not the one of its business key"}}},
	"an operation that changes": {func(s *story) {
		s.begun(1, "")
		s.tell(key(1), job.ClaimReleased{Reason: "not sent"})
		claim := s.claim(1)
		claim.BusinessKey = "another"
		claim.OperationID = job.OperationID(1, job.CreateLead, "another")
		s.reserve(claim.OperationID, key(1))
		s.tell(key(1), claim)
	}, [][3]string{{"illegal", "telegram/1/1", "its operation changed from"}}},
	"an attempt that is not counted": {func(s *story) {
		s.begun(1, "")
		s.tell(key(1), job.OutcomeUnknown{Reason: "time-out"})
		claim := s.claim(1)
		claim.Attempt = 1
		s.tell(key(1), claim)
	}, [][3]string{{"illegal", "telegram/1/1", "attempt 1 follows attempt 1"}}},
	"a lead without an id": {func(s *story) {
		s.done(1, "", "")
	}, [][3]string{{"illegal", "telegram/1/1", "confirmed without the lead's id"}}},
	"a step without an id": {func(s *story) {
		s.begun(1, "")
		s.tell(key(1), job.StepConfirmed{Step: "contact"})
	}, [][3]string{{"illegal", "telegram/1/1", "its step contact is confirmed without an id"}}},
	"a step that is made twice": {func(s *story) {
		s.begun(1, "")
		s.tell(key(1), job.StepConfirmed{Step: "contact", CRMID: "C-1"}, job.StepConfirmed{Step: "contact", CRMID: "C-2"})
	}, [][3]string{{"illegal", "telegram/1/1", "its step contact is confirmed as C-1 and again as C-2"}}},
	"another lead than its step made": {func(s *story) {
		s.begun(1, "")
		s.tell(key(1), job.StepConfirmed{Step: job.LeadStep, CRMID: "L-1"}, job.LeadConfirmed{CRMID: "L-2"})
	}, [][3]string{{"illegal", "telegram/1/1", "confirmed with lead L-2, and its step made lead L-1"}}},
	"an event of no known type": {func(s *story) {
		s.begun(1, "")
		s.append(key(1).Stream(), "Unheard.v9", nil)
	}, [][3]string{{"undecodable", "update-1-1", "revision 2, position"}}},
	"an event that is no JSON": {func(s *story) {
		s.tell(key(1), received(s.t, 1, ""))
		s.append(key(1).Stream(), "JobClaimed.v1", []byte("{"))
	}, [][3]string{{"undecodable", "update-1-1", "revision 1, position"}}},
	"a job that no sweep finds": {func(s *story) {
		s.tell(key(1), job.DeliveryRepeated{Reason: "of what?"})
	}, [][3]string{{"illegal", "update-1-1", "DeliveryRepeated is not allowed in phase new"}, {"unfindable", "update-1-1", "in phase new"}}},
	"two jobs that made one operation's lead": {func(s *story) {
		s.done(1, "album", "L-1")
		s.done(2, "album", "L-2")
	}, [][3]string{{"doubled", job.OperationID(1, job.CreateLead, businessKey), "by telegram/1/1 as lead L-1 and by telegram/1/2 as lead L-2"}}},
	"a lead without a claim": {func(s *story) {
		s.tell(key(1), received(s.t, 1, ""), job.LeadConfirmed{CRMID: "L-1", How: job.ByLate})
	}, [][3]string{{"illegal", "telegram/1/1", "lead L-1 is confirmed, and no claim came before"}}},
	"one lead for two operations": {func(s *story) {
		s.done(1, "", "L-1")
		s.done(2, "", "L-2")
		s.done(3, "", "L-1")
	}, [][3]string{{"shared", "L-1", "stands for 2 operations"}}},
	"a second id for one operation": {func(s *story) {
		s.done(1, "", "L-1")
		s.tell(key(1), job.ReceiptConflicted{CRMID: "L-2", Confirmed: "L-1"})
	}, [][3]string{{"incident", "telegram/1/1", `lead L-2, but recorded is "L-1"`}}},
}

// Behind a breach, a sound job must still be counted.
func TestBrokenPromiseIsFound(t *testing.T) {
	for name, c := range breaches {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			c.story(s)
			s.done(99, "", "L-99")
			r := s.verify()
			want(t, r, c.want...)
			if r.Phases[job.Done] == 0 {
				t.Error("the sound job behind it is not counted")
			}
		})
	}
}

// businessKey is that of an album in these stories.
const businessKey = `telegram/1/album/"5"/"album"`

// Events that are gone from the middle, and from the beginning.
func TestMissingEventsAreFound(t *testing.T) {
	s := newStory(t)
	s.done(1, "", "L-1")
	s.done(2, "", "L-2")
	for revision, findings := range map[uint64][][3]string{
		0: {{"illegal", "update-1-1", "revision 1 where 0 is due"}, {"illegal", "update-1-1", "revision 1: JobClaimed is not allowed in phase new"}, {"illegal", "telegram/0/0", "is not the one of its business key"}},
		1: {{"illegal", "update-1-1", "revision 2 where 1 is due"}, {"illegal", "telegram/1/1", "lead L-1 is confirmed, and no claim came before"}},
	} {
		r := verify(t, censored{s.log, func(r eventlog.Recorded) bool {
			return r.Stream == key(1).Stream() && r.Revision == revision
		}})
		want(t, r, findings...)
	}
}

// While the log is read, serve goes on: what is accepted, moved or finished
// meanwhile is no finding.
func TestLogInUseHasNoFinding(t *testing.T) {
	s := newStory(t)
	s.tell(key(1), received(t, 1, ""))
	moves := []func(){
		func() { s.tell(key(2), received(t, 2, "")) }, // accepted behind the first sweep
		func() { s.begun(3, "") },
		func() { s.done(4, "", "L-4") },
		func() { s.tell(key(5), received(t, 5, ""), job.JobDeadLettered{Reason: "refused"}) },
		func() { s.tell(key(5), job.JobRequeued{By: "ada", Reason: "again"}) },
		func() { s.tell(key(2), job.NoEffectNeeded{Reason: "nothing"}) },
		func() { s.tell(key(3), job.LeadConfirmed{CRMID: "L-3"}) },
	}
	for between := range 4 { // reads of the log between two of serve's moves
		s.log = newStory(t).log
		s.jobs, s.next = map[job.Key]job.State{}, 0
		s.tell(key(1), received(t, 1, ""))
		want(t, verify(t, &busyLog{Log: s.log, moves: moves, between: between}))
	}
}

// busyLog moves on while it is read.
type busyLog struct {
	eventlog.Log
	moves          []func()
	between, reads int
}

func (l *busyLog) move() {
	l.reads++
	if l.reads > 1 && len(l.moves) > 0 && l.reads%(l.between+1) == 0 {
		l.moves[0]()
		l.moves = l.moves[1:]
	}
}

func (l *busyLog) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	l.move()
	return l.Log.ReadAll(ctx, after)
}

func (l *busyLog) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	l.move()
	return l.Log.ReadStream(ctx, stream, from)
}

// A log that cannot be read is an error, and no report without findings.
func TestUnreadableLogIsAnError(t *testing.T) {
	s := newStory(t)
	s.done(1, "", "L-1")
	for _, failing := range []string{"all", "stream"} {
		if _, err := audit.Verify(t.Context(), failingLog{s.log, failing}, nil); !errors.Is(err, errDown) {
			t.Errorf("reading %s fails, and the audit says %v", failing, err)
		}
	}
}

var errDown = errors.New("the log is down")

type failingLog struct {
	eventlog.Log
	failing string
}

func fails(yield func(eventlog.Recorded, error) bool) { yield(eventlog.Recorded{}, errDown) }

func (l failingLog) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	if l.failing == "all" {
		return fails
	}
	return l.Log.ReadAll(ctx, after)
}

func (l failingLog) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	if l.failing == "stream" {
		return fails
	}
	return l.Log.ReadStream(ctx, stream, from)
}
