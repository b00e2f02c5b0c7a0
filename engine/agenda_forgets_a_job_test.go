package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

func sweep(t testing.TB, w *world, a *engine.Agenda) {
	t.Helper()
	if err := a.Sweep(context.Background(), w.store, nil); err != nil {
		t.Fatal(err)
	}
}

// handedOut takes everything that the agenda has to hand out, in order.
func handedOut(a *engine.Agenda) []string {
	var all []string
	for {
		stream, ok := a.Next(noon.AddDate(100, 0, 0))
		if !ok {
			return all
		}
		all = append(all, stream)
	}
}

// someEvent draws an event that the table allows in the state.
func someEvent(rt *rapid.T, s job.State, at time.Time) job.Event {
	soon := at.Add(time.Duration(rapid.IntRange(0, 90).Draw(rt, "seconds")) * time.Second)
	all := []job.Event{
		job.UpdateReceived{Key: s.Key, Kind: "poll", Update: "{}"}, job.DeliveryRepeated{}, job.KeyConflicted{Fingerprint: "f"},
		job.JobClaimed{LeaseUntil: soon, Deadline: at}, job.ClaimRenewed{LeaseUntil: soon, Deadline: at},
		job.ClaimReleased{NotBefore: soon}, job.AttemptNotApplied{NotBefore: soon}, job.OutcomeUnknown{NotBefore: soon},
		job.ReconciliationNeeded{NotBefore: soon}, job.ReconciliationNeeded{Human: true}, job.LeadConfirmed{CRMID: "L"},
		job.ReceiptConflicted{CRMID: "M"}, job.NoEffectNeeded{}, job.LeadAbsent{How: job.ByLookup},
		job.JobDeadLettered{}, job.JobRequeued{},
	}
	m := job.NewMachine(s.Now())
	return rapid.SampledFrom(slices.DeleteFunc(all, func(e job.Event) bool { return !m.Can(e) })).Draw(rt, "event")
}

// someHistory records random, legal events on a few streams, a poisoned one
// among them now and then, and other streams that are no jobs.
func someHistory(rt *rapid.T, t testing.TB, w *world, states map[string]job.State, events int) {
	poisoned := map[string]bool{}
	for range events {
		w.time.advance(time.Second)
		key := job.Key{Bot: bot, Update: int64(rapid.IntRange(1, 4).Draw(rt, "job"))}
		s := states[key.Stream()]
		switch {
		case rapid.IntRange(0, 40).Draw(rt, "poison") == 40:
			w.poison(t, key.Stream())
			poisoned[key.Stream()] = true
			delete(states, key.Stream())
		case poisoned[key.Stream()] || slices.Contains(w.history(key.Stream()), "FromTheFuture"):
			w.append(t, key.Stream(), job.JobRequeued{})
		default:
			s.Key = key
			e := someEvent(rt, s, w.time.Now())
			w.append(t, key.Stream(), e)
			states[key.Stream()] = s.Evolve(e, w.time.Now())
		}
		w.append(t, job.OperationStream("x"), job.OperationReserved{})
		w.poison(t, "no-job")
	}
}

// wantAgenda compares the agenda with the full fold of each stream.
func wantAgenda(rt *rapid.T, a *engine.Agenda, states map[string]job.State, stopped int) {
	want := engine.Backlog{Stopped: stopped}
	open := map[string]time.Time{}
	for stream, s := range states {
		switch {
		case s.Phase.Final():
		case s.Human:
			want.Human++
		default:
			want.Open++
			open[stream] = s.NotBefore
		}
	}
	if got := a.Backlog(); got != want {
		rt.Fatalf("backlog %+v, the fold says %+v", got, want)
	}
	order := []time.Time{}
	for len(open) > 0 {
		due, ok := a.NextDue()
		if _, early := a.Next(due.Add(-1)); !ok || early {
			rt.Fatalf("next due at %s (%t), but handed out before: %t", due, ok, early)
		}
		stream, ok := a.Next(due)
		if notBefore, known := open[stream]; !ok || !known || !notBefore.Equal(due) {
			rt.Fatalf("%q is handed out at %s; the fold says %s", stream, due, notBefore)
		}
		delete(open, stream)
		order = append(order, due)
	}
	if stream, ok := a.Next(noon.AddDate(100, 0, 0)); ok {
		rt.Fatalf("%s is handed out, but not open", stream)
	}
	if !slices.IsSortedFunc(order, time.Time.Compare) {
		rt.Fatalf("handed out in the order %v", order)
	}
}

func TestTheAgendaIsTheFoldOfTheLog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, states, a := newWorld(crm.None), map[string]job.State{}, engine.NewAgenda()
		for range rapid.IntRange(1, 3).Draw(rt, "sweeps") {
			someHistory(rt, t, w, states, rapid.IntRange(0, 40).Draw(rt, "events"))
			sweep(t, w, a)
		}
		wantAgenda(rt, a, states, stoppedStreams(w))
	})
}

func stoppedStreams(w *world) (n int) {
	for i := range 5 {
		if slices.Contains(w.history(job.Key{Bot: bot, Update: int64(i)}.Stream()), "FromTheFuture") {
			n++
		}
	}
	return n
}

