package projections_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

var epoch = time.Date(2026, 7, 1, 12, 0, 0, 999999999, time.UTC)

var policy = job.Policy{
	MaxAttempts: 3, RetryFirst: time.Second, RetryMax: time.Minute,
	Lease: 40 * time.Second, CallTimeout: 20 * time.Second, ClockSkew: time.Second,
}

// failer is what tests, benchmarks and rapid share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// scribe writes histories of jobs to a log.
type scribe struct {
	log    eventlog.Log
	now    time.Time
	events int
	jobs   []*subject
	strict bool // check that what it writes is legal
}

// subject is one job as its scribe knows it.
type subject struct {
	update job.Update
	key    job.Key
	state  job.State
	fences []uint64 // of all its claims
}

func (w *scribe) append(t failer, stream, wireName string, data []byte) {
	t.Helper()
	w.events++
	w.now = w.now.Add(1234567 * time.Nanosecond)
	var id eventlog.EventID
	binary.BigEndian.PutUint64(id[8:], uint64(w.events))
	_, err := w.log.Append(context.Background(), stream, eventlog.Any,
		eventlog.Proposed{ID: id, Type: wireName, Time: w.now, Data: data})
	if err != nil {
		t.Fatalf("append %s to %s: %v", wireName, stream, err)
	}
}

// tell records events of the job.
func (w *scribe) tell(t failer, s *subject, events ...job.Event) {
	t.Helper()
	if w.strict {
		if err := job.Allowed(s.state.Now(), events...); err != nil {
			t.Fatalf("illegal history of %s: %v", s.key, err)
		}
	}
	for _, e := range events {
		name, data, err := job.Encode(e)
		if err != nil {
			t.Fatalf("%v", err)
		}
		w.append(t, s.key.Stream(), name, data)
		if _, ok := e.(job.JobClaimed); ok {
			s.fences = append(s.fences, s.state.EventCount)
		}
		s.state = s.state.Evolve(e, w.now)
	}
}

func (w *scribe) receive(t failer, u job.Update) *subject {
	t.Helper()
	return w.receiveAs(t, u, u.Key())
}

func (w *scribe) receiveAs(t failer, u job.Update, key job.Key) *subject {
	t.Helper()
	s := &subject{update: u, key: key}
	w.tell(t, s, job.Receive(u, key))
	w.jobs = append(w.jobs, s)
	return s
}

func (w *scribe) claim(t failer, s *subject) {
	t.Helper()
	plan := job.DefaultPlan(s.key, s.update)
	w.tell(t, s, s.state.ClaimBy("worker-1", plan, "", w.now, policy))
}

// finish takes the job from its acceptance to its lead.
func (w *scribe) finish(t failer, s *subject) {
	t.Helper()
	w.claim(t, s)
	w.tell(t, s, job.LeadConfirmed{CRMID: "lead-" + strconv.Itoa(w.events), How: job.ByCreate})
}

// message is an update of bot whose chat and user follow from its id.
func message(bot, id int64, text string) job.Update {
	return messageIn(bot, id, -1_000_000_000_000-id%5, 5_000_000_000+id%7, text)
}

func messageIn(bot, id, chat, user int64, text string) job.Update {
	raw := fmt.Sprintf(`{"update_id":%d,"message":{"message_id":1,"date":1780000000,"chat":{"id":%d,"type":"private"},"from":{"id":%d,"first_name":"Ada"},"text":%q}}`,
		id, chat, user, text)
	u, err := job.ParseUpdate(bot, []byte(raw))
	if err != nil {
		panic(err)
	}
	return u
}

func openAt(t testing.TB, path string) *projections.Store {
	t.Helper()
	return openWith(t, path, projections.Options{})
}

func openWith(t testing.TB, path string, opts projections.Options) *projections.Store {
	t.Helper()
	s, err := projections.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
