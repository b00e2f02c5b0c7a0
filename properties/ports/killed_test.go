package ports

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// TestKilledInDrawnLives is for a longer run.
func TestKilledInDrawnLives(t *testing.T) {
	t.Parallel()
	deaths := 0
	rounds := whileTime(t, func(round int) {
		k := killer{t: t, parent: scratch(t), power: true, stride: stride(1, 8)}
		l := drawnLife(uint64(round))
		k.attempts, k.changes = lived(t, k.parent, l, nil)
		if wrong := k.all(); wrong != "" {
			t.Fatalf("%s: %s\n%+v", l.name, wrong, l.deeds)
		}
		os.RemoveAll(k.parent)
		if deaths += k.tally.deaths; k.tally.deaths < len(k.changes)/k.stride {
			t.Errorf("%s: %d deaths at %d calls", l.name, k.tally.deaths, len(k.changes))
		}
	})
	t.Logf("%d lives, %d deaths", rounds, deaths)
}

// scratch is a folder in memory where the system has one: what these files
// would be on a disk is told by the recorder.
func scratch(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "leadonce")
	if err != nil {
		dir, err = filepath.EvalSymlinks(t.TempDir()) // SQLite tells the recorder no other name
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// leftovers are the ways in which changes that were not synced outlive a loss
// of power.
func leftovers(seed uint64) (ways []leftover) {
	one := func(name string, is func(of int) bool) {
		ways = append(ways, leftover{name, func(of int, c change) []change {
			if is(of) {
				return []change{c}
			}
			return nil
		}})
	}
	random := func(name string, share float64) {
		r := rand.New(rand.NewPCG(seed, uint64(share*100)))
		ways = append(ways, leftover{name, func(_ int, c change) []change {
			return c.sectors(func() bool { return r.Float64() < share })
		}})
	}
	one("nothing", func(int) bool { return false })
	one("every second", func(of int) bool { return of%2 == 1 })
	one("all but the first", func(of int) bool { return of > 0 })
	random("some sectors", 0.5)
	random("most sectors", 0.95)
	return ways
}

type leftover struct {
	name  string
	lives lives
}

// killer judges what is left by a death after each call of a life.
type killer struct {
	t        testing.TB
	parent   string
	attempts []attempt
	changes  []change
	power    bool // the power goes, too
	stride   int  // to the next call to die after
	from     int  // the first call to die after; 2 is the first of all
	blind    bool // the disk forgets what is synced while a log is opened
	judged   map[string]bool
	tally    tally
}

// all returns the first thing that is wrong.
func (k *killer) all() string {
	k.judged = map[string]bool{}
	for n := max(k.from, 2); n <= len(k.changes); n += k.stride {
		if wrong := k.at(n); wrong != "" {
			return fmt.Sprintf("call %d of %d: %s", n, len(k.changes), wrong)
		}
	}
	return ""
}

// at is a death before call n, which is done not at all or in part.
func (k *killer) at(n int) string {
	if wrong := k.killed("killed", n, k.changes[:n]); wrong != "" {
		return wrong
	}
	if n < len(k.changes) && k.changes[n].kind == wrote {
		for _, share := range []int{len(k.changes[n].data) / 2, len(k.changes[n].data) - 1} {
			part := k.changes[n]
			part.data = part.data[:share]
			if wrong := k.killed(fmt.Sprintf("killed after %d bytes", share), n, append(k.changes[:n:n], part)); wrong != "" {
				return wrong
			}
		}
	}
	if !k.power {
		return ""
	}
	for _, way := range leftovers(uint64(n)) {
		if l := k.judge("power lost, left of what was not synced: "+way.name, n, afterPowerLoss(k.changes[:n], way.lives), k.attempts); l.wrong != "" {
			return l.wrong
		}
	}
	return ""
}

func (k *killer) killed(what string, n int, now []change) string {
	l := k.judge(what, n, now, k.attempts)
	if l.wrong != "" || !k.power {
		return l.wrong
	}
	for _, stop := range l.stops {
		left := afterPowerLoss(stop.changes, func(int, change) []change { return nil })
		if l := k.judge(what+", opened, then without power", 1, left, stop.owed); l.wrong != "" {
			return l.wrong
		}
	}
	return ""
}

// judge does so once for each content of the files and each knowledge of the
// callers.
func (k *killer) judge(what string, n int, now []change, attempts []attempt) verdictOnLife {
	answered, called := 0, 0
	for _, a := range attempts {
		if a.answered <= n {
			answered++
		} else if a.called <= n {
			called++
		}
	}
	key := fmt.Sprint(play(now).sum(), answered, called, len(attempts))
	if k.judged[key] {
		return verdictOnLife{}
	}
	k.judged[key] = true
	l := k.tally.judge(k.t, k.parent, now, n, attempts, k.blind)
	if l.wrong != "" {
		l.wrong = what + ": " + l.wrong
	}
	return l
}

func TestKilledAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, l := range allLives() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			k := killer{t: t, parent: scratch(t), power: true, stride: stride(1, 4)}
			k.attempts, k.changes = lived(t, k.parent, l, nil)
			if wrong := k.all(); wrong != "" {
				t.Error(wrong)
			}
			t.Logf("%d calls, %+v", len(k.changes), k.tally)
			if c := k.tally; c.deaths < len(k.changes)/k.stride || k.stride == 1 && (c.present == 0 || c.absent == 0 || c.repeated == 0) {
				t.Errorf("of %d calls too little was judged: %+v", len(k.changes), c)
			}
		})
	}
}

