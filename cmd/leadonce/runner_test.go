package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/engine/job"
)

func TestRunnerLeavesNoGoroutine(t *testing.T) {
	b := newDesk(t)
	before := goleak.IgnoreCurrent()
	stream := b.accept(1)
	r := b.run(4, filepath.Join(t.TempDir(), "agenda.json"))
	<-r.Ready()
	eventually(t, func() error {
		if b.state(stream).Phase != job.Done {
			return errors.New("not done")
		}
		return nil
	})
	r.stop()
	<-r.done
	goleak.VerifyNone(t, before)
}

// A panic costs its own job a pause, and the others nothing. What the panic
// quotes does not come out.
func TestRunnerSurvivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		panics := 3
		b.crm.create = func(_ context.Context, text string) error {
			if text == textOf(1) && panics > 0 {
				panics--
				panic("quotes " + text)
			}
			return nil
		}
		bad, good := b.accept(1), b.accept(2)
		r := b.run(2, "")
		synctest.Wait()
		if got := b.state(good).Phase; got != job.Done {
			t.Errorf("the other job is %s, want done", got)
		}
		if got := b.state(bad).Phase; got != job.Claimed {
			t.Errorf("the job that panicked is %s, want claimed until its lease is over", got)
		}
		time.Sleep(time.Hour) // of the bubble's own time
		synctest.Wait()
		if s := b.state(bad); s.Phase != job.Done || s.Attempts != 4 {
			t.Errorf("the job that panicked is %s behind %d attempts, want done behind 4", s.Phase, s.Attempts)
		}
		r.stop()
		<-r.done
		for _, err := range b.seen.troubles() {
			if strings.Contains(err.Error(), "quotes") {
				t.Errorf("trouble quotes the panic: %v", err)
			}
			if !strings.Contains(err.Error(), "panic: a string\n") {
				t.Errorf("trouble %v does not tell of a panic", err)
			}
		}
		if len(b.seen.troubles()) != 3 {
			t.Errorf("%d troubles, want 3", len(b.seen.troubles()))
		}
	})
}

// The log cannot be read for an hour, from the start on and again in the middle.
func TestRunnerRecoversFromFailingSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		first := b.accept(1)
		b.log.failing.Store(true)
		r := b.run(2, "")
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case <-r.Ready():
			t.Error("ready without a sweep")
		default:
		}
		if got := b.state(first).Phase; got != job.Pending {
			t.Errorf("the job is %s without a sweep", got)
		}
		b.log.failing.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		<-r.Ready()
		if got := b.state(first).Phase; got != job.Done {
			t.Errorf("the job is %s behind the outage, want done", got)
		}
		b.log.failing.Store(true)
		second := b.accept(2)
		r.Wake()
		time.Sleep(time.Minute)
		b.log.failing.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := b.state(second).Phase; got != job.Done {
			t.Errorf("the job is %s behind the second outage, want done", got)
		}
		for _, err := range b.seen.troubles() {
			if !errors.Is(err, errDown) {
				t.Errorf("trouble %v, want %v", err, errDown)
			}
		}
	})
}

// A sweep that fails while jobs are in the workers' hands does not lose them.
func TestRunnerTakesJobsBackBehindAFailedSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		b.crm.create = func(context.Context, string) error {
			time.Sleep(5 * time.Second)
			return nil
		}
		for id := range int64(6) {
			b.accept(id + 1)
		}
		r := b.run(2, "")
		time.Sleep(time.Second)
		b.log.failing.Store(true)
		time.Sleep(10 * time.Second)
		b.log.failing.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.Backlog().Open; got != 0 || b.crm.leads.Load() != 6 {
			t.Errorf("%d jobs open and %d leads, want 0 and 6", got, b.crm.leads.Load())
		}
	})
}

// A job in a worker's hands is not handed out again, whatever is recorded about
// it and however long it takes, until the worker gives it back.
func TestRunnerHandsOutEachJobOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		slow, next := b.accept(1), b.accept(2)
		ctx, stop := context.WithCancel(t.Context())
		r := newRunner(b.engine, b.seen, 3, "", func(int) {}) // its workers are this test
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.dispatch(ctx, engine.NewAgenda())
		}()
		if got := []string{<-r.work, <-r.work}; !slices.Equal(got, []string{slow, next}) {
			t.Fatalf("handed out %v, want %v", got, []string{slow, next})
		}
		b.accept(1) // a repeated delivery: an event on the stream
		r.Wake()
		time.Sleep(time.Hour)
		select {
		case again := <-r.work:
			t.Fatalf("%s is handed out twice", again)
		default:
		}
		r.results <- engine.Turn{Stream: slow, Verdict: engine.Verdict{Schedule: job.DueAt, At: time.Now().Add(time.Minute), Revision: 9}}
		given := time.Now()
		if again := <-r.work; again != slow || time.Since(given) < time.Minute {
			t.Errorf("%s is handed out %s after it was given back, want %s after a minute", again, time.Since(given), slow)
		}
		stop()
		<-ended
	})
}

// One job is in one worker's hands only, however often it is looked at, and has
// one lead.
func TestRunnerHandsAJobToOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		b.crm.create = func(context.Context, string) error {
			time.Sleep(300 * time.Millisecond)
			return nil
		}
		r := b.run(8, "")
		for id := range int64(50) {
			b.accept(id + 1)
			r.Wake()
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.crm.most != 1 {
			t.Errorf("%d calls of one operation at the same time, want 1", b.crm.most)
		}
		if got := b.crm.leads.Load(); got != 50 {
			t.Errorf("%d leads, want 50", got)
		}
		for id := range int64(50) {
			if s := b.state(job.Key{Bot: 1, Update: id + 1}.Stream()); s.Attempts != 1 {
				t.Errorf("update %d took %d attempts, want 1", id+1, s.Attempts)
			}
		}
	})
}

