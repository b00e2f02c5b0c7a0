package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// What Run saves is where the next one starts.
func TestRunnerSavesAndRestoresItsAgenda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		path := filepath.Join(t.TempDir(), "agenda.json")
		down := true
		b.crm.create = func(context.Context, string) error {
			if down {
				return &crm.Error{Outcome: crm.NotApplied, Reason: "down", RetryAfter: time.Minute}
			}
			return nil
		}
		stream := b.accept(1)
		first := b.run(2, path)
		time.Sleep(time.Second)
		first.stop()
		<-first.done
		if data, err := os.ReadFile(path); err != nil || !bytes.Contains(data, []byte(stream)) {
			t.Fatalf("the snapshot is %s, %v", data, err)
		}
		down = false
		b.log.first.Store(nil)
		second := b.run(2, path)
		<-second.Ready()
		if from := *b.log.first.Load(); from == eventlog.Start {
			t.Error("the second run reads the log from its start")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := b.state(stream).Phase; got != job.Done {
			t.Errorf("the job of the snapshot is %s, want done", got)
		}
	})
}

// A run that goes on for long saves in between: a SIGKILL would lose little.
func TestRunnerSavesWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		path := filepath.Join(t.TempDir(), "agenda.json")
		b.accept(1)
		b.run(1, path)
		time.Sleep(snapshotEvery + time.Second)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	})
}

// A folder that cannot be written to is trouble, and no more.
func TestRunnerWorksWithoutItsSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDesk(t)
		stream := b.accept(1)
		r := b.run(1, filepath.Join(t.TempDir(), "no", "such", "agenda.json"))
		time.Sleep(time.Minute)
		r.stop()
		<-r.done
		if got := b.state(stream).Phase; got != job.Done {
			t.Errorf("the job is %s, want done", got)
		}
		if len(b.seen.troubles()) == 0 {
			t.Error("nobody is told that the snapshot cannot be saved")
		}
	})
}
