package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/job"
)

// TestARestoredLogMakesLeadsAgain: the lead was made after the backup, so the log
// knows nothing of it.
func TestARestoredLogMakesLeadsAgain(t *testing.T) {
	u := message(1, "hello")
	operation := job.OperationID(u.Bot, job.CreateLead, u.Key().String())
	for _, class := range []crm.Class{crm.Lookup, crm.None} {
		w := newWorld(class)
		w.crm.leads = append(w.crm.leads, lead{"L-made", operation, w.time.Now()})
		w.accept(t, u)
		e := w.engine("a", 0)
		if doubted, err := e.Doubt(t.Context(), u.Key().Stream(), operator); !doubted || err != nil {
			t.Fatalf("doubted %v, %v", doubted, err)
		}
		w.run(t, e)
		s := w.state(t, u.Key())
		if found := s.Phase == job.Done && s.CRMID == "L-made"; found != (class == crm.Lookup) || s.Human != (class == crm.None) {
			t.Errorf("class %s: %+v", class, s)
		}
		if n := len(w.crm.effects(operation)); n != 1 {
			t.Errorf("class %s: %d leads", class, n)
		}
	}
}

func TestAJobThatSendsNothingIsDoubted(t *testing.T) {
	w := newWorld(crm.Lookup)
	e := w.engine("a", 0)
	sticker := message(1, "")
	w.accept(t, sticker)
	first, second := w.accept(t, press(2, "buy")), w.accept(t, press(3, "buy"))
	done := w.accept(t, message(4, "hello"))
	w.advance(t, e, done)
	for key, want := range map[job.Key]bool{sticker.Key(): false, first: true, done: false} {
		if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); doubted != want || err != nil {
			t.Errorf("%s: doubted %v, %v; want %v", key, doubted, err, want)
		}
	}
	wantHistory(t, w, sticker.Key(), "UpdateReceived")
	wantHistory(t, w, done, "UpdateReceived", "JobClaimed", "LeadConfirmed")
	wantHistory(t, w, first, "UpdateReceived", "JobClaimed", "ReconciliationNeeded")
	if s := w.state(t, first); s.OperationID != job.OperationID(bot, job.CreateLead, s.BusinessKey) || s.BusinessKey != w.plan(first, press(2, "buy")).BusinessKey {
		t.Errorf("doubted as %+v", s)
	}
	if doubted, err := e.Doubt(t.Context(), second.Stream(), operator); doubted || err != nil {
		t.Errorf("the job that waits for another: doubted %v, %v", doubted, err)
	}
	wantHistory(t, w, second, "UpdateReceived")
}

// TestADoubtReservesOnlyWhatIsShared, and asks nobody for an operation that the job
// claimed before.
func TestADoubtReservesOnlyWhatIsShared(t *testing.T) {
	w := newWorld(crm.Lookup)
	e := w.engine("a", 0)
	doubt := func(key job.Key) {
		t.Helper()
		if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); !doubted || err != nil {
			t.Fatalf("%s: doubted %v, %v", key, doubted, err)
		}
	}
	own, shared := w.accept(t, message(1, "hello")), w.accept(t, press(2, "buy"))
	doubt(own)
	doubt(shared)
	if got := w.history(job.OperationStream(w.state(t, own).OperationID)); len(got) != 0 {
		t.Errorf("reserved what nobody shares: %v", got)
	}
	operation := job.OperationStream(operationOf(press(2, "buy")))
	if got := w.history(operation); !slices.Equal(got, []string{"OperationReserved"}) {
		t.Errorf("reserved as %v", got)
	}
	w.poison(t, operation)
	doubt(shared)
	wantHistory(t, w, shared, "UpdateReceived", "JobClaimed", "ReconciliationNeeded", "ReconciliationNeeded")
}

