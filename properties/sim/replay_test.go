package sim

import (
	"crypto/sha256"
	"flag"
	"testing"
)

var replays = flag.Int("replays", 2000, "how many runs are played a second time")

// TestAPlanIsOneRun: the same plan gives the same log, byte for byte. What cannot
// be repeated can be neither minimised nor kept.
func TestAPlanIsOneRun(t *testing.T) {
	checked := 0
	for seed := range uint64(*replays) / 2 {
		p := Draw(Seeded(seed), "")
		again, err := ParseSchedule(p.String())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if first, second := Hash(p), Hash(again); first != second {
			t.Fatalf("seed %d: two different runs of one plan:\n%x\n%x\n%s", seed, first, second, p)
		}
		checked += 2
	}
	if checked < *replays-1 {
		t.Errorf("%d runs, want %d", checked, *replays)
	}
}

// TestRunsDiffer: a hash that is the same for all runs shows nothing.
func TestRunsDiffer(t *testing.T) {
	seen := map[[sha256.Size]byte]bool{}
	const runs = 200
	for seed := range uint64(runs) {
		seen[Hash(Draw(Seeded(seed), ""))] = true
	}
	if len(seen) < runs/2 {
		t.Errorf("%d runs leave only %d different logs", runs, len(seen))
	}
}
