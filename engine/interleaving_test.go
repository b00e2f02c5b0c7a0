package engine_test

import (
	"context"
	"fmt"
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

// scene is all that a run depends on.
type scene struct {
	class crm.Class
	skews []time.Duration
	plan  []act
}

// play acts the plan, heals the world, and returns the first broken promise.
func (c scene) play() string {
	s := newStage(c.class, c.skews)
	for _, x := range c.plan {
		if s.broken == "" {
			s.do(x)
		}
	}
	s.heal()
	s.judge()
	return s.broken
}

// heal ends all faults. Every second process that was stopped goes on only when
// the others are through.
func (s *stage) heal() {
	healer := s.engine("healer", 0)
	for _, late := range []bool{false, true} {
		for i, a := range slices.Clone(s.actors) {
			for (late || i%2 == 0) && slices.Contains(s.actors, a) {
				s.step(a, none)
			}
		}
		s.runUntil(engine.NewAgenda(), 3*time.Hour, healer)
	}
	for range 4 { // the humans do their part
		s.time.advance(time.Hour)
		for i, key := range s.keys {
			state, err := engine.Load(context.Background(), s.store, key.Stream())
			s.breaks(err != nil, "%v", err)
			if !state.Human {
				continue
			}
			s.ambiguous(key)
			if lead := s.crm.effects(operationOf(s.updates[i])); len(lead) > 0 {
				_, err = healer.Resolve(context.Background(), key, lead[0], operator)
			} else {
				_, err = healer.ResolveAbsent(context.Background(), key, operator)
			}
			s.breaks(err != nil, "the operator is refused: %v", err)
		}
		s.runUntil(engine.NewAgenda(), 3*time.Hour, healer)
	}
}

// ambiguous demands a reason for a job that is not known to be applied or not.
func (s *stage) ambiguous(key job.Key) {
	history := s.history(key.Stream())
	expired := false
	for r := range s.store.ReadStream(context.Background(), key.Stream(), 0) {
		expired = expired || strings.Contains(string(r.Data), "expired")
	}
	state, _ := engine.Load(context.Background(), s.store, key.Stream())
	s.breaks(!s.troubled && !expired && s.crm.open[state.OperationID] == 0,
		"%s needs reconciliation, but nothing was ambiguous: %v", key, history)
}

func (s *stage) judge() {
	for i, key := range s.keys {
		operation := operationOf(s.updates[i])
		leads := s.crm.effects(operation)
		s.breaks(len(leads) > 1, "%s: two effects, %v: %v", key, leads, s.histories())
		state, err := engine.Load(context.Background(), s.store, key.Stream())
		s.breaks(err != nil, "%v", err)
		s.breaks(!state.Phase.Final(), "%s never ends: %v", key, s.histories())
		switch {
		case state.Phase == job.Done && state.CRMID != "":
			s.breaks(!slices.Contains(leads, state.CRMID), "%s is done with %s, but the leads are %v", key, state.CRMID, leads)
		case state.Phase == job.Done:
			s.breaks(len(leads) == 0, "%s is done, but there is no lead: %v", key, s.histories())
		case state.Phase == job.DeadLetter && state.LastOperator == "" && state.BusinessKey == key.String():
			s.breaks(len(leads) > 0, "%s is a dead letter, but there is %v: %v", key, leads, s.histories())
		}
		s.judgeHistory(key)
	}
}

func (s *stage) judgeHistory(key job.Key) {
	operations, state := map[string]bool{}, job.State{}
	for r := range s.store.ReadStream(context.Background(), key.Stream(), 0) {
		e, err := job.Decode(r.Type, r.Data)
		s.breaks(err != nil, "%v", err)
		err = job.Allowed(state.Now(), e)
		s.breaks(err != nil, "%s: %v", key, err)
		state = state.Evolve(e, r.Time)
		if claim, ok := e.(job.JobClaimed); ok {
			operations[claim.OperationID] = true
		}
	}
	s.breaks(len(operations) > 1, "%s has operations %v", key, operations)
}

func (s *stage) histories() string {
	var b strings.Builder
	for _, key := range s.keys {
		fmt.Fprintf(&b, "\n  %s: %s", key, strings.Join(s.history(key.Stream()), " "))
	}
	return b.String()
}

// minimal leaves out of the plan whatever the violation does not need.
func minimal(c scene) scene {
	for changed := true; changed; {
		changed = false
		for size := max(len(c.plan)/2, 1); size > 0; size /= 2 {
			for i := 0; i+size <= len(c.plan); {
				shorter := c
				shorter.plan = slices.Concat(c.plan[:i], c.plan[i+size:])
				if shorter.play() == "" {
					i++
					continue
				}
				c, changed = shorter, true
			}
		}
	}
	return c
}

func someScene(rt *rapid.T) scene {
	skew := rapid.SampledFrom([]time.Duration{0, patient.ClockSkew, -patient.ClockSkew}).Draw(rt, "skew")
	return scene{
		class: rapid.SampledFrom(crm.Classes).Draw(rt, "class"),
		skews: []time.Duration{0, skew, skew / 2},
		plan: randomPlan(
			rapid.Uint64().Draw(rt, "seed")^rapid.Uint64().Draw(rt, "more seed")<<1,
			rapid.Uint8().Draw(rt, "swarm"), rapid.IntRange(10, 90).Draw(rt, "length")),
	}
}

func TestNoOrderOfStepsDoublesOrLosesAnEffect(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := someScene(rt)
		if broken := c.play(); broken != "" {
			small := minimal(c)
			rt.Fatalf("%s, skews %v: %s\nplan %+v", small.class, small.skews, small.play(), small.plan)
		}
	})
}

// TestARunIsTheSameEveryTime: what cannot be repeated cannot be minimised.
func TestARunIsTheSameEveryTime(t *testing.T) {
	for seed := range uint64(20) {
		var first []string
		for range 3 {
			s := newStage(crm.Lookup, []time.Duration{0, time.Second, 0})
			for _, x := range randomPlan(seed, 0xff, 60) {
				s.do(x)
			}
			s.heal()
			var all []string
			for r := range s.store.ReadAll(context.Background(), eventlog.Start) {
				all = append(all, fmt.Sprint(r.Stream, r.Type, r.Time, r.ID, string(r.Data)))
			}
			if first == nil {
				first = all
			}
			if !slices.Equal(all, first) {
				t.Fatalf("seed %d: two different runs", seed)
			}
		}
	}
}
