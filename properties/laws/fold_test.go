package laws

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadonce/leadonce/engine/job"
)

// TestHistoriesOfOneStateAreTreatedAlike: what is decided about a job follows
// from its state, and from nothing else that its events said. For a history that
// was lived, others are looked for that say something else and fold to the same
// state; then everything that can be asked is asked of both.
func TestHistoriesOfOneStateAreTreatedAlike(t *testing.T) {
	t.Parallel()
	checks, twins, decided, phases := 0, 0, 0, map[job.Phase]int{}
	for range 4 {
		rapid.Check(t, func(t *rapid.T) {
			checks++
			l := newLife(t, 42, rapid.IntRange(1, 25).Draw(t, "steps"))
			if !legal(l.events) {
				t.Fatalf("the domain decided what its table forbids: %v", names(l.events))
			}
			twin, differences := twinOf(t, l.events)
			// Each is asked right behind its own fold, the second in another order.
			one := throughTheCodec(t, l.events)
			first := decisions(one, l.now, l.rules, false)
			two := throughTheCodec(t, twin)
			second := decisions(two, l.now, l.rules, true)
			if !reflect.DeepEqual(one, l.state) || !reflect.DeepEqual(two, l.state) {
				t.Fatalf("folded from the log to\n%+v, from its twin to\n%+v, was\n%+v", one, two, l.state)
			}
			if differences == 0 {
				return
			}
			twins++
			phases[l.state.Phase]++
			for i := range first {
				decided++
				if !reflect.DeepEqual(first[i], second[i]) {
					t.Fatalf("decision %d is\n%+v, and of a twin\n%+v; the history\n%v\nand the twin\n%v", i, first[i], second[i], l.events, twin)
				}
			}
		})
	}
	if checks < 50 || 2*twins < checks || decided < 50*twins || len(phases) < 4 {
		t.Errorf("%d histories have %d twins, with %d decisions, by phase %v", checks, twins, decided, phases)
	}
}

// twinOf is another history with the same state, and in how many places it is
// another one. Changes are tried by chance, and kept when the state stays.
func twinOf(t *rapid.T, events []recorded) (twin []recorded, differences int) {
	want := fold(events)
	twin = slices.Clone(events)
	for range 12 {
		at := rapid.IntRange(0, len(events)-1).Draw(t, "at")
		try := slices.Clone(twin)
		if rapid.IntRange(0, 2).Draw(t, "change") == 0 && at > 0 {
			try[at].event, try[at-1].event = try[at-1].event, try[at].event
		} else {
			try[at] = otherwise(t, try[at])
		}
		if legal(try) && reflect.DeepEqual(fold(try), want) {
			twin = try
		}
	}
	for i := range twin {
		if !reflect.DeepEqual(twin[i], events[i]) {
			differences++
		}
	}
	return twin, differences
}

// otherwise is the event with its time or one of its fields changed.
func otherwise(t *rapid.T, r recorded) recorded {
	changed := reflect.New(reflect.TypeOf(r.event)).Elem()
	changed.Set(reflect.ValueOf(r.event))
	which := rapid.IntRange(0, changed.NumField()).Draw(t, "field")
	if which == changed.NumField() {
		return recorded{r.event, r.at.Add(time.Second)}
	}
	field := changed.Field(which)
	if at, ok := field.Interface().(time.Time); ok {
		field.Set(reflect.ValueOf(at.Add(time.Second)))
		return recorded{changed.Interface().(job.Event), r.at}
	}
	if fields, ok := field.Interface().(job.Fields); ok {
		more := fields.Map()
		more["x"] += "x"
		field.Set(reflect.ValueOf(job.NewFields(more)))
		return recorded{changed.Interface().(job.Event), r.at}
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(field.String() + "x")
	case reflect.Int, reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Bool:
		field.SetBool(!field.Bool())
	}
	return recorded{changed.Interface().(job.Event), r.at}
}

// throughTheCodec folds what the log would give back.
func throughTheCodec(t *rapid.T, events []recorded) job.State {
	s := job.State{}
	for _, r := range events {
		wire, data, err := job.Encode(r.event)
		if err != nil {
			t.Fatalf("%v", err)
		}
		e, err := job.Decode(wire, data)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s = s.Evolve(e, r.at)
	}
	return s
}

// decisions are the answers to everything that can be asked about a job.
func decisions(s job.State, now time.Time, r job.Rules, backwards bool) []any {
	var questions []func() any
	ask := func(q func() any) { questions = append(questions, q) }
	acts := func(q func() ([]job.Event, error)) {
		ask(func() any { events, err := q(); return []any{events, err} })
	}
	ask(func() any { return s.Repeat() })
	for _, text := range []string{"other 0", "other 1", "other 2", "other 3"} {
		u := message(7, 42, text)
		ask(func() any { return s.Conflict(u, u.VariantKey()) })
	}
	plan := job.DefaultPlan(s.Key, s.AsUpdate())
	ask(func() any { return plan })
	ask(func() any { return s.Bind(plan) })
	ask(func() any { return s.Bind(job.Plan{Effect: true, Action: "other", BusinessKey: "telegram/7/43"}) })
	for _, at := range []time.Time{now, now.Add(15 * time.Second), now.Add(time.Hour)} {
		ask(func() any { return s.ClaimBy("w", plan, "", at, r.Policy) })
		ask(func() any { return s.Permit(at, r) })
		ask(func() any { return s.Expire(at, 0.5, r) })
		ask(func() any { return s.NotFound("503", at, 0.5, r.Policy) })
		for _, ids := range [][]string{nil, {"lead-1"}, {"lead-1", "lead-2"}, {""}} {
			ask(func() any { return s.Found(ids, at, r) })
		}
		for _, o := range outcomes {
			for _, fence := range []uint64{s.Claim.Fence, s.EventCount} {
				ask(func() any { return s.Record(fence, o, at, 0.5, r) })
			}
		}
		acts(func() ([]job.Event, error) { return s.ResolveAbsent("", at, operator, r) })
		acts(func() ([]job.Event, error) { return s.Doubt(plan, "", at, operator, r) })
	}
	ask(func() any { return s.Unrepeatable(r) })
	ask(func() any { return s.ExpiresAt(r.Policy) })
	acts(func() ([]job.Event, error) { return s.Resolve("", "lead-1", operator) })
	acts(func() ([]job.Event, error) { return s.Requeue(operator) })
	acts(func() ([]job.Event, error) { return s.Discard(operator) })
	for _, holder := range []job.Key{s.Key, {Bot: 7, Update: 41}} {
		for requeues := range 2 {
			ask(func() any { return job.Stand(job.OperationReserved{Holder: holder, Requeues: requeues}, s, s) })
		}
	}
	answers := make([]any, len(questions))
	for i := range questions {
		if backwards {
			i = len(questions) - 1 - i
		}
		answers[i] = questions[i]()
	}
	return answers
}