func TestAJobIsHandedOutTwice(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	key := w.accept(t, message(1, "hello"))
	stream := key.Stream()
	sweep(t, w, a)
	if got := handedOut(a); !slices.Equal(got, []string{stream}) {
		t.Fatalf("handed out %v", got)
	}
	soon := w.time.Now().Add(time.Second)
	for _, events := range [][]job.Event{
		{job.JobClaimed{LeaseUntil: soon}},
		{job.ReconciliationNeeded{Human: true}},
		{job.JobDeadLettered{}}, // by an operator
		{job.JobRequeued{}},
		{job.NoEffectNeeded{}},
	} {
		w.append(t, stream, events...)
		sweep(t, w, a)
		if got := handedOut(a); len(got) != 0 {
			t.Fatalf("handed out again after %T, before it was given back", events[0])
		}
		s := w.state(t, key)
		want := engine.Backlog{}
		switch {
		case s.Human:
			want.Human = 1
		case !s.Phase.Final():
			want.Open = 1
		}
		if b := a.Backlog(); b != want {
			t.Fatalf("backlog %+v after %T, want %+v", b, events[0], want)
		}
	}
	a.Done(stream, engine.Verdict{})
	if got := handedOut(a); len(got) != 0 {
		t.Fatalf("handed out after its end")
	}
}

func TestAClosedJobThatIsOpenedAgainWhileInHand(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	stream := w.accept(t, message(1, "hello")).Stream()
	sweep(t, w, a)
	handedOut(a)
	w.append(t, stream, job.JobDeadLettered{})
	sweep(t, w, a)
	w.append(t, stream, job.JobRequeued{})
	sweep(t, w, a)
	if got := handedOut(a); len(got) != 0 {
		t.Fatal("handed out to a second worker")
	}
	a.Done(stream, engine.Verdict{Schedule: job.Closed, Revision: 1})
	if got := handedOut(a); !slices.Equal(got, []string{stream}) {
		t.Fatalf("handed out %v: the verdict is older than the requeue", got)
	}
}

func TestAVerdictAboutThePast(t *testing.T) {
	late := noon.Add(time.Hour)
	for name, c := range map[string]struct {
		verdict engine.Verdict
		events  []job.Event // recorded after the verdict's revision
		due     time.Time   // zero: nothing is handed out
	}{
		"later":                                {engine.Verdict{Schedule: job.DueAt, At: late}, nil, late},
		"earlier than the event says":          {engine.Verdict{Schedule: job.DueAt, At: noon.Add(-1)}, nil, noon},
		"nothing new":                          {engine.Verdict{}, nil, noon},
		"closed":                               {engine.Verdict{Schedule: job.Closed}, nil, time.Time{}},
		"waiting":                              {engine.Verdict{Schedule: job.Waiting}, nil, time.Time{}},
		"later, but an operator acted":         {engine.Verdict{Schedule: job.DueAt, At: late}, []job.Event{job.JobDeadLettered{}, job.JobRequeued{}}, noon},
		"closed, but an operator acted":        {engine.Verdict{Schedule: job.Closed}, []job.Event{job.JobDeadLettered{}, job.JobRequeued{}}, noon},
		"waiting, but an operator acted":       {engine.Verdict{Schedule: job.Waiting}, []job.Event{job.JobDeadLettered{}, job.JobRequeued{}}, noon},
		"waiting, and a delivery came":         {engine.Verdict{Schedule: job.Waiting}, []job.Event{job.DeliveryRepeated{}}, time.Time{}},
		"later, and a delivery came":           {engine.Verdict{Schedule: job.DueAt, At: late}, []job.Event{job.DeliveryRepeated{}}, late},
		"later, but it ended in the meanwhile": {engine.Verdict{Schedule: job.DueAt, At: late}, []job.Event{job.NoEffectNeeded{}}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := newWorld(crm.None), engine.NewAgenda()
			stream := w.accept(t, message(1, "hello")).Stream()
			sweep(t, w, a)
			handedOut(a)
			w.append(t, stream, c.events...)
			sweep(t, w, a)
			a.Done(stream, c.verdict)
			due, ok := a.NextDue()
			if ok != !c.due.IsZero() || !due.Equal(c.due) {
				t.Fatalf("due at %s (%t), want %s", due, ok, c.due)
			}
			if b := a.Backlog(); ok && b.Open != 1 || c.verdict.Schedule == job.Waiting && !ok && b.Human != 1 {
				t.Fatalf("backlog %+v", b)
			}
		})
	}
}

func TestTheOrderIsAnotherOneInEveryRun(t *testing.T) {
	w := newWorld(crm.None)
	for i := range 30 {
		w.accept(t, message(i, "hello"))
	}
	a := engine.NewAgenda()
	sweep(t, w, a)
	if again := restored(t, w, snapshotOf(t, a)); string(snapshotOf(t, again)) != string(snapshotOf(t, a)) {
		t.Fatal("the snapshot lists the jobs in another order")
	}
	for _, a := range []*engine.Agenda{restored(t, w, snapshotOf(t, a)), a} {
		if got := handedOut(a); len(got) != 30 || !slices.IsSorted(got) {
			t.Fatalf("jobs due at one time are handed out as %v", got)
		}
	}
}

