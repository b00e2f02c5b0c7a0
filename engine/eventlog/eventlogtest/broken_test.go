package eventlogtest_test

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

// breakage is one way to be wrong, and the guarantee whose cases find it.
type breakage struct {
	guarantee string
	log       func(eventlog.Log) eventlog.Log
	reopen    func(*memory.Log) *memory.Log
	file      fileBreakage
}

var every = flag.Bool("every", false, "run all cases on each broken log and list those that fail")

var failedCase = regexp.MustCompile(`(?m)^ +--- FAIL: TestBrokenChild/(G\d\d)(\w*)`)

// TestBrokenLog runs the suite, in a child process each, on logs that break one
// guarantee. The cases of that guarantee must turn red.
func TestBrokenLog(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(breakages)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := breakages[name].guarantee
			args := []string{"-test.run=^TestBrokenChild$/^" + want, "-test.failfast"}
			if *every {
				args = []string{"-test.run=^TestBrokenChild$"}
			}
			child := exec.CommandContext(t.Context(), os.Args[0], append(args, "-test.v", "-test.timeout=60s")...)
			child.Env = append(os.Environ(), breakEnv+"="+name)
			out, err := child.CombinedOutput()
			var red, cases []string
			for _, m := range failedCase.FindAllStringSubmatch(string(out), -1) {
				red, cases = append(red, m[1]), append(cases, m[1]+m[2])
			}
			if err == nil || !slices.Contains(red, want) {
				t.Errorf("no case of %s fails (exit: %v):\n%s", want, err, out)
			}
			if strings.Contains(string(out), "panic: ") {
				t.Errorf("the suite panics instead of failing:\n%s", out)
			}
			t.Logf("found by %s", strings.Join(cases, ", "))
		})
	}
}
