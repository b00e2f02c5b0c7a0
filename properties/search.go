package properties

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/properties/sim"
)

// The variables that a run of the tests is told by.
const (
	TimeVariable = "LEADONCE_PROPERTIES_TIME" // how long plans are drawn: a Go duration
	SeedVariable = "LEADONCE_PROPERTIES_SEED" // play the one plan of this seed
)

// DefaultTime is how long plans are drawn when nothing else is said; with -short a
// fifth of it.
const DefaultTime = 10 * time.Second

// search plays drawn plans until its time is over or one breaks a promise.
type search struct {
	draw func(sim.Source) sim.Plan
	time time.Duration
	seed uint64 // of the first run; the others follow
	runs int    // at most; 0 for as many as there is time
}

// failure is a run that broke a promise, and its shortest plan.
type failure struct {
	seed      uint64
	violation sim.Violation
	story     string
}

// run returns nil when nothing was broken, and how many plans were played.
func (s search) run() (*failure, int) {
	began := time.Now()
	var cover sim.Coverage
	for n := 0; n == 0 || time.Since(began) < s.time && (s.runs == 0 || n < s.runs); n++ {
		seed := s.seed + uint64(n)
		p := s.draw(sim.Seeded(seed))
		if v := sim.Play(p, &cover); v != nil {
			return explain(p, seed, *v), n + 1
		}
	}
	return nil, cover.Runs
}

// minimizeTime is how long the search for the shortest plan may take.
var minimizeTime = 5 * time.Second

// explain makes the plan as short as it can, and tells what happens under it.
func explain(p sim.Plan, seed uint64, v sim.Violation) *failure {
	p.Parts.MinimizeTime = minimizeTime
	shortest := sim.Minimize(p)
	var told strings.Builder
	again := sim.Tell(&told, shortest)
	story := told.String()
	if again != nil {
		v = *again
	} else {
		story += "\nThe plan was played once more and broke nothing: what answers does not always answer alike.\n"
	}
	return &failure{seed, v, story}
}

// searchUnder is the search that the variables ask for.
func searchUnder(t testing.TB, draw func(sim.Source) sim.Plan) {
	t.Helper()
	s := search{draw: draw, time: DefaultTime, seed: rand.Uint64() >> 16}
	if testing.Short() {
		s.time /= 5
	}
	if text := os.Getenv(TimeVariable); text != "" {
		limit, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %q is no duration, give one like 10m", TimeVariable, text)
		}
		s.time = limit
	}
	if text := os.Getenv(SeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %q is no number; give the one that a failure printed", SeedVariable, text)
		}
		s.seed, s.runs = seed, 1
	}
	f, runs := s.run()
	if f != nil {
		t.Fatal(f.text(t.Name()))
	}
	t.Logf("%d runs of the engine under drawn plans broke nothing", runs)
}

func (f *failure) text(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + strings.ReplaceAll(regexp.QuoteMeta(part), "'", ".") + "$" // a quote would end the shell's
	}
	return fmt.Sprintf("%s: %s\n\n%s\nRun it again:\n  %s=%d go test -run '%s' .\n",
		f.violation.Property, f.violation.What, f.story, SeedVariable, f.seed, strings.Join(parts, "/"))
}
