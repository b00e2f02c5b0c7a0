package eventlogtest

import (
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// Backend is an adapter as the suite sees it. Open is required; each of the
// other functions is a capability. The cases that need one that is nil are
// skipped, by a line that names it.
type Backend struct {
	// Open returns a fresh, empty log and closes it with t.Cleanup.
	Open func(t testing.TB) eventlog.Log

	// Reopen closes log cleanly and opens its store again.
	Reopen func(t testing.TB, log eventlog.Log) eventlog.Log

	// Second opens another handle to the store of log, as another process would:
	// nothing in memory is shared between the two.
	Second func(t testing.TB, log eventlog.Log) eventlog.Log

	// Crash opens the store that is kept in dir and makes one where there is
	// none. The suite calls it in child processes, which it kills with SIGKILL,
	// several at a time on one dir, and afterwards in the test. A log that is an
	// io.Closer is closed. The adapter's TestMain must call ChildMain with the
	// same function.
	Crash func(dir string) (eventlog.Log, error)

	// LoseAck makes the next append through log end as if its answer had been
	// lost: the request itself arrives (AfterCommit) or does not (BeforeCommit).
	LoseAck func(t testing.TB, log eventlog.Log, loss Loss)

	// CutRead makes the next read through log fail after it has yielded that
	// many events, or some fewer. The read after it works again.
	CutRead func(t testing.TB, log eventlog.Log, after int)

	// Patience bounds the time that a case waits for what must happen. It is
	// not spent where all is well. The zero value means 30 seconds.
	Patience time.Duration
}

// Loss is where the answer to an append is lost.
type Loss int

const (
	BeforeCommit Loss = iota + 1 // nothing was recorded
	AfterCommit                  // everything was recorded
)

// capability names an optional field of Backend; none is what Open alone gives.
type capability string

const (
	none    capability = ""
	reopen  capability = "Reopen"
	second  capability = "Second"
	crash   capability = "Crash"
	loseAck capability = "LoseAck"
	cutRead capability = "CutRead"
)

func (b Backend) has(c capability) bool {
	switch c {
	case reopen:
		return b.Reopen != nil
	case second:
		return b.Second != nil
	case crash:
		return b.Crash != nil
	case loseAck:
		return b.LoseAck != nil
	case cutRead:
		return b.CutRead != nil
	default:
		return true
	}
}
