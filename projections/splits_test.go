package projections_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

// TestAnySplitGivesTheSame: however a log reaches the file (in which pieces,
// through which of two stores, over restarts, aborted transactions, repeated
// events and rebuilds), the rows are those of one rebuild, and those of a plain
// fold of each stream.
func TestAnySplitGivesTheSame(t *testing.T) {
	dir, run := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		w := randomHistory(rt)
		want := filepath.Join(dir, fmt.Sprintf("%d-rebuilt.db", run))
		got := filepath.Join(dir, fmt.Sprintf("%d-split.db", run))
		rebuilt := openFor(rt, want)
		must(rt, rebuilt.Rebuild(t.Context(), w.log, nil))
		checkAgainstFold(rt, w, rebuilt, want)
		must(rt, rebuilt.Close())

		f := feeder{rt: rt, t: t, w: w, path: got, events: readLog(t, w.log)}
		f.stores = []*projections.Store{openFor(rt, got), openFor(rt, got)}
		for range rapid.IntRange(1, 7).Draw(rt, "feeds") {
			f.feed()
		}
		must(rt, f.stores[0].CatchUp(t.Context(), w.log, nil))
		for _, s := range f.stores {
			must(rt, s.Close())
		}
		if a, b := dump(rt, want), dump(rt, got); a != b {
			rt.Fatalf("rebuilt and fed in pieces differ, %s", firstDifference(a, b))
		}
	})
}

// feeder feeds one file in pieces.
type feeder struct {
	rt     *rapid.T
	t      *testing.T
	w      *scribe
	path   string
	events []eventlog.Recorded
	stores []*projections.Store
	seen   int // events that the log has shown
}

func (f *feeder) feed() {
	rt, ctx := f.rt, f.t.Context()
	i := rapid.IntRange(0, len(f.stores)-1).Draw(rt, "store")
	s := f.stores[i]
	s.InBatchesOf(rapid.SampledFrom([]int{3, 1000}).Draw(rt, "batches of"))
	f.seen = rapid.IntRange(f.seen, len(f.events)).Draw(rt, "up to")
	log := shortLog{f.w.log, f.seen}
	switch rapid.IntRange(0, 5).Draw(rt, "feed") {
	case 0: // a restart
		must(rt, s.Close())
		f.stores[i] = openFor(rt, f.path)
	case 1: // a crash before one of the commits
		left, crash := rapid.IntRange(0, 3).Draw(rt, "commits before the crash"), errors.New("crash")
		s.BeforeCommit(func() error {
			if left--; left < 0 {
				return crash
			}
			return nil
		})
		err := s.CatchUp(ctx, log, nil)
		s.BeforeCommit(nil)
		if err != nil && !errors.Is(err, crash) {
			rt.Fatalf("%v", err)
		}
	case 2: // events again, from anywhere on
		from := rapid.IntRange(0, f.seen).Draw(rt, "again from")
		_, err := s.Offer(ctx, f.before(from), f.events[from:f.seen]...)
		if err != nil && !errors.Is(err, projections.ErrMoved) {
			rt.Fatalf("%v", err)
		}
	case 3:
		must(rt, s.Rebuild(ctx, log, nil))
	default:
		must(rt, s.CatchUp(ctx, log, nil))
	}
}

// before is the position in front of the event with that index.
func (f *feeder) before(i int) eventlog.Position {
	if i == 0 {
		return eventlog.Start
	}
	return f.events[i-1].Position
}

// checkAgainstFold compares with what the streams themselves say.
func checkAgainstFold(t *rapid.T, w *scribe, s *projections.Store, path string) {
	db := sqlOpen(t, path)
	defer db.Close()
	states := map[string]string{}
	for _, row := range query(t, db, "SELECT stream, state FROM jobs") {
		states[row[0].(string)] = row[1].(string)
	}
	phases := map[job.Phase]int64{}
	for stream, data := range states {
		want, stopped := foldStream(t, w.log, stream)
		got, err := projections.DecodeState(data)
		must(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: state\n  %+v, want\n  %+v", stream, got, want)
		}
		j, err := s.Job(t.Context(), stream)
		must(t, err)
		if (j.Stopped != projections.Stop{}) != stopped {
			t.Fatalf("%s: stopped is %+v, want %t", stream, j.Stopped, stopped)
		}
		checkJob(t, j, want)
		phases[want.Now()]++
	}
	counts, err := s.Counts(t.Context())
	must(t, err)
	for phase, n := range counts.Phases {
		if n != phases[phase] {
			t.Fatalf("%d jobs are counted as %s, want %d", n, phase, phases[phase])
		}
	}
}

// foldStream is the plain fold, without the update's text, up to an event that
// cannot be decoded.
func foldStream(t *rapid.T, log eventlog.Log, stream string) (s job.State, stopped bool) {
	for r, err := range log.ReadStream(t.Context(), stream, 0) {
		must(t, err)
		e, err := job.Decode(r.Type, r.Data)
		received, isReceived := e.(job.UpdateReceived)
		if err != nil || isReceived && received.Key.Stream() != stream || !isReceived && s.EventCount == 0 {
			return s, true
		}
		s = s.Evolve(e, r.Time)
		s.Update, s.Fields = "", ""
	}
	return s, false
}

func checkJob(t *rapid.T, j projections.Job, s job.State) {
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"phase", j.Phase, s.Now()},
		{"attempts", j.Attempts, s.Attempts},
		{"spent", j.Spent, s.Spent},
		{"not_before", j.NotBefore, s.NotBefore},
		{"human", j.Human, s.Human},
		{"ambiguous", j.Ambiguous, s.Ambiguous},
		{"business_key", j.BusinessKey, s.BusinessKey},
		{"operation_id", j.OperationID, s.OperationID},
		{"worker", j.Worker, s.Claim.Worker},
		{"lease_until", j.LeaseUntil, s.Claim.LeaseUntil},
		{"crm_id", j.CRMID, s.CRMID},
		{"how", j.How, s.How},
		{"shared_crm_id", j.SharedCRMID, s.SharedCRMID},
		{"confirmed_by", j.ConfirmedBy, s.ConfirmedBy},
		{"last_error", j.LastError, s.LastError},
		{"repeats", j.Repeats, s.Repeats},
		{"incidents", j.Incidents, len(s.Variants) + len(s.OtherCRMIDs)},
		{"requeues", j.Requeues, s.Requeues},
		{"received_at", j.ReceivedAt, s.ReceivedAt},
		{"updated_at", j.UpdatedAt, s.LastEventAt},
		{"finished", !j.FinishedAt.IsZero(), s.Phase.Final()},
		{"claimed before", !j.FirstClaimedAt.IsZero(), s.Attempts > 0},
	} {
		if c.got != c.want {
			t.Fatalf("%s: %s is %v, want %v", j.Stream, c.what, c.got, c.want)
		}
	}
	if s.EventCount > 0 && (j.Key != s.Key.String() || j.Revision != s.Revision()) {
		t.Fatalf("%s: key %s revision %d, want %s %d", j.Stream, j.Key, j.Revision, s.Key, s.Revision())
	}
}

func openFor(t *rapid.T, path string) *projections.Store {
	s, err := projections.Open(t.Context(), path, projections.Options{})
	must(t, err)
	return s
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}
