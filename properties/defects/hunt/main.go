// Command hunt looks for a violation in the engine that it is built with. The
// defects are built into it by -overlay; built without, it must find nothing.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/leadonce/leadonce/properties/sim"
)

// apart is how far the runs of two hunts are apart: further than any budget.
const apart = 1_000_000_000

// found is one line of the report: what a hunt came to. Times are in microseconds
// of the wall clock.
type found struct {
	Caught     bool         `json:"caught"`
	Checks     int          `json:"checks"`
	Took       int64        `json:"took_us"`
	Minimising int64        `json:"minimising_us"`
	Steps      int          `json:"steps"`
	Property   sim.Property `json:"property,omitempty"`
	What       string       `json:"what,omitempty"`
	Schedule   string       `json:"schedule,omitempty"`
}

func main() {
	hunts := flag.Int("hunts", 20, "how many hunts, each with runs of its own")
	checks := flag.Int("checks", 20_000, "how many runs one hunt may take")
	first := flag.Uint64("first", 0, "number of the first hunt")
	tell := flag.Bool("tell", false, "tell the shortest story of the first hunt that finds something")
	flag.Parse()
	out := json.NewEncoder(os.Stdout)
	for n := range uint64(*hunts) {
		f, plan := hunt((*first+n)*apart, *checks)
		switch {
		case !*tell:
			if err := out.Encode(f); err != nil {
				fmt.Fprintln(os.Stderr, "hunt:", err)
				os.Exit(1)
			}
		case f.Caught:
			story(f, plan)
			return
		}
	}
}

// hunt runs plans of all classes until one breaks a promise, and makes that one
// minimal. The seeds of the runs follow from seed.
func hunt(seed uint64, checks int) (found, sim.Plan) {
	var cover sim.Coverage
	began := time.Now()
	for n := range checks {
		p := sim.Draw(sim.Seeded(seed+uint64(n)), "")
		if sim.Play(p, &cover) == nil {
			continue
		}
		f := found{Caught: true, Checks: n + 1, Took: time.Since(began).Microseconds()}
		began = time.Now()
		p = sim.Minimize(p)
		f.Minimising, f.Steps, f.Schedule = time.Since(began).Microseconds(), len(p.Steps), p.String()
		v := sim.Play(p, &sim.Coverage{})
		f.Property, f.What = v.Property, v.What
		return f, p
	}
	return found{Checks: checks}, sim.Plan{}
}

// story tells what happens in the shortest plan, and how to see it again.
func story(f found, p sim.Plan) {
	fmt.Printf("found in %d runs; %d steps are enough:\n\n", f.Checks, f.Steps)
	sim.Story(os.Stdout, p)
}
