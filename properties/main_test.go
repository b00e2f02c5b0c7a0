package properties

import (
	"os"
	"testing"
	"time"
)

// TestMain gives the examples and the children less time than a team would.
func TestMain(m *testing.M) {
	if os.Getenv(TimeVariable) == "" {
		_ = os.Setenv(TimeVariable, "700ms")
	}
	minimizeTime = time.Second
	os.Exit(m.Run())
}
