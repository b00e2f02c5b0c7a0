package projections_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/projections"
)

// follower runs Follow and tells of each transaction.
type follower struct {
	store   *projections.Store
	commits chan struct{} // one for each transaction that is about to commit
	ended   chan error
	stop    context.CancelFunc
}

func follow(t *testing.T, s *projections.Store, log eventlog.Log) *follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{store: s, commits: make(chan struct{}, 10_000), ended: make(chan error, 1), stop: stop}
	s.BeforeCommit(func() error { f.commits <- struct{}{}; return nil })
	go func() { f.ended <- s.Follow(ctx, log) }()
	return f
}

// until waits for the transaction behind which done holds.
func (f *follower) until(t *testing.T, done func() bool) {
	t.Helper()
	for {
		f.store.Settled()
		if done() {
			return
		}
		select {
		case <-f.commits:
		case err := <-f.ended:
			t.Fatalf("following ended: %v", err)
		}
	}
}

func (f *follower) end(t *testing.T) {
	t.Helper()
	f.stop()
	if err := <-f.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("following ended with %v, want the context's error", err)
	}
	f.store.BeforeCommit(nil)
}

func phaseCount(t *testing.T, s *projections.Store, phase job.Phase) int64 {
	t.Helper()
	counts, err := s.Counts(t.Context())
	must(t, err)
	return counts.Phases[phase]
}

// TestFollowAppliesWhatIsAppended, old and new, and goes on after it was ended.
func TestFollowAppliesWhatIsAppended(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := aLog(t, 20)
	path := filepath.Join(t.TempDir(), "models.db")
	s := openAt(t, path)
	for round := range 3 {
		f := follow(t, s, w.log)
		for i := range 10 {
			id := int64(1000 + 10*round + i)
			w.finish(t, w.receive(t, message(7, id, "text")))
			f.until(t, func() bool { return phaseCount(t, s, job.Done) == int64(len(w.jobs)) })
		}
		f.end(t)
		w.finish(t, w.receive(t, message(7, int64(2000+round), "text")))
	}
	must(t, s.CatchUp(t.Context(), w.log, nil))
	checkDump(t, path, rebuiltDump(t, w))
	must(t, s.Close())
}

// TestFollowGoesOnAfterARebuildAndAReset by others.
func TestFollowGoesOnAfterARebuildAndAReset(t *testing.T) {
	w := aLog(t, 20)
	path := filepath.Join(t.TempDir(), "models.db")
	s, other := openAt(t, path), openAt(t, path)
	f := follow(t, s, w.log)
	all := func() bool { return phaseCount(t, s, job.Done) == int64(len(w.jobs)) }
	f.until(t, all)
	for round, disturb := range []func() error{
		func() error { return other.Rebuild(t.Context(), w.log, nil) },
		func() error { return other.CatchUp(t.Context(), aLog(t, 1).log, nil) }, // of another log
		func() error { return other.Rebuild(t.Context(), shortLog{w.log, 5}, nil) },
	} {
		must(t, disturb())
		w.finish(t, w.receive(t, message(7, int64(1000+round), "text")))
		f.until(t, all)
	}
	f.end(t)
	checkDump(t, path, rebuiltDump(t, w))
}

// TestTheErrorOfTheLogEndsFollow with its own identity.
func TestTheErrorOfTheLogEndsFollow(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := aLog(t, 20)
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	if err := s.Follow(t.Context(), brokenSubscription{w.log}); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("following gave %v, want %v", err, eventlog.ErrUnavailable)
	}
	if n := phaseCount(t, s, job.Done); n != 20 {
		t.Errorf("%d jobs are done, want 20: what came before the error counts", n)
	}
	must(t, s.Close())
}

type brokenSubscription struct{ eventlog.Log }

func (brokenSubscription) Subscribe(context.Context, eventlog.Position, eventlog.Handler) error {
	return eventlog.ErrUnavailable
}

// TestAFailedTransactionEndsThePump, whatever the log still has to say.
func TestAFailedTransactionEndsThePump(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := aLog(t, 50)
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	s.InBatchesOf(10)
	full := errors.New("disk full")
	batches := 0
	s.BeforeCommit(func() error {
		if batches++; batches == 3 {
			return full
		}
		return nil
	})
	var last projections.Progress
	if err := s.CatchUp(t.Context(), w.log, func(p projections.Progress) { last = p }); !errors.Is(err, full) {
		t.Fatalf("catching up gave %v, want %v", err, full)
	}
	at, err := s.Checkpoint(t.Context())
	must(t, err)
	if at.Position != last.Position || last.Events != 20 {
		t.Errorf("the checkpoint is %s, progress was %+v; want both behind two batches", at.Position, last)
	}
	must(t, s.Close())
}

// TestAFailureInTheMiddleOfAnEventLeavesNothing in memory either: the next try
// begins from the file.
func TestAFailureInTheMiddleOfAnEventLeavesNothing(t *testing.T) {
	w := aLog(t, 1)
	path := filepath.Join(t.TempDir(), "models.db")
	s := openAt(t, path)
	must(t, s.CatchUp(t.Context(), w.log, nil))
	w.tell(t, w.jobs[0], w.jobs[0].state.Repeat()...)
	execute(t, path, "ALTER TABLE duplicates RENAME TO elsewhere")
	if err := s.CatchUp(t.Context(), w.log, nil); err == nil {
		t.Fatal("catching up without a table gave no error")
	}
	execute(t, path, "ALTER TABLE elsewhere RENAME TO duplicates")
	must(t, s.CatchUp(t.Context(), w.log, nil))
	checkDump(t, path, rebuiltDump(t, w))
}