func TestASweepThatFailsInTheMiddleGoesOnFromThere(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	for i := range 10 {
		w.accept(t, message(i, "hello"))
	}
	broken := &breakingLog{w.store, 4}
	if err := a.Sweep(t.Context(), broken, nil); err == nil {
		t.Fatal("no error")
	}
	if b := a.Backlog(); b.Open != 4 {
		t.Fatalf("backlog %+v after four events", b)
	}
	sweep(t, w, a)
	if got := handedOut(a); len(got) != 10 {
		t.Fatalf("%d jobs", len(got))
	}
}

func TestALongSweepIsSilent(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	for i := range 19_999 {
		w.append(t, fmt.Sprintf("other-%d", i), job.DeliveryRepeated{})
	}
	var reports []int
	if err := a.Sweep(t.Context(), w.store, func(n int) { reports = append(reports, n) }); err != nil || !slices.Equal(reports, []int{10_000}) {
		t.Fatalf("reports %v, %v", reports, err)
	}
	sweep(t, w, engine.NewAgenda()) // which reports to nobody
}

func TestAnAgendaSaysWhatItKnows(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	if c := a.Checkpoint(); c != (eventlog.Checkpoint{}) {
		t.Errorf("before the first sweep, it has read up to %+v", c)
	}
	open, poisoned, done := w.accept(t, message(1, "a")), w.accept(t, message(2, "b")), w.accept(t, message(3, "c"))
	w.poison(t, poisoned.Stream())
	w.append(t, done.Stream(), job.NoEffectNeeded{})
	sweep(t, w, a)
	for stream, want := range map[string]bool{open.Stream(): true, poisoned.Stream(): true, done.Stream(): false, "update-7-9": false} {
		if a.Knows(stream) != want {
			t.Errorf("%s: known %t", stream, !want)
		}
	}
	var last eventlog.Recorded
	for r := range w.store.ReadAll(t.Context(), eventlog.Start) {
		last = r
	}
	if c := a.Checkpoint(); c != eventlog.CheckpointOf(last) || c.Stream != done.Stream() {
		t.Errorf("it has read up to %+v, the log ends with %+v", c, last)
	}
}

func TestAJobThatWaitedIsCountedForEver(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	stream := w.accept(t, message(1, "hello")).Stream()
	for _, c := range []struct {
		event job.Event
		want  engine.Backlog
	}{
		{job.JobClaimed{}, engine.Backlog{Open: 1}},
		{job.ReconciliationNeeded{Human: true}, engine.Backlog{Human: 1}},
		{job.ReconciliationNeeded{Human: true}, engine.Backlog{Human: 1}},
		{job.LeadAbsent{How: job.ByOperator}, engine.Backlog{Open: 1}},
		{job.JobClaimed{}, engine.Backlog{Open: 1}},
		{job.ReconciliationNeeded{Human: true}, engine.Backlog{Human: 1}},
		{job.LeadConfirmed{CRMID: "1"}, engine.Backlog{}},
	} {
		w.append(t, stream, c.event)
		sweep(t, w, a)
		if b := a.Backlog(); b != c.want {
			t.Errorf("after %T: %+v, want %+v", c.event, b, c.want)
		}
	}
}

// TestAnOldVerdictEndsAJobThatWaits: it was given up, requeued, and stands before a
// person by now.
func TestAnOldVerdictEndsAJobThatWaits(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	stream := w.accept(t, message(1, "hello")).Stream()
	sweep(t, w, a)
	handedOut(a)
	w.append(t, stream, job.JobDeadLettered{}, job.JobRequeued{}, job.JobClaimed{}, job.ReconciliationNeeded{Human: true})
	sweep(t, w, a)
	a.Done(stream, engine.Verdict{Schedule: job.Closed, Revision: 1})
	if b := a.Backlog(); b != (engine.Backlog{Human: 1}) {
		t.Fatalf("backlog %+v", b)
	}
}

// TestAJobThatIsMovedStandsInTheWrongPlace: many jobs, each of them moved many times.
func TestAJobThatIsMovedStandsInTheWrongPlace(t *testing.T) {
	w, a := newWorld(crm.None), engine.NewAgenda()
	want := map[string]time.Time{}
	for i := range 1_000 {
		stream := job.Key{Bot: bot, Update: int64(i*i) % 41}.Stream()
		want[stream] = noon.Add(time.Duration(i*7919%1009) * time.Second)
		w.append(t, stream, job.ClaimReleased{NotBefore: want[stream]})
		sweep(t, w, a)
	}
	last := time.Time{}
	for range len(want) {
		due, _ := a.NextDue()
		stream, ok := a.Next(due)
		if !ok || !want[stream].Equal(due) || due.Before(last) {
			t.Fatalf("%s is handed out at %s, want %s, after %s", stream, due, want[stream], last)
		}
		last = due
	}
	if _, ok := a.NextDue(); ok || len(want) < 15 {
		t.Fatalf("%d jobs, and more", len(want))
	}
}
