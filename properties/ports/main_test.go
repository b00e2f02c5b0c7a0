package ports

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// timeVariable makes the properties go on with new histories: a Go duration.
const timeVariable = "LEADONCE_PROPERTIES_TIME"

func TestMain(m *testing.M) {
	flag.Parse()
	checks := 50
	if raceDetector {
		checks = 10
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"rapid.seed":       "1",
		"rapid.checks":     strconv.Itoa(checks),
		"rapid.shrinktime": "10s",
		"rapid.nofailfile": "true", // the seed tells as much, and does not go stale
	} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	useRecordingVFS()
	os.Exit(m.Run())
}

// stride is how far it is from one call of a disk to the next one that is
// looked at: 1, all of them, unless the run shall be short.
func stride(whole, brief int) int {
	switch {
	case raceDetector:
		return 4 * brief
	case testing.Short():
		return brief
	default:
		return whole
	}
}

// whileTime calls f once, and then again until the time that was asked for is
// over; it returns how often.
func whileTime(t *testing.T, f func(round int)) (rounds int) {
	t.Helper()
	var limit time.Duration
	if text := os.Getenv(timeVariable); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", timeVariable, err)
		}
	}
	first := 0
	if limit > 0 { // a night is for other histories than those of every day
		first = rand.IntN(1 << 30)
		t.Logf("the first round is %d", first)
	}
	for start := time.Now(); rounds == 0 || time.Since(start) < limit; rounds++ {
		f(first + rounds)
	}
	return rounds
}

// otherSeed makes rapid draw other histories in each round. No other test may
// draw at the same time.
func otherSeed(t *testing.T, first uint64, round int) {
	t.Helper()
	if err := flag.Set("rapid.seed", strconv.FormatUint(first+uint64(round)*1_000_003, 10)); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, name string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(flag.Lookup(name).Value.String(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
