package ports

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// ailments are the ways in which a disk fails at a call.
var ailments = []struct {
	name   string
	partly bool
	fails  func(at int) func(n int, c change) failure
}{
	{"once", false, func(at int) func(int, change) failure {
		return func(n int, _ change) failure { return when(n == at, refused) }
	}},
	{"once, after a part", true, func(at int) func(int, change) failure {
		return func(n int, _ change) failure { return when(n == at, torn) }
	}},
	{"for good", false, func(at int) func(int, change) failure {
		return func(n int, _ change) failure { return when(n >= at, torn) }
	}},
	{"every sync", false, func(at int) func(int, change) failure {
		return func(n int, c change) failure { return when(n >= at && c.kind == synced, refused) }
	}},
}

func when(is bool, f failure) failure {
	if is {
		return f
	}
	return works
}

// outlived is a life on a disk that fails, and what the next process finds on
// it, also when the power goes in between.
func outlived(t testing.TB, c *tally, parent string, l life, told map[string]int, wrap func(eventlog.Log) eventlog.Log, fails func(int, change) failure) string {
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	disk := newRecorder(dir, nil)
	defer disk.forget()
	disk.fails = fails
	p := &process{path: filepath.Join(dir, "log.db"), disk: disk, wrap: wrap}
	p.live(l)
	p.close() // says that the disk fails
	for _, a := range p.attempts {
		told[classOf(a.err)]++
	}
	n := disk.now()
	l1 := c.judge(t, parent, disk.changes, n, p.attempts, false)
	if l1.wrong != "" {
		return l1.wrong
	}
	left := afterPowerLoss(disk.changes, func(int, change) []change { return nil })
	if l2 := c.judge(t, parent, left, n, p.attempts, false); l2.wrong != "" {
		return "then without power: " + l2.wrong
	}
	return ""
}

// TestDiskFailsAtEveryCall: the process lives on, and what it tells its callers
// is the truth.
func TestDiskFailsAtEveryCall(t *testing.T) {
	t.Parallel()
	lives := []life{allLives()[0], allLives()[2], allLives()[3]}
	if stride(1, 3) > 1 {
		lives = lives[:1]
	}
	for _, l := range lives {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			failEvery(t, l)
		})
	}
}

func failEvery(t *testing.T, l life) {
	var c tally
	parent := scratch(t)
	_, changes := lived(t, parent, l, nil)
	stride := stride(1, 3)
	runs, told := 0, map[string]int{}
	for _, ailment := range ailments {
		for at := 1; at <= len(changes)-2; at += stride {
			if changes[at+1].kind != wrote && ailment.partly {
				continue // as without a part
			}
			runs++
			if wrong := outlived(t, &c, parent, l, told, nil, ailment.fails(at)); wrong != "" {
				t.Fatalf("failed %s at call %d of %d: %s", ailment.name, at, len(changes)-2, wrong)
			}
		}
	}
	t.Logf("%d runs: %v, %+v", runs, told, c)
	if least := 3 * (len(changes) - 2) / stride; runs < least || c.deaths != 2*runs {
		t.Errorf("%d runs and %d openings, want more than %d and twice as many", runs, c.deaths, least)
	}
	for _, class := range []string{"ok", "conflict", "unknown", "unavailable"} {
		if stride == 1 && told[class] == 0 {
			t.Errorf("nobody was told: %s", class)
		}
	}
}

// TestLiesAboutADiskAreFound: outcomes that are not the truth.
func TestLiesAboutADiskAreFound(t *testing.T) {
	t.Parallel()
	l := allLives()[0]
	parent := scratch(t)
	_, changes := lived(t, parent, l, nil)
	for name, wrap := range map[string]func(eventlog.Log) eventlog.Log{
		"unknown told as unavailable":  appendsBy(unknownAsUnavailable),
		"unknown told as done":         appendsBy(unknownAsDone),
		"unavailable told as recorded": appendsBy(unavailableAsDone),
	} {
		t.Run(name, func(t *testing.T) {
			var c tally
			for at := len(changes) - 2; at > 0; at -= stride(1, 1) {
				for _, ailment := range ailments {
					if wrong := outlived(t, &c, parent, l, map[string]int{}, wrap, ailment.fails(at)); wrong != "" {
						t.Logf("failed %s at call %d: %.200s", ailment.name, at, wrong)
						return
					}
				}
			}
			t.Errorf("not found in %d openings", c.deaths)
		})
	}
}
