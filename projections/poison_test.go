package projections_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

// TestOnePoisonEventStopsOneJob: 10,000 others go on (T86).
func TestOnePoisonEventStopsOneJob(t *testing.T) {
	const jobs = 10_001
	w := scribe{log: memory.New(), now: epoch}
	for i := range jobs {
		w.receive(t, message(7, int64(i), "text"))
	}
	poisoned := w.jobs[5_000]
	w.append(t, poisoned.key.Stream(), "LeadGuessed.v1", []byte(`{}`))
	at, err := w.log.Tail(t.Context())
	must(t, err)
	for _, s := range w.jobs {
		if s != poisoned {
			w.finish(t, s)
		}
	}
	w.append(t, poisoned.key.Stream(), "DeliveryRepeated.v1", []byte(`{"reason":"again"}`))
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	must(t, s.CatchUp(t.Context(), w.log, nil))

	counts, err := s.Counts(t.Context())
	must(t, err)
	if counts.Phases[job.Done] != jobs-1 || counts.Phases[job.Pending] != 1 || counts.Stopped != 1 || counts.Repeats != 0 {
		t.Fatalf("counts are %+v, want %d done, 1 pending and stopped, no repeat", counts, jobs-1)
	}
	if oldest, ok := counts.Oldest[job.Pending]; ok {
		t.Errorf("the oldest pending job is of %s, want none: a stopped one waits for no worker", oldest)
	}
	stopped, err := s.Jobs(t.Context(), projections.Filter{Stopped: true})
	must(t, err)
	if len(stopped) != 1 || stopped[0].Key != poisoned.key.String() {
		t.Fatalf("stopped jobs are %+v, want %s alone", stopped, poisoned.key)
	}
	got := stopped[0].Stopped
	if got.Position != at.String() || got.Revision != 1 || got.Type != "LeadGuessed.v1" || !got.UnknownType ||
		!strings.Contains(got.Reason, "LeadGuessed.v1") || got.At.IsZero() {
		t.Errorf("stopped by %+v, want the event at %s with its type as the reason", got, at)
	}
	if stopped[0].Revision != 0 || stopped[0].Phase != job.Pending {
		t.Errorf("the job is at revision %d, %s; want it as before the event", stopped[0].Revision, stopped[0].Phase)
	}
}

// TestReasonsRepeatNoData: what is in a broken event may be what a person wrote.
func TestReasonsRepeatNoData(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"JobClaimed.v1", `{"attempt":4915112345678}`, ""}, // a whole number: nothing is wrong
		{"JobClaimed.v1", `{"attempt":4915112345678.5}`, "attempt in its data is a number"},
		{"JobClaimed.v1", `{"worker":["4915112345678"]}`, "worker in its data is a array"},
		{"JobClaimed.v1", `{"lease_until":"4915112345678"}`, "its data is not of its type"},
		{"JobClaimed.v1", `4915112345678`, "its data is not of its type"},
		{"JobClaimed.v1", `{"worker":"4915112345678`, "its data is no JSON from byte 24 on"},
		{"UpdateReceived.v1", `{"bot":4915112345678}`, "it names an event key of another stream"},
	} {
		t.Run(c.data, func(t *testing.T) {
			w := scribe{log: memory.New(), now: epoch}
			job := w.receive(t, message(7, 1, "text"))
			w.append(t, job.key.Stream(), c.name, []byte(c.data))
			s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
			must(t, s.CatchUp(t.Context(), w.log, nil))
			j, err := s.Job(t.Context(), job.key.String())
			must(t, err)
			if j.Stopped.Reason != c.want {
				t.Errorf("the reason is %q, want %q", j.Stopped.Reason, c.want)
			}
		})
	}
}

// TestAJobOfWhichNothingIsKnown: its first event cannot be decoded.
func TestAJobOfWhichNothingIsKnown(t *testing.T) {
	w := scribe{log: memory.New(), now: epoch}
	w.append(t, "update-7-1", "UpdateReceived.v2", []byte(`{}`))
	w.append(t, "update-7-2", "JobRequeued.v1", []byte(`{}`))
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	must(t, s.CatchUp(t.Context(), w.log, nil))
	for i, want := range []string{"UpdateReceived.v2", "first of its stream"} {
		j, err := s.Job(t.Context(), fmt.Sprintf("telegram/7/%d", i+1))
		must(t, err)
		if j.Phase != job.New || j.Key != "" || !strings.Contains(j.Stopped.Reason, want) {
			t.Errorf("job is %+v, want a new one, stopped because of %q", j, want)
		}
	}
	found, err := s.Jobs(t.Context(), projections.Filter{Text: "update-7-1", Stopped: true})
	must(t, err)
	if len(found) != 1 {
		t.Errorf("searching by the stream's name finds %d jobs, want 1", len(found))
	}
}
