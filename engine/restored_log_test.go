package engine_test

import (
	"testing"

	"github.com/leadonce/leadonce/engine"
	"github.com/leadonce/leadonce/engine/crm"
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
	if doubted, err := e.Doubt(t.Context(), second.Stream(), operator); doubted || err != nil {
		t.Errorf("the job that waits for another: doubted %v, %v", doubted, err)
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
