package audit_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"iter"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/audit"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

var (
	began  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	policy = job.Policy{MaxAttempts: 3, RetryFirst: time.Second, RetryMax: time.Minute, Lease: time.Minute, CallTimeout: 20 * time.Second}
)

// story is a log that is written by hand, and what its jobs are by their events.
type story struct {
	t    *testing.T
	log  eventlog.Log
	next uint64 // event id
	jobs map[job.Key]job.State
}

func newStory(t *testing.T) *story {
	return &story{t: t, log: memory.New(), jobs: map[job.Key]job.State{}}
}

func (s *story) append(stream, kind string, data []byte) {
	s.t.Helper()
	s.next++
	var id eventlog.EventID
	binary.BigEndian.PutUint64(id[:], s.next)
	_, err := s.log.Append(s.t.Context(), stream, eventlog.Any,
		eventlog.Proposed{ID: id, Type: kind, Time: began.Add(time.Duration(s.next) * time.Second), Data: data})
	if err != nil {
		s.t.Fatal(err)
	}
}

// tell appends events to the job, whether the machine allows them or not.
func (s *story) tell(key job.Key, events ...job.Event) {
	s.t.Helper()
	for _, e := range events {
		kind, data, err := job.Encode(e)
		if err != nil {
			s.t.Fatal(err)
		}
		s.append(key.Stream(), kind, data)
		s.jobs[key] = s.jobs[key].Evolve(e, began)
	}
}

func key(id int64) job.Key { return job.Key{Bot: 1, Update: id} }

// received is the acceptance of a message; those with a group are one enquiry.
func received(t *testing.T, id int64, group string) job.UpdateReceived {
	t.Helper()
	message := map[string]any{"chat": map[string]any{"id": 5}, "text": "hello"}
	if group != "" {
		message["media_group_id"] = group
	}
	raw, _ := json.Marshal(map[string]any{"update_id": id, "message": message})
	u, err := job.ParseUpdate(1, raw)
	if err != nil {
		t.Fatal(err)
	}
	return job.Receive(u, key(id))
}

// reserve reserves the operation for the holder.
func (s *story) reserve(operation string, holder job.Key) {
	s.t.Helper()
	kind, data, err := job.Encode(job.OperationReserved{Holder: holder})
	if err != nil {
		s.t.Fatal(err)
	}
	s.append(job.OperationStream(operation), kind, data)
}

// begun is a job with a claim, and with a reservation if it has a group.
func (s *story) begun(id int64, group string) job.JobClaimed {
	s.t.Helper()
	s.tell(key(id), received(s.t, id, group))
	claim := s.claim(id)
	if group != "" {
		s.reserve(claim.OperationID, key(id))
	}
	s.tell(key(id), claim)
	return claim
}

func (s *story) claim(id int64) job.JobClaimed {
	now := s.jobs[key(id)]
	return now.ClaimBy("worker", job.DefaultPlan(now.Key, now.AsUpdate()), "", began, policy)
}

// done is a job with a lead.
func (s *story) done(id int64, group, crmID string) (operation string) {
	s.t.Helper()
	claim := s.begun(id, group)
	s.tell(key(id), job.LeadConfirmed{CRMID: crmID, How: job.ByCreate})
	return claim.OperationID
}

func (s *story) verify() audit.Report {
	s.t.Helper()
	return verify(s.t, s.log)
}

func verify(t *testing.T, log eventlog.Log) audit.Report {
	t.Helper()
	r, err := audit.Verify(t.Context(), log, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// censored is a log that does not show some of its events.
type censored struct {
	eventlog.Log
	hides func(eventlog.Recorded) bool
}

func (l censored) ReadAll(ctx context.Context, after eventlog.Position) iter.Seq2[eventlog.Recorded, error] {
	return l.censor(l.Log.ReadAll(ctx, after))
}

func (l censored) ReadStream(ctx context.Context, stream string, from uint64) iter.Seq2[eventlog.Recorded, error] {
	return l.censor(l.Log.ReadStream(ctx, stream, from))
}

func (l censored) censor(all iter.Seq2[eventlog.Recorded, error]) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for r, err := range all {
			if err == nil && l.hides(r) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// want demands exactly these findings, each as kind, subject and a part of the
// detail.
func want(t *testing.T, r audit.Report, findings ...[3]string) {
	t.Helper()
	if len(r.Findings) != len(findings) {
		t.Errorf("%d findings, want %d: %v", len(r.Findings), len(findings), r.Findings)
		return
	}
	for i, f := range r.Findings {
		w := findings[i]
		if string(f.Kind) != w[0] || f.Subject != w[1] || !contains(f.Detail, w[2]) {
			t.Errorf("finding %d is %v, want %v", i, f, w)
		}
	}
}