// While all workers wait for a slow CRM, the dispatcher does not read the log
// more often than it must to see news.
func TestRunnerIsQuietWhileItsWorkersAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		b.crm.create = func(context.Context, string) error {
			time.Sleep(10 * time.Second)
			return nil
		}
		for id := range int64(5) {
			b.accept(id + 1)
		}
		b.run(2, "")
		time.Sleep(5 * time.Second)
		if got, most := b.log.sweeps.Load(), int64(5*time.Second/sweepEvery)+5; got > most {
			t.Errorf("%d sweeps in 5 s, want at most %d", got, most)
		}
		time.Sleep(time.Minute)
	})
}

// The end waits for the worker that is in a call, and begins no other job.
func TestRunnerWaitsForTheCallInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		b.crm.create = func(ctx context.Context, _ string) error {
			return systemClock{}.Sleep(ctx, 10*time.Second)
		}
		inHand, next := b.accept(1), b.accept(2)
		r := b.run(1, "")
		time.Sleep(time.Second)
		r.stop()
		began := time.Now()
		<-r.done
		if waited := time.Since(began); waited != 9*time.Second {
			t.Errorf("it ended after %s, want the 9 s that the call had left", waited)
		}
		if got := b.state(inHand).Phase; got != job.Done {
			t.Errorf("the job in hand is %s, want done", got)
		}
		if s := b.state(next); s.Phase != job.Pending || s.Attempts != 0 {
			t.Errorf("the next job is %s behind %d attempts, want pending behind none", s.Phase, s.Attempts)
		}
	})
}

// When the grace is over, the call is cut, and what is known of it recorded.
func TestRunnerCutsTheCallWhenTheGraceIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		b.crm.create = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return &crm.Error{Outcome: crm.Unknown, Reason: "cut"}
		}
		stream := b.accept(1)
		r := b.run(1, "")
		time.Sleep(time.Second)
		r.stop()
		time.Sleep(time.Second)
		select {
		case <-r.done:
			t.Fatal("it ended before the call was cut")
		default:
		}
		r.cut()
		<-r.done
		if s := b.state(stream); s.Phase != job.Pending || !s.Ambiguous {
			t.Errorf("the job is %s, ambiguous: %v; want pending and ambiguous", s.Phase, s.Ambiguous)
		}
	})
}

// A job that cannot be decoded stops, and is told once.
func TestRunnerStopsAPoisonedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		poisoned, good := b.accept(1), b.accept(2)
		poison := eventlog.Proposed{ID: randomIDs{}.New(), Type: "Unheard.v9", Time: time.Now()}
		if _, err := b.log.Append(t.Context(), poisoned, eventlog.Any, poison); err != nil {
			t.Fatal(err)
		}
		r := b.run(2, "")
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := r.Backlog(); got.Stopped != 1 || got.Open != 0 {
			t.Errorf("backlog %+v, want one stopped and none open", got)
		}
		if got := b.state(good).Phase; got != job.Done {
			t.Errorf("the other job is %s, want done", got)
		}
		if got := len(b.seen.troubles()); got > 1 {
			t.Errorf("%d troubles, want at most 1", got)
		}
	})
}

// A line about trouble names the job as any other line does.
func TestTroubleNamesItsJob(t *testing.T) {
	b := newDesk(t)
	stream := b.accept(7)
	var out bytes.Buffer
	l := jobLogger{slog.New(slog.NewJSONHandler(&out, nil)), b.log}
	l.Troubled(stream, errDown)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"bot": 1.0, "update_id": 7.0, "chat": 5.0, "user": 6.0, "kind": "message", "phase": "pending", "stream": stream, "error": errDown.Error(),
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	out.Reset()
	l.Troubled("", errDown)
	l.Troubled("update-1-8", errDown)
	if lines := strings.Count(out.String(), "\n"); lines != 2 || strings.Contains(out.String(), `"update_id"`) {
		t.Errorf("lines without a job: %s", out.String())
	}
}

// The log is replaced by another one under a running process, as a restore does. No
// sweep behind the old position would show the new log's jobs: it is not ready, says
// so once, and goes on when the old log is back.
func TestRunnerNoticesAnotherLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		var log replaceable
		old := memory.New()
		log.at.Store(old)
		b.log.Log = &log
		b.accept(1)
		r := b.run(2, "")
		synctest.Wait()
		log.at.Store(memory.New())
		time.Sleep(compareEvery + time.Second) // of the bubble's own time
		synctest.Wait()
		if err := r.Health(); err == nil || !strings.Contains(err.Error(), "job doubt") {
			t.Errorf("health is %v, and the log is another one", err)
		}
		time.Sleep(3 * compareEvery)
		if n := len(b.seen.troubles()); n != 1 {
			t.Errorf("%d troubles were told, want 1: %v", n, b.seen.troubles())
		}
		log.at.Store(old)
		time.Sleep(compareEvery + time.Second)
		synctest.Wait()
		if err := r.Health(); err != nil {
			t.Errorf("health is %v, and the log is back", err)
		}
		stream := b.accept(2)
		time.Sleep(time.Second)
		if got := b.state(stream).Phase; got != job.Done {
			t.Errorf("a job of the log that is back is %s, want done", got)
		}
	})
}
