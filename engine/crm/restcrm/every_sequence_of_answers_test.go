package restcrm_test

import (
	"context"
	"flag"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/job"
)

var every = flag.Bool("every", false, "run all sequences of three answers, instead of those of one fault of each kind")

// answersMax is the length of the sequences. What comes after them is true.
const answersMax = 3

// kinds are one fault for each pair of what it does and what it proves.
// Sequences of three are made of them unless -every is given; those of two are
// always made of all faults.
var kinds = []sim.Fault{
	sim.NoFault, sim.CutAfter, sim.ErrorBefore, sim.HangThenApply, sim.AcceptedLater,
	sim.NotExecuted, sim.Duplicated, sim.LookupLags,
}

// proven are the faults of a create that leave nothing open.
var proven = []sim.Fault{
	sim.NoFault, sim.NotExecuted, sim.RateLimited, sim.RateLimitedDate, sim.RateLimitedAbsent,
	sim.RateLimitedPast, sim.Duplicated,
}

// TestEverySequenceOfAnswers meets one job with every sequence of the CRM's
// answers within what its class promises, creates and lookups alike.
func TestEverySequenceOfAnswers(t *testing.T) {
	curt := patient
	curt.MaxAttempts = 2
	for _, class := range crm.Classes {
		for name, s := range map[string]setup{
			"patient":    {policy: patient},
			"curt":       {policy: curt},
			"id omitted": {policy: patient, config: sim.Config{OmitExistingID: true}},
		} {
			if s.config.OmitExistingID && class != crm.UniqueCreate {
				continue
			}
			s.class = class
			t.Run(string(class)+"/"+name, func(t *testing.T) {
				t.Parallel()
				n := exploreAll(t, s)
				t.Logf("%d sequences", n)
			})
		}
	}
}

// exploreAll runs the tree of sequences, one branch of the first answer after
// the other, on a network of its own.
func exploreAll(t *testing.T, s setup) int {
	net := newNetwork(t)
	var n int
	var explore func(prefix []sim.Fault)
	explore = func(prefix []sim.Fault) {
		n++
		next := net.play(t, s, prefix)
		if t.Failed() || next == "" || len(prefix) == answersMax {
			return
		}
		for _, fault := range append([]sim.Fault{sim.NoFault}, sim.Spread(sim.Class(s.class), next)...) {
			longer := append(slices.Clone(prefix), fault)
			if *every || len(longer) < answersMax || !slices.ContainsFunc(longer, isNoKind) {
				explore(longer)
			}
		}
	}
	explore(nil)
	return n
}

func isNoKind(f sim.Fault) bool { return !slices.Contains(kinds, f) }

// network is one HTTP server over pipes, whose CRM is exchanged for each play.
type network struct {
	*pipes
	handler atomic.Pointer[http.Handler]
}

func newNetwork(t *testing.T) *network {
	n := &network{pipes: newPipes()}
	server := &http.Server{
		Handler:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*n.handler.Load()).ServeHTTP(w, r) }),
		ErrorLog: log.New(discard{}, "", 0),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(n.pipes) })
	t.Cleanup(func() { _ = server.Close(); serving.Wait() })
	return n
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// impatient gives a call up as soon as the CRM begins to hang, so that nobody
// has to wait for a time-out.
type impatient struct {
	crm.Connector
	giveUp atomic.Pointer[context.CancelFunc]
}

func (i *impatient) Create(ctx context.Context, op crm.Operation) (crm.Receipt, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.giveUp.Store(&cancel)
	return i.Connector.Create(ctx, op)
}

func (i *impatient) Find(ctx context.Context, id string, deadline time.Time) ([]crm.Receipt, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.giveUp.Store(&cancel)
	return i.Connector.Find(ctx, id, deadline)
}

// play meets one job with the sequence and holds its end against what always
// holds. It returns the kind of the first request behind the sequence, empty
// when the job ended before.
func (n *network) play(t *testing.T, s setup, sequence []sim.Fault) (next sim.Op) {
	hasty := &impatient{}
	s.wrap = func(c crm.Connector) crm.Connector { hasty.Connector = c; return hasty }
	s.dial = n.dial
	s.serve = func(_ testing.TB, h http.Handler) string { n.handler.Store(&h); return "http://crm.example" }
	stage := &stage{TB: t}
	defer stage.end()
	w := newWorld(stage, s)
	met, hanging := 0, false
	w.choose = func(op sim.Op) sim.Fault {
		defer func() { met++ }()
		hanging = false
		if met < len(sequence) {
			hanging = sequence[met] == sim.HangThenApply
			return sequence[met]
		}
		if met == len(sequence) {
			next = op
		}
		return sim.NoFault
	}
	w.clock.onHang = func() {
		if hanging {
			(*hasty.giveUp.Load())()
		}
	}
	key, _ := w.deliver(1)
	w.run()
	w.pass(time.Hour) // all that is late has come
	if problem := w.judge(s, key); problem != "" {
		t.Errorf("after %v: %s\nevents %v\nrequests %+v\nlast error %q", sequence, problem, w.events(key), w.crm.Requests(), w.state(key).LastError)
	}
	return next
}

// judge says what is wrong with the end of the only job.
func (w *world) judge(s setup, key job.Key) string {
	state, effects, events := w.state(key), w.effects(key), w.events(key)
	faults, open := w.createFaults(), 0
	for i, f := range faults {
		unclear := f == sim.Duplicated && s.config.OmitExistingID // "exists", and the id is not said
		if unclear || !slices.Contains(proven, f) {
			open++
			if s.class == crm.None && i < len(faults)-1 {
				return "a request was sent while an earlier one is unresolved"
			}
		}
	}
	count := func(name string) (n int) {
		for _, e := range events {
			if e == name {
				n++
			}
		}
		return n
	}
	resent := len(faults) - 1 - count("AttemptNotApplied") - count("LeadAbsent")
	known := len(effects) == 1 && state.CRMID == effects[0]
	switch {
	case len(effects) > 1:
		return "more than one lead"
	case !s.class.Repeatable() && resent > 0:
		return "sent again without proof that it had no effect"
	case open == 0 && count("ReconciliationNeeded")+count("OutcomeUnknown") > 0:
		return "nothing was ambiguous, but it was reconciled"
	case state.Phase == job.Done && !known:
		return "done with a lead that is not the one"
	case state.Phase == job.DeadLetter && len(effects) > 0:
		return "given up, but there is a lead"
	case state.Phase == job.DeadLetter && s.policy.MaxAttempts > answersMax:
		return "given up with attempts left"
	case state.Phase == job.NeedsReconciliation && (!state.Human || s.class != crm.None):
		return "left to a human although it could be looked up"
	case state.Phase != job.Done && state.Phase != job.DeadLetter && state.Phase != job.NeedsReconciliation:
		return "not ended: " + string(state.Phase)
	case strings.Contains(state.LastError, "ALARM"):
		return "an alarm"
	}
	return ""
}

// createFaults are what the creates met, in their order.
func (w *world) createFaults() (faults []sim.Fault) {
	for _, r := range w.crm.Requests() {
		if r.Op == sim.Create {
			faults = append(faults, r.Fault)
		}
	}
	return faults
}

// stage is a testing.TB whose cleanups happen at the end of a play.
type stage struct {
	testing.TB
	cleanups []func()
}

func (s *stage) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *stage) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}
