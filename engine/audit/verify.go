package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// Kind is what is wrong with a job, an operation or a lead.
type Kind string

// The kinds of findings in the log alone.
const (
	Illegal     Kind = "illegal"     // events that the machine does not allow, or that contradict each other
	Undecodable Kind = "undecodable" // an event that this release cannot read
	Unfindable  Kind = "unfindable"  // neither final nor known to a sweep
	Doubled     Kind = "doubled"     // more than one lead for one operation
	Shared      Kind = "shared"      // one lead for more than one operation
	Incident    Kind = "incident"    // a CRM id that contradicts what is recorded
	Damaged     Kind = "damaged"     // the log itself: changed from outside, or cut; found by its keeper
)

// Finding is one broken promise.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Subject string `json:"subject"` // event key, stream or operation id
	Detail  string `json:"detail"`
}

// Report is what a log says.
type Report struct {
	Events     int               `json:"events"`
	Jobs       int               `json:"jobs"`
	Phases     map[job.Phase]int `json:"phases"`
	Leads      int               `json:"leads"`      // operations with a confirmed lead
	Duplicates int               `json:"duplicates"` // deliveries noted as repeated
	Conflicts  int               `json:"conflicts"`  // updates under a key that was taken
	Findings   []Finding         `json:"findings"`

	Replies map[job.ReplyPhase]int `json:"replies"` // to people; claimed: under way, or its worker died
	Drops   int                    `json:"drops"`   // times that a person had pending updates dropped
	Dropped int                    `json:"dropped"` // the updates that were

	operations map[string]operation
}

// operation is what the log says about one operation.
type operation struct {
	key   job.Key // of the job that confirmed it, or else of the last to claim it
	phase job.Phase
	crmID string
}

// Verify reads the whole log. progress, which may be nil, is called now and then
// with the number of events read so far. The error is the log's, and with it
// comes a report on what could be read; what is wrong with the log's content is
// in the report.
func Verify(ctx context.Context, log eventlog.Log, progress func(events int)) (Report, error) {
	v := verifier{log: log, agenda: engine.NewAgenda(), seen: map[string]bool{}, report: Report{
		Phases: map[job.Phase]int{}, Findings: []Finding{}, operations: map[string]operation{}, Replies: map[job.ReplyPhase]int{},
	}}
	unswept := v.agenda.Sweep(ctx, log, nil)
	err := v.read(ctx, progress)
	if unswept != nil {
		err = unswept
	}
	for _, s := range v.suspects {
		if err == nil { // else the agenda does not know all that it should
			err = v.findable(ctx, s)
		}
	}
	v.sharedLeads()
	return v.report, err
}

// maxUnread is how many streams may be unreadable, one by one, before the log
// counts as down.
const maxUnread = 10

// read decides each stream at its first event: then only its name is kept, and
// its operation. A stream that cannot be read does not hold up the others; the
// error is the first.
func (v *verifier) read(ctx context.Context, progress func(events int)) error {
	var unread []error
	for r, err := range v.log.ReadAll(ctx, eventlog.Start) {
		if err != nil {
			return append(unread, err)[0]
		}
		if v.report.Events++; v.report.Events%10_000 == 0 && progress != nil {
			progress(v.report.Events)
		}
		decide := v.job
		switch {
		case strings.HasPrefix(r.Stream, job.JobStreams):
		case strings.HasPrefix(r.Stream, job.OperationStreams):
			decide = v.operation
		case strings.HasPrefix(r.Stream, job.ChatStreams):
			decide = holding[job.ChatMigrated](v)
		case strings.HasPrefix(r.Stream, job.SeriesStreams):
			decide = holding[job.SeriesJoined](v)
		case strings.HasPrefix(r.Stream, job.ReplyStreams):
			decide = v.reply
		case strings.HasPrefix(r.Stream, job.BotStreams):
			decide = v.bot
		default:
			continue
		}
		if v.seen[r.Stream] {
			continue
		}
		v.seen[r.Stream] = true
		if err := decide(ctx, r.Stream); err != nil {
			unread = append(unread, err)
		}
		if ctx.Err() != nil || len(unread) > maxUnread {
			break
		}
	}
	if len(unread) > 0 {
		return unread[0]
	}
	return ctx.Err()
}

type verifier struct {
	log      eventlog.Log
	agenda   *engine.Agenda
	seen     map[string]bool // streams
	suspects []suspect
	report   Report
}

// suspect is an open job that the agenda did not know.
type suspect struct {
	stream string
	events uint64
}

// findable looks at a suspect again, with the agenda swept before. The log may
// be in use: a job that was accepted or moved meanwhile is none.
func (v *verifier) findable(ctx context.Context, x suspect) error {
	for {
		if err := v.agenda.Sweep(ctx, v.log, nil); err != nil {
			return err
		}
		s, err := engine.Load(ctx, v.log, x.stream)
		switch {
		case err != nil && !engine.IsStopped(err):
			return err
		case v.agenda.Knows(x.stream) || s.Phase.Final():
			return nil
		case s.EventCount == x.events:
			v.find(Unfindable, x.stream, "in phase %s, and no sweep finds it", s.Now())
			return nil
		}
		x.events = s.EventCount
	}
}

func (v *verifier) find(kind Kind, subject, format string, args ...any) {
	v.report.Findings = append(v.report.Findings, Finding{kind, subject, fmt.Sprintf(format, args...)})
}

