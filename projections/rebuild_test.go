package projections_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

// TestReadersKeepTheOldModelsDuringARebuild, and a rebuild that is cut short
// changes nothing.
func TestReadersKeepTheOldModelsDuringARebuild(t *testing.T) {
	const jobs = 150 // of three events
	w := aLog(t, jobs)
	path := filepath.Join(t.TempDir(), "models.db")
	s := openAt(t, path)
	must(t, s.CatchUp(t.Context(), w.log, nil))
	s.InBatchesOf(300)
	execute(t, path, "UPDATE jobs SET worker = 'old'")
	old := func() bool {
		found, err := s.Jobs(t.Context(), projections.Filter{})
		must(t, err)
		return phaseCount(t, s, job.Done) == jobs && len(found) == projections.DefaultLimit && found[0].Worker == "old"
	}
	batches, cut := 0, errors.New("cut")
	s.BeforeCommit(func() error {
		if batches++; !old() {
			t.Errorf("in batch %d the old models are gone", batches)
		}
		if batches == 2 {
			return cut
		}
		return nil
	})
	if err := s.Rebuild(t.Context(), w.log, nil); !errors.Is(err, cut) {
		t.Fatalf("the rebuild gave %v, want %v", err, cut)
	}
	if !old() {
		t.Error("a rebuild that was cut short changed the models")
	}
	must(t, s.Rebuild(t.Context(), w.log, nil)) // batches 3 and 4
	if batches != 4 {
		t.Errorf("%d batches, want 4", batches)
	}
	if old() {
		t.Error("after the rebuild the old models are still there")
	}
	s.BeforeCommit(nil)
	checkDump(t, path, rebuiltDump(t, w))
}

// TestTheSecondOfTwoRebuildsWins; the first says so.
func TestTheSecondOfTwoRebuildsWins(t *testing.T) {
	w := aLog(t, 30)
	path := filepath.Join(t.TempDir(), "models.db")
	first, second := openAt(t, path), openAt(t, path)
	err := first.Rebuild(t.Context(), w.log, func(projections.Progress) {
		must(t, second.Rebuild(t.Context(), w.log, nil))
	})
	if !errors.Is(err, projections.ErrOvertaken) {
		t.Errorf("the first rebuild gave %v, want %v", err, projections.ErrOvertaken)
	}
	checkDump(t, path, rebuiltDump(t, w))
}

// TestARebuildEndsWithItsContext between two batches.
func TestARebuildEndsWithItsContext(t *testing.T) {
	w := aLog(t, 20)
	path := filepath.Join(t.TempDir(), "models.db")
	s := openAt(t, path)
	s.InBatchesOf(10)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Rebuild(ctx, w.log, func(projections.Progress) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the rebuild gave %v, want the context's error", err)
	}
	if n := phaseCount(t, s, job.Done); n != 0 {
		t.Errorf("%d jobs, want the empty models that were there", n)
	}
	must(t, s.CatchUp(t.Context(), w.log, nil))
	checkDump(t, path, rebuiltDump(t, w))
	if n := leftovers(t, path); n == 0 {
		t.Error("a rebuild that was cut short left nothing: this test shows nothing")
	}
	must(t, s.Rebuild(t.Context(), w.log, nil))
	checkDump(t, path, rebuiltDump(t, w))
	if n := leftovers(t, path); n != 0 {
		t.Errorf("%d tables and checkpoints of a rebuild are left", n)
	}
}

// TestAnEmptyLogRebuildsToEmptyModels.
func TestAnEmptyLogRebuildsToEmptyModels(t *testing.T) {
	w := aLog(t, 0)
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	must(t, s.CatchUp(t.Context(), aLog(t, 3).log, nil))
	must(t, s.Rebuild(t.Context(), w.log, nil))
	jobs, err := s.Jobs(t.Context(), projections.Filter{})
	must(t, err)
	at, err := s.Checkpoint(t.Context())
	must(t, err)
	if len(jobs) != 0 || at.Stream != "" {
		t.Errorf("%d jobs, checkpoint %+v; want none", len(jobs), at)
	}
}

// TestARebuildEndsWithWhatCameMeanwhile, also when the feeder that had applied
// it is idle from then on.
func TestARebuildEndsWithWhatCameMeanwhile(t *testing.T) {
	w := aLog(t, 10)
	path := filepath.Join(t.TempDir(), "models.db")
	s, feeder := openAt(t, path), openAt(t, path)
	must(t, s.Rebuild(t.Context(), w.log, func(projections.Progress) {
		w.finish(t, w.receive(t, message(7, 100, "text")))
		must(t, feeder.CatchUp(t.Context(), w.log, nil))
	}))
	if n := phaseCount(t, s, job.Done); n != 11 {
		t.Errorf("%d jobs are done, want 11", n)
	}
	checkDump(t, path, rebuiltDump(t, w))
}

// leftovers counts what belongs to the second set of tables.
func leftovers(t *testing.T, path string) int {
	t.Helper()
	db := sqlOpen(t, path)
	defer db.Close()
	return len(query(t, db, "SELECT name FROM sqlite_schema WHERE name LIKE 'next%' UNION ALL SELECT name FROM checkpoints WHERE name LIKE 'next%'"))
}
