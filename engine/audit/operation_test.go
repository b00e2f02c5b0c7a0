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

// albumOperation is that of the albums of group "album".
var albumOperation = job.OperationID(1, job.CreateLead, businessKey)

// A reservation that was handed on, and a job that has one and no claim yet.
func TestSoundReservationsHaveNoFinding(t *testing.T) {
	s := newStory(t)
	s.begun(1, "album")
	s.tell(key(1), job.JobDeadLettered{Reason: "refused"})
	s.done(2, "album", "L-1")
	s.tell(key(3), received(t, 3, "album"), job.NoEffectNeeded{ConfirmedBy: key(2).String(), CRMID: "L-1"})
	s.tell(key(4), received(t, 4, "album"), job.NoEffectNeeded{ConfirmedBy: key(2).String()})
	s.tell(key(5), received(t, 5, "other"))
	s.reserve(job.OperationID(1, job.CreateLead, strings.ReplaceAll(businessKey, "album", "other")), key(5))
	want(t, s.verify())
}

// Each row breaks a promise about an operation that jobs share.
func TestBrokenReservationIsFound(t *testing.T) {
	stream := job.OperationStream(albumOperation)
	ended := func(by, lead string) func(s *story) {
		return func(s *story) {
			s.done(1, "album", "L-1")
			s.begun(2, "")
			s.tell(key(3), received(s.t, 3, "album"), job.NoEffectNeeded{ConfirmedBy: by, CRMID: lead})
		}
	}
	for name, c := range map[string]struct {
		story func(s *story)
		want  [][3]string
	}{
		"of no known type": {func(s *story) { s.append(stream, "Unheard.v9", []byte("{}")) },
			[][3]string{{"undecodable", stream, "revision 0, position"}}},
		"no JSON": {func(s *story) { s.append(stream, "OperationReserved.v1", []byte("[]")) },
			[][3]string{{"undecodable", stream, "revision 0, position"}}},
		"another event": {func(s *story) { s.append(stream, "LeadAbsent.v1", []byte("{}")) },
			[][3]string{{"illegal", stream, "revision 0: LeadAbsent is no reservation"}}},
		"for no job": {func(s *story) { s.reserve(albumOperation, key(7)) },
			[][3]string{{"illegal", stream, "revision 0: reserved for telegram/1/7, which does not exist"}}},
		"for no key": {func(s *story) { s.reserve(albumOperation, job.Key{Bot: 1, Update: 1, Variant: "no key"}) },
			[][3]string{{"illegal", stream, "which does not exist"}}},
		"behind what cannot be read": {func(s *story) {
			s.append(stream, "Unheard.v9", []byte("{}"))
			s.reserve(albumOperation, key(7))
		}, [][3]string{{"undecodable", stream, "revision 0"}, {"illegal", stream, "revision 1: reserved for"}}},
		"that is perhaps in what cannot be read": {func(s *story) {
			s.tell(key(1), received(s.t, 1, "album"))
			s.append(stream, "Unheard.v9", []byte("{}"))
			s.tell(key(1), s.claim(1))
		}, [][3]string{{"undecodable", stream, "revision 0"}}},
		"for another job": {func(s *story) {
			s.tell(key(1), received(s.t, 1, "album"))
			s.reserve(albumOperation, key(99))
			s.tell(key(1), s.claim(1))
		}, [][3]string{{"illegal", "telegram/1/1", "shared operation " + albumOperation + " without a reservation"}}},
		"missing": {func(s *story) {
			s.tell(key(1), received(s.t, 1, "album"))
			s.tell(key(1), s.claim(1), job.LeadConfirmed{CRMID: "L-1"})
		}, [][3]string{{"illegal", "telegram/1/1", "shared operation " + albumOperation + " without a reservation"}}},
		"made by no job": {ended("telegram/1/7", "L-1"),
			[][3]string{{"illegal", "telegram/1/3", "said to be of telegram/1/7, which does not exist"}}},
		"made by no key": {ended("ada", "L-1"),
			[][3]string{{"illegal", "telegram/1/3", `said to be of "ada"`}}},
		"made by one that is not done": {ended("telegram/1/2", "L-1"),
			[][3]string{{"illegal", "telegram/1/3", "of telegram/1/2, which is in phase claimed and has none"}}},
		"made by itself": {ended("telegram/1/3", "L-1"),
			[][3]string{{"illegal", "telegram/1/3", "of telegram/1/3, which is in phase done and has none"}}},
		"made as another lead": {ended("telegram/1/1", "L-8"),
			[][3]string{{"illegal", "telegram/1/3", "said to be L-8 of telegram/1/1, which has L-1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.done(99, "", "L-99")
			c.story(s)
			want(t, s.verify(), c.want...)
		})
	}
}

// The first reservation of two is gone.
func TestMissingReservationIsFound(t *testing.T) {
	s := newStory(t)
	s.begun(1, "album")
	s.tell(key(1), job.JobDeadLettered{Reason: "refused"})
	s.done(2, "album", "L-1")
	stream := job.OperationStream(albumOperation)
	r := verify(t, censored{s.log, func(r eventlog.Recorded) bool { return r.Stream == stream && r.Revision == 0 }})
	want(t, r, [3]string{"illegal", "telegram/1/1", "without a reservation"},
		[3]string{"illegal", stream, "revision 1 where 0 is due"})
}

// What a job that cannot be decoded made is not known.
func TestLeadOfAStoppedJobIsNoSecondFinding(t *testing.T) {
	s := newStory(t)
	s.begun(1, "album")
	s.append(key(1).Stream(), "Unheard.v9", nil)
	s.tell(key(2), received(t, 2, "album"), job.NoEffectNeeded{ConfirmedBy: key(1).String(), CRMID: "L-1"})
	s.begun(3, "other")
	want(t, s.verify(), [3]string{"undecodable", "update-1-1", "revision 2"})
}

// While the log is read, jobs share an operation.
func TestSharedOperationInUseHasNoFinding(t *testing.T) {
	for between := range 6 {
		s := newStory(t)
		s.tell(key(1), received(t, 1, "album"))
		s.tell(key(2), received(t, 2, "album"))
		moves := []func(){
			func() { s.reserve(albumOperation, key(1)) },
			func() { s.tell(key(1), s.claim(1)) },
			func() { s.tell(key(1), job.JobDeadLettered{Reason: "refused"}) },
			func() { s.reserve(albumOperation, key(2)) },
			func() { s.tell(key(2), s.claim(2)) },
			func() { s.done(3, "", "L-3") },
			func() { s.tell(key(2), job.LeadConfirmed{CRMID: "L-2"}) },
			func() {
				s.tell(key(4), received(t, 4, "album"), job.NoEffectNeeded{ConfirmedBy: key(2).String(), CRMID: "L-2"})
			},
		}
		want(t, verify(t, &busyLog{Log: s.log, moves: moves, between: between}))
	}
}

// What comes before the place where the log cannot be read is decided.
func TestLogThatIsReadInPart(t *testing.T) {
	s := newStory(t)
	s.done(1, "", "L-1")
	s.tell(key(1), job.LeadConfirmed{CRMID: "L-1"})
	s.done(2, "", "L-2")
	r, err := audit.Verify(t.Context(), &tornLog{s.log, 4}, nil)
	if err == nil {
		t.Error("the log is torn, and the audit has no error")
	}
	want(t, r, [3]string{"illegal", "update-1-1", "revision 3: LeadConfirmed is not allowed"})
}

// A stream that cannot be read does not hold up the others, unless the log is down.
func TestStreamThatCannotBeRead(t *testing.T) {
	s := newStory(t)
	for id := range int64(30) {
		s.done(id, "", fmt.Sprintf("L-%d", id))
	}
	one := &tornStreams{s.log, func(stream string) bool { return stream == key(3).Stream() }, 0}
	if r, err := audit.Verify(t.Context(), one, nil); !errors.Is(err, errDown) || r.Leads != 29 || one.failed != 1 {
		t.Errorf("one stream: error %v, %d leads, %d failures", err, r.Leads, one.failed)
	}
	all := &tornStreams{s.log, func(string) bool { return true }, 0}
	if _, err := audit.Verify(t.Context(), all, nil); !errors.Is(err, errDown) || all.failed > 15 {
		t.Errorf("all streams: error %v, %d failures", err, all.failed)
	}
}

type tornStreams struct {
	eventlog.Log
	torn   func(stream string) bool
	failed int
}

func (l *tornStreams) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	if l.torn(stream) {
		l.failed++
		return fails
	}
	return l.Log.ReadStream(ctx, stream, from)
}