// TestLossesAreFound: a log or a disk that breaks its word in one way is told.
func TestLossesAreFound(t *testing.T) {
	t.Parallel()
	life := allLives()[0]
	for name, c := range map[string]struct {
		wrap  func(eventlog.Log) eventlog.Log
		spoil func(*killer)
		want  string
	}{
		"the disk does not sync": {nil, func(k *killer) {
			k.changes = slices.Clone(k.changes)
			for i, c := range k.changes {
				if c.kind == synced && i > 1 {
					k.changes[i].node = 0 // another file's
					k.changes[i].atOnce = false
				}
			}
			k.from = k.attempts[0].answered
		}, "power lost, left of what was not synced: nothing: append 0 to s was acknowledged and is not there"},
		"the disk does not sync while the log is opened again": {nil, func(k *killer) {
			k.blind = true
			k.from = k.attempts[0].answered - 1 // written and not synced
		}, "opened, then without power: append 0 to s was acknowledged and is not there"},
		"acknowledged before it is written": {nil, func(k *killer) {
			for i := range k.attempts {
				k.attempts[i].answered = k.attempts[i].called
			}
		}, "was acknowledged and is not there"},
		"acknowledged, never written":   {losesEvery(1), nil, "was acknowledged and is not there"},
		"an append is written in parts": {appendsBy(inParts), nil, "is not there as a whole"},
		"a conflict is written":         {appendsBy(conflictAddsOne), nil, "is there, but the port says"},
		"a wrong revision is answered": {nil, func(k *killer) {
			for i := range k.attempts {
				k.attempts[i].at.Revision++
			}
		}, "was told revision"},
		"one byte of the file is another": {nil, func(k *killer) {
			k.changes = slices.Clone(k.changes)
			for i, c := range k.changes {
				if c.kind == wrote && len(c.data) == 8192 && c.node == 4 {
					k.changes[i].data = slices.Clone(c.data)
					k.changes[i].data[8000] ^= 1
				}
			}
		}, "was acknowledged and is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := killer{t: t, parent: scratch(t), power: strings.Contains(c.want, "power"), stride: 1}
			k.attempts, k.changes = lived(t, k.parent, life, c.wrap)
			if c.spoil != nil {
				c.spoil(&k)
			}
			wrong := k.all()
			if wrong == "" || !strings.Contains(wrong, c.want) {
				t.Errorf("found: %q, want %q", wrong, c.want)
			}
			t.Logf("after %d deaths: %.200s", k.tally.deaths, wrong)
		})
	}
}
