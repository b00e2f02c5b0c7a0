package main

import (
	"sync"
	"time"
)

// fate is what became of a mutant.
type fate struct {
	mutant  Mutant
	verdict verdict
	reached bool // by any test
	by      string
	output  string
}

// batch is a run of one process: tests of one suite.
type batch struct {
	tests []*test
	took  time.Duration
	steps uint64
}

// The tests up to quick are run together, and so are those up to middling: a
// process takes a moment to start, and the slow ones are seldom needed.
const (
	quick    = 60 * time.Millisecond
	middling = 500 * time.Millisecond
)

// batches are the runs that could notice the mutant, the cheapest first.
func batches(id int, tests []test) []batch {
	var list []batch
	open := map[string]int{} // suite and class → its batch
	for i := range tests {
		t := &tests[i]
		if t.reaches[id] == 0 {
			continue
		}
		class := t.suite.folder
		switch {
		case t.took <= quick:
			class += " quick"
		case t.took <= middling:
			class += " middling"
		default:
			class += " " + t.name
		}
		at, ok := open[class]
		if !ok {
			at = len(list)
			open[class] = at
			list = append(list, batch{})
		}
		list[at].tests = append(list[at].tests, t)
		list[at].took += t.took
		list[at].steps += t.steps
	}
	return list
}

// limit is how long a mutant may take: many times what the original takes.
func (b batch) limit() time.Duration { return 10*time.Second + 20*b.took }

// maxSteps is how many steps it may take. One test alone has fewer to spare: there
// are others that may fail at once.
func (b batch) maxSteps() uint64 {
	if len(b.tests) == 1 {
		return 300_000 + 20*b.steps
	}
	return 3_000_000 + 20*b.steps
}

// try runs one mutant until a test notices it.
func (b *bench) try(m Mutant, tests []test) fate {
	f := fate{mutant: m}
	for _, batch := range batches(m.ID, tests) {
		f.reached = true
		f.by = batch.tests[0].suite.folder
		f.verdict, f.output = b.runBatch(m, batch)
		if f.verdict == late && len(batch.tests) > 1 {
			f.verdict = b.oneByOne(m, batch)
		}
		if f.verdict != passed {
			return f
		}
	}
	return f
}

func (b *bench) runBatch(m Mutant, batch batch) (verdict, string) {
	var names []string
	for _, t := range batch.tests {
		names = append(names, t.name)
	}
	return b.run(batch.tests[0].suite, names, m.ID, batch.maxSteps(), batch.limit())
}

// fewTests is how many tests are run alone where one of them never ends.
const fewTests = 15

// oneByOne looks for a test that fails in a batch that takes too long: that a test
// never ends says less. It gives up where the time is used without any step.
func (b *bench) oneByOne(m Mutant, all batch) verdict {
	for _, t := range all.tests[:min(len(all.tests), fewTests)] {
		one, began := batch{[]*test{t}, t.took, t.steps}, time.Now()
		if v, _ := b.runBatch(m, one); v == failed {
			return failed
		}
		if time.Since(began) > one.limit()/2 {
			break
		}
	}
	return late
}

// hunt tries the mutants, a few at a time. each is told of every fate.
func (b *bench) hunt(list []Mutant, tests []test, atOnce int, each func(done int, f fate)) []fate {
	fates := make([]fate, len(list))
	var mu sync.Mutex
	done := 0
	parallel(atOnce, len(list), func(i int) {
		fates[i] = b.try(list[i], tests)
		mu.Lock()
		defer mu.Unlock()
		done++
		each(done, fates[i])
		fates[i].output = ""
	})
	return fates
}
