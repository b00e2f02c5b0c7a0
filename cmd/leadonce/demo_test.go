package main

import (
	"regexp"
	"testing"
)

// The demo itself: kills, faults, and nothing lost or doubled.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 15 s")
	}
	t.Parallel()
	s := &site{t: t, dir: t.TempDir()}
	status, out, failure := s.run("demo", "--updates", "60", "--kills", "5", "--class", "lookup")
	if status != 0 {
		t.Fatalf("exit status %d\n%s%s", status, out, failure)
	}
	row := regexp.MustCompile(`(?m)^ +lookup +(\d+) +(\d+) +\d+ +\d+ +(\d+) +\d+ +\d+ +5 +0 +0$`).FindStringSubmatch(out)
	if row == nil || row[1] != row[2] || row[3] == "0" {
		t.Errorf("the account is not that of 5 kills and no loss:\n%s", out)
	}
}

// The demo with a CRM that lies: it was declared to know an operation again and
// makes a second lead instead. The account must say so, by the CRM's own journal.
func TestDemoConvictsALyingCRM(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 15 s")
	}
	t.Parallel()
	s := &site{t: t, dir: t.TempDir()}
	s.env = []string{promise + "=none", "TMPDIR=" + s.dir} // what it leaves behind is to be looked at, not here
	status, out, failure := s.run("demo", "--updates", "60", "--kills", "3", "--class", "unique_create", "--faults", "0.5")
	if status != 1 || failure != "leadonce: the account is wrong\n" {
		t.Errorf("exit status %d, want 1\n%s%s", status, out, failure)
	}
	for _, want := range []string{`(?m)^ +unique_create +.* [1-9]\d*$`, `audit verify, unique_create: DOUBLED `, `logs, journals and configuration are in `} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestDemoRefusesItsFlags(t *testing.T) {
	t.Parallel()
	s := &site{t: t, dir: t.TempDir()}
	for _, flags := range [][]string{
		{"--class", "nosuch"}, {"--updates", "9", "--class", "none"}, {"--updates", "49"},
		{"--faults", "1.5"}, {"--faults", "NaN"}, {"--kills", "-1"},
	} {
		if status, out, failure := s.run(append([]string{"demo"}, flags...)...); status != 2 || out != "" {
			t.Errorf("%v: exit status %d, want 2: %s%s", flags, status, out, failure)
		}
	}
}