// decode reads the event of a stream whose next revision is due; ok is false for
// one that cannot be decoded.
func (v *verifier) decode(r eventlog.Recorded, due uint64) (event job.Event, ok bool) {
	if r.Revision != due {
		v.find(Illegal, r.Stream, "revision %d where %d is due", r.Revision, due)
	}
	event, err := job.Decode(r.Type, r.Data)
	if err != nil {
		v.find(Undecodable, r.Stream, "revision %d, position %s: %v", r.Revision, r.Position, err)
	}
	return event, err == nil
}

// holding checks a stream that has events of one kind only: at another one the engine
// stops, and jobs wait.
func holding[E job.Event](v *verifier) func(context.Context, string) error {
	return func(ctx context.Context, stream string) error {
		return v.each(ctx, stream, func(r eventlog.Recorded, event job.Event) error {
			if _, fits := event.(E); !fits {
				v.find(Illegal, stream, "revision %d: %s is no event of this stream", r.Revision, event.Name())
			}
			return nil
		})
	}
}

// each shows the events of a stream. One that cannot be decoded is a finding, and the
// others are shown all the same.
func (v *verifier) each(ctx context.Context, stream string, show func(eventlog.Recorded, job.Event) error) error {
	next := uint64(0)
	for r, err := range v.log.ReadStream(ctx, stream, 0) {
		if err != nil {
			return err
		}
		event, ok := v.decode(r, next)
		next = r.Revision + 1
		if !ok {
			continue
		}
		if err := show(r, event); err != nil {
			return err
		}
	}
	return nil
}

// job decides one stream again.
func (v *verifier) job(ctx context.Context, stream string) error {
	v.report.Jobs++
	var s job.State
	next := uint64(0)
	for r, err := range v.log.ReadStream(ctx, stream, 0) {
		if err != nil {
			return err
		}
		event, ok := v.decode(r, next)
		next = r.Revision + 1
		if !ok {
			return nil
		}
		if err := job.Allowed(s.Now(), event); err != nil {
			v.find(Illegal, stream, "revision %d: %v", r.Revision, err)
		}
		v.event(stream, s, event)
		s = s.Evolve(event, r.Time)
	}
	return v.ended(ctx, stream, s)
}

// event checks what an event says against the job before it.
func (v *verifier) event(stream string, before job.State, event job.Event) {
	switch e := event.(type) {
	case job.UpdateReceived:
		if e.Stream() != stream {
			v.find(Illegal, stream, "holds the update of %s", e.Key)
		}
		u, err := job.ParseUpdate(e.Bot, []byte(e.Update))
		if err != nil || u.Fingerprint != e.Fingerprint || u.ID != e.Key.Update {
			v.find(Illegal, stream, "the update's bytes do not give its id and fingerprint (SHA-256 of the bytes: %s)", digest(e.Update))
		}
	case job.JobClaimed:
		if want := job.OperationID(before.Key.Bot, e.Action, e.BusinessKey); e.OperationID != want {
			v.find(Illegal, before.Key.String(), "operation %s is not the one of its business key, %s", e.OperationID, want)
		}
		if before.OperationID != "" && before.OperationID != e.OperationID {
			v.find(Illegal, before.Key.String(), "its operation changed from %s to %s", before.OperationID, e.OperationID)
		}
		if e.Attempt != before.Attempts+1 {
			v.find(Illegal, before.Key.String(), "attempt %d follows attempt %d", e.Attempt, before.Attempts)
		}
	case job.StepConfirmed:
		if e.CRMID == "" {
			v.find(Illegal, before.Key.String(), "its step %s is confirmed without an id", e.Step)
		}
		if made, again := before.Has(e.Step); again {
			v.find(Illegal, before.Key.String(), "its step %s is confirmed as %s and again as %s", e.Step, made.CRMID, e.CRMID)
		}
	case job.LeadConfirmed:
		if lead, made := before.Has(job.LeadStep); made && lead.CRMID != e.CRMID {
			v.find(Illegal, before.Key.String(), "confirmed with lead %s, and its step made lead %s", e.CRMID, lead.CRMID)
		}
		if e.CRMID == "" {
			v.find(Illegal, before.Key.String(), "confirmed without the lead's id")
		}
		if before.Attempts == 0 {
			v.find(Illegal, before.Key.String(), "lead %s is confirmed, and no claim came before", e.CRMID)
		}
	case job.DeliveryRepeated:
		v.report.Duplicates++
	case job.KeyConflicted:
		v.report.Conflicts++
	case job.ReceiptConflicted:
		v.find(Incident, before.Key.String(), "the CRM answered with lead %s, but recorded is %q", e.CRMID, e.Confirmed)
	}
}

// ended checks the job as it is now.
func (v *verifier) ended(ctx context.Context, stream string, s job.State) error {
	v.report.Phases[s.Now()]++
	if !s.Phase.Final() && !v.agenda.Knows(stream) {
		v.suspects = append(v.suspects, suspect{stream, s.EventCount})
	}
	if s.ConfirmedBy != "" {
		if err := v.confirmedBy(ctx, s); err != nil {
			return err
		}
	}
	if s.OperationID == "" {
		return nil
	}
	other, exists := v.report.operations[s.OperationID]
	if s.CRMID != "" {
		v.report.Leads++
		if exists && other.crmID != "" {
			v.find(Doubled, s.OperationID, "confirmed by %s as lead %s and by %s as lead %s", other.key, other.crmID, s.Key, s.CRMID)
		}
	}
	if !exists || other.crmID == "" {
		v.report.operations[s.OperationID] = operation{s.Key, s.Phase, s.CRMID}
	}
	// A job whose key or operation is wrong is a finding already.
	sound := s.Key.Stream() == stream && s.OperationID == job.OperationID(s.Key.Bot, s.Action, s.BusinessKey)
	if sound && s.BusinessKey != s.Key.String() {
		return v.reserved(ctx, s)
	}
	return nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
