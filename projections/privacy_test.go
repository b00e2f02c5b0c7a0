package projections_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

// TestNoMessageTextInTheFile looks at the raw bytes, also of the journal, and of
// the second set of tables that a rebuild leaves on free pages.
func TestNoMessageTextInTheFile(t *testing.T) {
	const secret = "Zyxomma-petiolatum"
	w := scribe{log: memory.New(), now: epoch}
	for i := range 200 {
		s := w.receive(t, message(7, int64(i), "call me, "+secret))
		if i%2 == 0 {
			w.finish(t, s)
		}
	}
	w.append(t, "update-7-1", "UpdateReceived.v1", []byte(`{"update":"`+secret))
	w.append(t, "update-7-3", "JobClaimed.v1", []byte(`{"lease_until":"`+secret+`"}`))
	w.append(t, "update-7-5", "UpdateReceived.v7", []byte(`{"update":"`+secret+`"}`))
	path := filepath.Join(t.TempDir(), "models.db")
	s := openAt(t, path)
	must(t, s.CatchUp(t.Context(), w.log, nil))
	must(t, s.Rebuild(t.Context(), w.log, nil))

	// The journal is read now, while it is there; the file itself when it is
	// closed, because reading it would drop this process's locks.
	checkBytes(t, path+"-wal", secret)
	must(t, s.Close())
	checkBytes(t, path, secret)
}

func checkBytes(t *testing.T, path, secret string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Contains(raw, []byte("telegram/7/199")) {
		t.Errorf("%s has no event key: these are not the bytes that were meant", path)
	}
	for _, word := range []string{secret, "call me", "Ada"} {
		if bytes.Contains(raw, []byte(word)) {
			t.Errorf("%s has %q", path, word)
		}
	}
}
