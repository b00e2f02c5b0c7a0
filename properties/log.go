package properties

import (
	"os"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/properties/sim"
)

// CheckLog checks a log backend:
//
//   - it passes the conformance suite, eventlogtest.Run;
//   - the engine over it keeps its promises, for CRMs of every class: drawn plans let
//     processes die at any call and open the log anew (Reopen, and Second where
//     several processes have handles of their own), lose acknowledgements, and let
//     appends arrive late.
//
// As for Run, the TestMain of a backend with Crash calls eventlogtest.ChildMain. The
// suite counts goroutines: let no other test run at the same time.
func CheckLog(t *testing.T, backend eventlogtest.Backend) {
	t.Run("conformance", func(t *testing.T) { eventlogtest.Run(t, backend) })
	t.Run("engine", func(t *testing.T) { searchUnder(t, drawingLogs(t, backend)) })
}

// drawingLogs draws plans for the engine over the backend.
func drawingLogs(t testing.TB, backend eventlogtest.Backend) func(sim.Source) sim.Plan {
	parts := &sim.Parts{Store: func() sim.Store { return openStore(t, backend) }}
	return func(r sim.Source) sim.Plan {
		p := sim.Draw(r, "")
		p.Parts = parts
		return p
	}
}

// store is the backend's log of one run.
type store struct {
	backend eventlogtest.Backend
	scope   *scope
	main    eventlog.Log
	others  map[int]eventlog.Log // by process, where each has a handle of its own
}

func openStore(t testing.TB, backend eventlogtest.Backend) *store {
	s := &store{backend: backend, scope: &scope{TB: t}, others: map[int]eventlog.Log{}}
	s.main = backend.Open(s.scope)
	return s
}

func (s *store) Handle(process int) eventlog.Log {
	if process == 0 || s.backend.Second == nil {
		return s.main
	}
	if s.others[process] == nil {
		s.others[process] = s.backend.Second(s.scope, s.main)
	}
	return s.others[process]
}

// Crash opens the process's handle anew. What its death leaves in the files is the
// conformance suite's to show: a handle cannot be killed without its process.
func (s *store) Crash(process int) {
	switch {
	case process > 0 && s.backend.Second != nil:
		s.others[process] = nil
	case s.backend.Reopen != nil:
		s.main = s.backend.Reopen(s.scope, s.main)
	}
}

func (s *store) Close() { s.scope.close() }

// scope is a test as long as one run: what is to be cleaned up is cleaned up when
// the run ends, and not when hundreds of them have.
type scope struct {
	testing.TB
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) TempDir() string {
	s.Helper()
	dir, err := os.MkdirTemp("", "leadonce-properties-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *scope) close() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
	s.cleanups = nil
}
