package laws

import (
	"slices"
	"testing"

	"github.com/leadonce/leadonce/engine/job"
)

// design is the transition table as the design tells it: for each phase what may
// happen in it, and where that leads. It is written by hand and derived from
// nothing.
var design = map[job.Phase]map[string]job.Phase{
	job.New: {
		"UpdateReceived": job.Pending,
	},
	job.Pending: {
		"DeliveryRepeated":  job.Pending,
		"KeyConflicted":     job.Pending,
		"JobClaimed":        job.Claimed,
		"StepConfirmed":     job.Pending, // a late receipt
		"LeadConfirmed":     job.Done,    // a late receipt, or behind the last step
		"ReceiptConflicted": job.Pending, // of a step before
		"NoEffectNeeded":    job.Done,
		"JobDeadLettered":   job.DeadLetter,
	},
	job.Claimed: {
		"DeliveryRepeated":     job.Claimed,
		"KeyConflicted":        job.Claimed,
		"ClaimRenewed":         job.Claimed,
		"ClaimReleased":        job.Pending,
		"AttemptNotApplied":    job.Pending,
		"OutcomeUnknown":       job.Pending,
		"ReconciliationNeeded": job.NeedsReconciliation,
		"StepConfirmed":        job.Pending,
		"LeadConfirmed":        job.Done,
		"ReceiptConflicted":    job.Claimed,
		"JobDeadLettered":      job.DeadLetter,
	},
	job.NeedsReconciliation: {
		"DeliveryRepeated":     job.NeedsReconciliation,
		"KeyConflicted":        job.NeedsReconciliation,
		"ReconciliationNeeded": job.NeedsReconciliation, // to a person
		"StepConfirmed":        job.Pending,
		"LeadConfirmed":        job.Done,
		"ReceiptConflicted":    job.NeedsReconciliation,
		"LeadAbsent":           job.Pending,
		"JobDeadLettered":      job.DeadLetter,
	},
	job.Done: {
		"DeliveryRepeated":  job.Done,
		"KeyConflicted":     job.Done,
		"ReceiptConflicted": job.Done,
	},
	job.DeadLetter: {
		"DeliveryRepeated":  job.DeadLetter,
		"KeyConflicted":     job.DeadLetter,
		"ReceiptConflicted": job.DeadLetter,
		"JobRequeued":       job.Pending,
	},
}

// named is an event known by its name alone.
type named string

func (n named) Name() string { return string(n) }

// walker tries every event behind every sequence of events that the design
// allows.
type walker struct {
	t         *testing.T
	events    []job.Event
	longest   int
	sequences int // of events, the last of which may be refused
}

// after is a new machine that was led along the path.
func (w *walker) after(path []job.Event) *job.Machine {
	m := job.NewMachine(job.New)
	for _, e := range path {
		if err := m.Fire(w.t.Context(), e); err != nil {
			w.t.Fatalf("%v: %v", path, err)
		}
	}
	return m
}

func (w *walker) walk(path []job.Event, phase job.Phase) {
	m := w.after(path)
	var allowed []job.Event
	for _, e := range w.events {
		w.sequences++
		_, ok := design[phase][e.Name()]
		if m.Can(e) != ok {
			w.t.Fatalf("after %v the machine allows %s: %t, the design: %t", path, e.Name(), !ok, ok)
		}
		if ok {
			allowed = append(allowed, e)
		} else if err := m.Fire(w.t.Context(), e); err == nil || m.Phase() != phase {
			w.t.Fatalf("after %v the machine takes %s, which the design refuses, to %s", path, e.Name(), m.Phase())
		}
	}
	// The machine has refused by now whatever it must, and goes on as if it had not.
	for i, e := range allowed {
		to := design[phase][e.Name()]
		if i > 0 {
			m = w.after(path)
		}
		if err := m.Fire(w.t.Context(), e); err != nil || m.Phase() != to {
			w.t.Fatalf("after %v, %s the machine stands in %s, by the design in %s (%v)", path, e.Name(), m.Phase(), to, err)
		}
		if len(path)+1 < w.longest {
			w.walk(append(slices.Clip(path), e), to)
		}
	}
}

// TestTheMachineIsTheDesign over all sequences of up to eight events. A sequence
// that goes on behind an event that is refused is one that lacks it, for what is
// refused is tried on the machine that goes on.
func TestTheMachineIsTheDesign(t *testing.T) {
	t.Parallel()
	w := walker{t: t, longest: 8}
	least := 350_000
	if testing.Short() {
		w.longest, least = 6, 10_000
	}
	for _, name := range job.EventNames() {
		w.events = append(w.events, named(name))
	}
	w.walk(nil, job.New)
	if want := sequencesByTheDesign(len(w.events), w.longest, job.New); w.sequences != want || want < least {
		t.Errorf("%d sequences were tried, want %d", w.sequences, want)
	}
}

// sequencesByTheDesign counts what walk must try.
func sequencesByTheDesign(events, longest int, from job.Phase) int {
	count := events
	if longest > 1 {
		for _, to := range design[from] {
			count += sequencesByTheDesign(events, longest-1, to)
		}
	}
	return count
}

// TestEveryEventIsOfTheDesign, and nothing in the design is unknown.
func TestEveryEventIsOfTheDesign(t *testing.T) {
	var told []string
	for _, phase := range job.Phases {
		for name := range design[phase] {
			told = append(told, name)
		}
	}
	slices.Sort(told)
	names := slices.Sorted(slices.Values(job.EventNames()))
	if told = slices.Compact(told); !slices.Equal(told, names) || len(told) != 16 {
		t.Errorf("the design tells of %q, the machine knows %q", told, names)
	}
	if len(design) != len(job.Phases) {
		t.Errorf("the design has %d phases, want %d", len(design), len(job.Phases))
	}
}
