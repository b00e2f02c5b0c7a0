package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the collector wait: runs are short, and leave nothing behind.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
