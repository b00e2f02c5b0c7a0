package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// longer is how long the searches go on beyond their usual budget: a Go duration
// in LEADONCE_PROPERTIES_TIME, for `make properties-long`.
func longer(t *testing.T) time.Duration {
	value := os.Getenv("LEADONCE_PROPERTIES_TIME")
	if value == "" {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		t.Fatalf("LEADONCE_PROPERTIES_TIME: %v", err)
	}
	return d
}

// report fails the test with the shortest plan and its story.
func report(t testing.TB, p Plan) {
	t.Helper()
	p = Minimize(p)
	var story strings.Builder
	violation := Story(&story, p)
	kept, _ := json.Marshal(keptPlan{p.String(), violation.Property, "say why, and what mended it"})
	t.Fatalf("%s\n\n%s\nkeep it in testdata/plans: %s", violation, story.String(), kept)
}

// TestNoRunBreaksAPromise plays plans of a swarm, from fixed seeds or, when there
// is time, from fresh ones; and it fails when they meet too little.
func TestNoRunBreaksAPromise(t *testing.T) {
	s := Soak{Seed: 1, Runs: 8_000}
	if testing.Short() {
		s.Runs = 2_000
	}
	long := longer(t)
	if long > 0 {
		s = Soak{Seed: uint64(time.Now().UnixNano()), Time: long}
		s.Progress = func(runs int, took time.Duration) {
			if n := int(took.Seconds()); n%60 == 0 {
				t.Logf("seed %d: %d runs in %s", s.Seed, runs, took.Round(time.Second))
			}
		}
	}
	found, cover := s.Run(t.Context())
	if found != nil {
		t.Logf("seed %d", found.Seed)
		report(t, found.Plan)
	}
	if long == 0 && cover.Runs != s.Runs {
		t.Errorf("%d runs, want %d", cover.Runs, s.Runs)
	}
	if testing.Short() {
		return
	}
	if missing := cover.Missing(); len(missing) > 0 {
		t.Errorf("no run of %d came to: %s", cover.Runs, strings.Join(missing, ", "))
	}
	met, all := cover.Pairs()
	if met < all*9/10 {
		t.Errorf("%d of %d pairs of faults happened in one run; not: %s", met, all, strings.Join(cover.MissingPairs(), ", "))
	}
	t.Logf("%d runs, %d calls, %d of %d pairs of faults", cover.Runs, cover.Calls, met, all)
}

// drawn lets rapid draw a plan.
type drawn struct{ t *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "n") }

// TestRapidBreaksNoPromise is the same under rapid, which draws near the edges more
// often than a plain source does.
func TestRapidBreaksNoPromise(t *testing.T) {
	var cover Coverage
	rapid.Check(t, func(rt *rapid.T) {
		p := Draw(drawn{rt}, "")
		if Play(p, &cover) != nil {
			report(t, p)
		}
	})
	if want := 100; cover.Runs < want && !testing.Short() {
		t.Errorf("%d runs, want at least %d", cover.Runs, want)
	}
}

// keptPlan is a file of testdata/plans.
type keptPlan struct {
	Schedule string   `json:"schedule"`
	Broke    Property `json:"broke"`
	Story    string   `json:"story"` // why, and what mended it
}

// TestKeptPlans plays every plan that once broke a promise, or nearly did. None may
// break one again.
func TestKeptPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var kept keptPlan
		if err := json.Unmarshal(data, &kept); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, err := ParseSchedule(kept.Schedule)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if kept.Broke == "" || kept.Story == "" {
			t.Errorf("%s does not say what it broke, and why", name)
		}
		if v := Play(p, &Coverage{}); v != nil {
			t.Errorf("%s: %v\n%s\nrun: leadonce simulate --schedule '%s'", name, v, kept.Story, p)
		}
	}
	t.Logf("%d plans", len(files))
}