func TestADoubtRacesAWorker(t *testing.T) {
	w := newWorld(crm.Lookup)
	u := message(1, "hello")
	key, e := w.accept(t, u), w.engine("a", 0)
	w.meanwhile("append JobClaimed", func() { w.quiet(func() { w.accept(t, u) }) })
	if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); !doubted || err != nil {
		t.Fatalf("doubted %v, %v", doubted, err)
	}
	wantHistory(t, w, key, "UpdateReceived", "DeliveryRepeated", "JobClaimed", "ReconciliationNeeded")
	for range 10 {
		w.meanwhile("append ReconciliationNeeded", func() { w.quiet(func() { w.accept(t, u) }) })
	}
	doubted, err := e.Doubt(t.Context(), key.Stream(), operator)
	if doubted || err == nil || !strings.Contains(err.Error(), "leadonce serve") {
		t.Fatalf("doubted %v, %v, want to be told to stop the workers", doubted, err)
	}
	if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); !doubted || err != nil {
		t.Fatalf("doubted %v, %v", doubted, err)
	}
}

func TestADoubtThatCannotBeRecorded(t *testing.T) {
	for point, u := range map[string]job.Update{
		"read": message(1, "hello"), "append JobClaimed": message(1, "hello"), "append OperationReserved": press(1, "buy"),
	} {
		w := newWorld(crm.Lookup)
		key, e := w.accept(t, u), w.engine("a", 0)
		w.fail(point, down)
		if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); doubted || !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("%s: doubted %v, %v", point, doubted, err)
		}
		wantHistory(t, w, key, "UpdateReceived")
	}
	w := newWorld(crm.Lookup)
	e, unread := w.engine("a", 0), w.accept(t, press(2, "buy"))
	w.poison(t, unread.Stream())
	if doubted, err := e.Doubt(t.Context(), unread.Stream(), operator); doubted || !engine.IsStopped(err) {
		t.Errorf("unreadable: doubted %v, %v", doubted, err)
	}
	if got := w.history(job.OperationStream(operationOf(press(2, "buy")))); len(got) != 0 {
		t.Errorf("unreadable, and reserved as %v", got)
	}
	key := w.accept(t, message(1, "hello"))
	if doubted, err := e.Doubt(t.Context(), key.Stream(), job.Signature{By: "ann"}); doubted || err == nil {
		t.Errorf("without a reason: doubted %v, %v", doubted, err)
	}
	if doubted, err := e.Doubt(t.Context(), "update-7-99", operator); doubted || !errors.Is(err, engine.ErrNoJob) {
		t.Errorf("no job: doubted %v, %v", doubted, err)
	}
}

// TestADoubtSpendsAnAttempt: a job with one attempt left is sent after the doubt
// is settled.
func TestADoubtSpendsAnAttempt(t *testing.T) {
	w := newWorld(crm.Lookup)
	w.policy.MaxAttempts = 1
	key, e := w.accept(t, message(1, "hello")), w.engine("a", 0)
	if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); !doubted || err != nil {
		t.Fatalf("doubted %v, %v", doubted, err)
	}
	w.run(t, e)
	wantPhase(t, w, key, job.Done)
}

// TestADoubtBelievesAnOldDeadline: the log was restored while the job was to be
// looked up; a later attempt, which it does not know of, is still to be seen.
func TestADoubtBelievesAnOldDeadline(t *testing.T) {
	w := newWorld(crm.Lookup)
	key, e := ambiguous(t, w, lostBefore), w.engine("a", 0)
	settled(w)
	if doubted, err := e.Doubt(t.Context(), key.Stream(), operator); !doubted || err != nil {
		t.Fatalf("doubted %v, %v", doubted, err)
	}
	s := w.state(t, key)
	if due := engine.CapabilityOf(w.crm.description).SettledAt(w.time.Now(), w.policy); !s.LastDeadline.Equal(w.time.Now()) || !s.NotBefore.Equal(due) {
		t.Errorf("looked up at %s for requests until %s, want %s", s.NotBefore, s.LastDeadline, due)
	}
}
