package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

func snapshotOf(t testing.TB, a *engine.Agenda) []byte {
	t.Helper()
	data, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func restored(t testing.TB, w *world, data []byte) *engine.Agenda {
	t.Helper()
	a, err := engine.RestoreAgenda(t.Context(), w.store, data)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestARestoredAgendaIsTheSweptOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, states, a := newWorld(crm.None), map[string]job.State{}, engine.NewAgenda()
		someHistory(rt, t, w, states, rapid.IntRange(0, 15).Draw(rt, "before"))
		sweep(t, w, a)
		if rapid.Bool().Draw(rt, "some in hand") {
			a.Next(noon.AddDate(1, 0, 0))
		}
		data := snapshotOf(t, a)
		b := restored(t, w, data)
		if stopped := a.Backlog().Stopped; stopped == 0 && !bytes.Equal(snapshotOf(t, b), data) {
			rt.Fatalf("the snapshot of the restored agenda is another one")
		}
		someHistory(rt, t, w, states, rapid.IntRange(0, 15).Draw(rt, "after"))
		sweep(t, w, b)
		for { // the poisoned ones are tried once each
			stream, ok := b.Next(time.Time{})
			if !ok {
				break
			}
			if _, err := engine.Load(t.Context(), w.store, stream); !engine.IsStopped(err) {
				rt.Fatalf("%s is due at once, and not because it was stopped: %v", stream, err)
			}
			b.Stop(stream)
		}
		if stopped := stoppedStreams(w); b.Backlog().Stopped < stopped { // those that went on after the poison
			for i := range 5 {
				stream := job.Key{Bot: bot, Update: int64(i)}.Stream()
				if slices.Contains(w.history(stream), "FromTheFuture") {
					b.Stop(stream)
				}
			}
		}
		wantAgenda(rt, b, states, stoppedStreams(w))
	})
}

func TestASnapshotOfSomethingElse(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	w.accept(t, message(1, "hello"))
	sweep(t, w, a)
	data := snapshotOf(t, a)
	restored(t, w, data)

	another := newWorld(crm.None)
	another.ids.n = 1000
	another.accept(t, message(1, "hello"))
	for name, c := range map[string]struct {
		w    *world
		data []byte
	}{
		"another log":         {another, data},
		"a log that is empty": {newWorld(crm.None), data},
		"another version":     {w, bytes.Replace(data, []byte(`"version":2`), []byte(`"version":1`), 1)},
		"cut":                 {w, data[:len(data)/2]},
		"empty":               {w, nil},
		"without a position":  {w, []byte(`{"version":2}`)},
		"of wrong types":      {w, bytes.Replace(data, []byte(`"revision":0,"due"`), []byte(`"revision":"0","due"`), 1)},
		"moved":               {w, bytes.Replace(data, []byte(`"position":"1/1"`), []byte(`"position":"2/2"`), 1)},
	} {
		if a, err := engine.RestoreAgenda(t.Context(), c.w.store, c.data); err == nil {
			t.Errorf("%s: restored as %+v", name, a.Checkpoint())
		}
	}
}

// TestASnapshotInWords: releases read each other's.
func TestASnapshotInWords(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	due, waits, given, poisoned := w.accept(t, message(1, "a")), w.accept(t, message(2, "b")), w.accept(t, message(3, "c")), w.accept(t, message(4, "d"))
	w.append(t, due.Stream(), job.DeliveryRepeated{}, job.JobClaimed{LeaseUntil: noon.Add(time.Minute)})
	w.append(t, waits.Stream(), job.JobClaimed{}, job.ReconciliationNeeded{Human: true})
	w.poison(t, poisoned.Stream())
	w.append(t, given.Stream(), job.JobClaimed{})
	sweep(t, w, a)
	handedOut(a)
	a.Done(given.Stream(), engine.Verdict{Schedule: job.Waiting, Revision: 1})
	got := string(snapshotOf(t, a))
	want := `{"version":2,"position":"10/10","stream":"update-7-3","revision":1,"event_id":"ID","jobs":[` +
		`{"stream":"update-7-1","revision":2,"due":"2026-06-11T12:01:00Z"},{"stream":"update-7-2","revision":2,"waiting":true},` +
		`{"stream":"update-7-3","revision":1,"waiting":true}],"stopped":["update-7-4"]}`
	id, _ := json.Marshal(a.Checkpoint().EventID)
	if want = strings.Replace(want, `"ID"`, string(id), 1); got != want {
		t.Errorf("the snapshot is\n%s, want\n%s", got, want)
	}
	if b := restored(t, w, []byte(want)); b.Checkpoint() != a.Checkpoint() || b.Backlog() != (engine.Backlog{Open: 2, Human: 2}) {
		t.Errorf("restored as %+v, read up to %+v", b.Backlog(), b.Checkpoint())
	}
}

