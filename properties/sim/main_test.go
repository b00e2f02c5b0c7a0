package sim

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the collector wait: runs are short, and leave nothing behind.
func TestMain(m *testing.M) {
	debug.SetGCPercent(3000)
	_ = flag.Set("rapid.checks", "1000") // a flag on the command line counts more
	os.Exit(m.Run())
}
