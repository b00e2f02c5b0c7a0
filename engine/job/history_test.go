package job

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// check holds after every step, whatever happened.
func (w *world) check() {
	s := w.state
	unsettled := len(w.unproven)
	if s.Phase == Claimed {
		unsettled-- // the present claim's own request
	}
	_, leadMade := s.Has(LeadStep)
	for step, made := range w.leads {
		if len(made) > 1 {
			w.fail("two of one " + step)
		}
	}
	switch {
	case s.Phase == Done && s.CRMID != "" && !slices.Contains(w.truth(), s.CRMID):
		w.fail("confirmed a lead that does not exist")
	case s.Phase == DeadLetter && !s.Ambiguous && (len(w.truth()) > 0 || w.coming(s.Step)):
		w.fail("a dead letter whose lead exists, or will")
	case s.Phase != Done && s.Ambiguous != (unsettled > 0) && !leadMade:
		w.fail(fmt.Sprintf("ambiguous is %t with %d claims unsettled", s.Ambiguous, unsettled))
	case s.Ambiguous && s.FirstSent.IsZero() && len(s.OtherCRMIDs) == 0:
		w.fail("ambiguous since no time")
	case s.Phase == Pending && s.Spent >= w.policy.MaxAttempts:
		w.fail("attempts are spent and the job goes on")
	case s.Phase == NeedsReconciliation && !s.Ambiguous:
		w.fail("needs_reconciliation of what is certain")
	case s.Human && s.Phase != NeedsReconciliation:
		w.fail("a human is asked about a job that is not in front of one")
	case s.Phase == NeedsReconciliation && s.Human == w.rules().Capability.CanFind && !leadMade:
		w.fail("a human is asked what can be looked up, or a lookup what only a human knows")
	case !w.scheduled():
		w.fail(fmt.Sprintf("Due says %d at %s", w.due, w.dueAt))
	}
}

// truth are the leads that exist.
func (w *world) truth() []string { return append(w.leads[""], w.leads[LeadStep]...) }

// coming reports whether a request for the step is on its way. Those for a step that
// is made come too late to matter: its class saw to that.
func (w *world) coming(step string) bool {
	_, made := w.state.Has(step)
	return !made && slices.ContainsFunc(w.landings, func(l landing) bool { return l.step == step })
}

func (w *world) scheduled() bool {
	s := w.state
	switch w.due {
	case DueAt:
		return !s.Phase.Final() && !s.Human && s.NotBefore.Equal(w.dueAt) && !w.dueAt.IsZero()
	case Waiting:
		return s.Phase == NeedsReconciliation && s.Human
	default:
		return s.Phase.Final()
	}
}

// heal ends all faults. Every job must come to its end, and with its lead unless
// it was given up before.
func (w *world) heal() {
	w.healing, w.choose = true, func(int) int { return 0 }
	gaveUp := w.state.Phase == DeadLetter || w.state.LastOperator != "" || slices.ContainsFunc(w.answers, func(a answer) bool { return a.outcome.Class == Refused })
	for range 100 {
		if w.state.Phase.Final() && len(w.answers)+len(w.landings) == 0 {
			break
		}
		w.advance(5 * time.Minute)
		w.record(0, false)
		w.expire(0)
		w.claim(0)
		w.send(0, 0)
		w.lookup(0)
		if w.state.Human {
			w.operator(0, 0)
		}
		w.check()
	}
	switch {
	case !w.state.Phase.Final():
		w.fail("the job is stuck")
	case w.state.Phase == Done && len(w.truth()) != 1:
		w.fail("done without a lead")
	case w.state.Phase == Done && len(w.steps) > 0 && !gaveUp && len(w.state.Made) != len(w.steps):
		w.fail("done without a step")
	case w.state.Phase == DeadLetter && !gaveUp && w.state.Spent < w.policy.MaxAttempts:
		w.fail("given up without need")
	}
}

// replay folds the log anew, through the codec, and compares every state on the
// way: nothing but the events makes a state, and none changed afterwards.
func (w *world) replay() {
	s, m := State{}, NewMachine(New)
	for i, r := range w.log {
		if !reflect.DeepEqual(s, w.history[i]) {
			w.fail(fmt.Sprintf("the state before event %d was %+v, replayed it is %+v", i, w.history[i], s))
		}
		wire, data, err := Encode(r.event)
		if err != nil {
			w.fail(err.Error())
		}
		e, err := Decode(wire, data)
		if err != nil {
			w.fail(err.Error())
		}
		if err := m.Fire(context.Background(), e); err != nil {
			w.fail(err.Error())
		}
		s = s.Evolve(e, r.at)
	}
	if !reflect.DeepEqual(s, w.state) || m.Phase() != s.Phase {
		w.fail(fmt.Sprintf("replayed to %+v in phase %s", s, m.Phase()))
	}
}

func (w *world) String() string {
	var b strings.Builder
	for i, r := range w.log {
		fmt.Fprintf(&b, "\n%3d %s %s %+v", i, r.at.Format("02 15:04:05.000"), r.event.Name(), r.event)
	}
	return fmt.Sprintf("capabilities %+v\nstate %+v\nleads %v, on their way %v, answers %v%s", w.can, w.state, w.leads, w.landings, w.answers, b.String())
}

// sharp are the capabilities of histories; the validity is short enough for it
// to run out in the middle of one.
var sharp = []Capability{
	{Repeatable: true, Validity: 10 * time.Minute, CanFind: true, Settle: 30 * time.Second},
	{Repeatable: true, Validity: 4 * time.Minute, Settle: 30 * time.Second},
	{Repeatable: true, CanFind: true, Settle: 30 * time.Second},
	{Repeatable: true, Settle: 30 * time.Second},
	{CanFind: true, Settle: 30 * time.Second},
	{Settle: 30 * time.Second},
}

func TestNoHistoryMakesTwoLeadsOrLosesOne(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		var w *world
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		w = newWorld(sharp[choose(len(sharp))], choose, func(problem string) { t.Fatalf("%s\n%s", problem, w) }, counts)
		t.Repeat(map[string]func(*rapid.T){
			"step": func(*rapid.T) { w.step() },
			"":     func(*rapid.T) { w.check() },
		})
		w.heal()
		w.replay()
	})
}

// TestNoLongHistoryMakesTwoLeadsOrLosesOne draws longer and many more histories
// than rapid has time for. A seed that fails can be put into rapid's words above.
func TestNoLongHistoryMakesTwoLeadsOrLosesOne(t *testing.T) {
	histories := 8_000
	if testing.Short() {
		histories = 2_000
	}
	counts := map[string]int{}
	for seed := range uint64(histories) {
		var w *world
		random := rand.New(rand.NewPCG(seed, 42))
		w = newWorld(sharp[seed%uint64(len(sharp))], random.IntN, func(problem string) { t.Fatalf("seed %d: %s\n%s", seed, problem, w) }, counts)
		for range 10 + random.IntN(90) {
			w.step()
			w.check()
		}
		w.heal()
		if seed%8 == 0 {
			w.replay()
		}
	}
	for _, e := range jobEventNames(t) {
		if e != (NoEffectNeeded{}).Name() && counts[e] == 0 {
			t.Errorf("%s never happened", e)
		}
	}
	for _, what := range []string{"sent", "too late", "may never", "late receipt"} {
		if counts[what] == 0 {
			t.Errorf("%q never happened", what)
		}
	}
}