func TestASnapshotOfAnAgendaThatHasReadNothing(t *testing.T) {
	w := newWorld(crm.None)
	data := snapshotOf(t, engine.NewAgenda())
	w.accept(t, message(1, "hello"))
	a := restored(t, w, data)
	sweep(t, w, a)
	if a.Backlog().Open != 1 {
		t.Fatalf("backlog %+v", a.Backlog())
	}
}

func TestASnapshotWhoseLogCannotBeRead(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	w.accept(t, message(1, "hello"))
	sweep(t, w, a)
	w.fail("read", down)
	if _, err := engine.RestoreAgenda(t.Context(), &faultyLog{w.store, w}, snapshotOf(t, a)); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Fatalf("error %v, want the log's: it may be this very log", err)
	}
}

// TestAllStoppedJobsAreTriedAfterARestart, also one of which nothing can be read.
func TestAllStoppedJobsAreTriedAfterARestart(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	var streams []string
	for i := range 3 {
		streams = append(streams, job.Key{Bot: bot, Update: int64(i)}.Stream())
		w.poison(t, streams[i])
	}
	sweep(t, w, a)
	b := restored(t, w, snapshotOf(t, a))
	if got := handedOut(b); !slices.Equal(got, streams) {
		t.Fatalf("handed out %v, want %v", got, streams)
	}
	for _, stream := range streams {
		b.Done(stream, engine.Verdict{Schedule: job.Closed, Revision: 0})
	}
	if b.Backlog() != (engine.Backlog{}) {
		t.Fatalf("backlog %+v", b.Backlog())
	}
}

func TestAPostponedJobIsForgottenByTheSnapshot(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	stream := w.accept(t, message(1, "hello")).Stream()
	sweep(t, w, a)
	handedOut(a)
	a.Done(stream, engine.Verdict{Schedule: job.DueAt, At: noon.Add(time.Hour)})
	b := restored(t, w, snapshotOf(t, a))
	if due, ok := b.NextDue(); !ok || !due.Equal(noon.Add(time.Hour)) {
		t.Fatalf("due at %s", due)
	}
}

// TestAStoppedJobIsTriedOnceAfterARestart: this release may understand it, or
// not; then it is not tried again and again.
func TestAStoppedJobIsTriedOnceAfterARestart(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	w.poison(t, key.Stream())
	sweep(t, w, a)
	if b := a.Backlog(); b != (engine.Backlog{Stopped: 1}) {
		t.Fatalf("backlog %+v", b)
	}
	b := restored(t, w, snapshotOf(t, a))
	tries := 0
	for {
		stream, ok := b.Next(w.time.Now())
		if !ok {
			break
		}
		if tries++; tries > 1 {
			t.Fatal("tried again without a pause")
		}
		_, err := e.Advance(t.Context(), stream)
		if !engine.IsStopped(err) || !strings.Contains(err.Error(), "revision 1") || !strings.Contains(err.Error(), "2/2") {
			t.Fatalf("error %v, want stopped, with revision and position", err)
		}
		b.Stop(stream)
	}
	if tries != 1 || b.Backlog() != (engine.Backlog{Stopped: 1}) {
		t.Fatalf("%d tries, backlog %+v", tries, b.Backlog())
	}
}

func TestAStoppedJobThatIsUnderstoodAfterTheRestart(t *testing.T) {
	for name, s := range map[string]struct {
		verdict engine.Verdict
		want    engine.Backlog
	}{
		"closed":  {engine.Verdict{Schedule: job.Closed, Revision: 1}, engine.Backlog{}},
		"waiting": {engine.Verdict{Schedule: job.Waiting, Revision: 1}, engine.Backlog{Human: 1}},
		"due":     {engine.Verdict{Schedule: job.DueAt, At: noon.Add(time.Hour), Revision: 1}, engine.Backlog{Open: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := newWorld(crm.None), engine.NewAgenda()
			stream := w.accept(t, message(1, "hello")).Stream()
			w.poison(t, stream)
			sweep(t, w, a)
			b := restored(t, w, snapshotOf(t, a))
			if got := handedOut(b); !slices.Equal(got, []string{stream}) {
				t.Fatalf("handed out %v", got)
			}
			b.Done(stream, s.verdict)
			if b.Backlog() != s.want {
				t.Fatalf("backlog %+v, want %+v", b.Backlog(), s.want)
			}
		})
	}
}
