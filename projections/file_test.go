package projections_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog/memory"
	"github.com/leadonce/leadonce/projections"
)

// aLog has a few finished jobs.
func aLog(t *testing.T, jobs int) *scribe {
	t.Helper()
	w := &scribe{log: memory.New(), now: epoch}
	for i := range jobs {
		w.finish(t, w.receive(t, message(7, int64(i), "text")))
	}
	return w
}

// rebuiltDump is what a file that was fed the whole log has.
func rebuiltDump(t *testing.T, w *scribe) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wanted.db")
	s := openAt(t, path)
	must(t, s.Rebuild(t.Context(), w.log, nil))
	must(t, s.Close())
	return dump(t, path)
}

func checkDump(t *testing.T, path, want string) {
	t.Helper()
	if got := dump(t, path); got != want {
		t.Errorf("the models differ from rebuilt ones, %s", firstDifference(want, got))
	}
}

// resets collects what Options.Reset hears.
func resets(into *[]string) projections.Options {
	return projections.Options{Reset: func(reason string) { *into = append(*into, reason) }}
}

// TestADeletedFileIsMadeAgain: no job is lost (T85).
func TestADeletedFileIsMadeAgain(t *testing.T) {
	w := aLog(t, 50)
	path := filepath.Join(t.TempDir(), "models", "models.db")
	s := openAt(t, path)
	must(t, s.CatchUp(t.Context(), w.log, nil))
	must(t, s.Close())
	must(t, os.Remove(path))

	s = openAt(t, path)
	lag, err := s.Behind(t.Context(), w.log)
	must(t, err)
	if first := readLog(t, w.log)[0]; !lag.Behind || !lag.Since.Equal(first.Time) {
		t.Errorf("an empty file is behind by %+v, want since %s", lag, first.Time)
	}
	must(t, s.CatchUp(t.Context(), w.log, nil))
	checkDump(t, path, rebuiltDump(t, w))
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %o, want 600", info.Mode().Perm())
	}
}

// TestBehindNamesTheOldestMissingEvent, and only one of a job's stream.
func TestBehindNamesTheOldestMissingEvent(t *testing.T) {
	w := aLog(t, 3)
	s := openAt(t, filepath.Join(t.TempDir(), "models.db"))
	must(t, s.CatchUp(t.Context(), w.log, nil))
	at, err := s.Checkpoint(t.Context())
	must(t, err)
	w.append(t, "orders-1", "Ordered", nil)
	lag, err := s.Behind(t.Context(), w.log)
	must(t, err)
	tail, err := w.log.Tail(t.Context())
	must(t, err)
	if lag.Behind || lag.Checkpoint != at.Position || lag.Tail != tail || tail == at.Position {
		t.Errorf("behind an event of another stream by %+v, want not", lag)
	}
	w.receive(t, message(7, 100, "text"))
	since := w.now
	w.receive(t, message(7, 101, "text"))
	if lag, err = s.Behind(t.Context(), w.log); err != nil || !lag.Behind || !lag.Since.Equal(since) {
		t.Errorf("behind by %+v (%v), want since %s", lag, err, since)
	}
}

// TestACheckpointOfAnotherLogWipes, and says so.
func TestACheckpointOfAnotherLogWipes(t *testing.T) {
	for name, write := range map[string]func(*testing.T) *scribe{
		"another log": func(t *testing.T) *scribe {
			w := aLog(t, 0)
			w.events = 1000
			w.receive(t, message(8, 1, "text"))
			return w
		},
		"an older state": func(t *testing.T) *scribe { return aLog(t, 10) },
		"an empty log":   func(t *testing.T) *scribe { return aLog(t, 0) },
		"another event in its place": func(t *testing.T) *scribe {
			w := aLog(t, 19)
			w.events += 1000
			w.finish(t, w.receive(t, message(7, 19, "text")))
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "models.db")
			var reasons []string
			s := openWith(t, path, resets(&reasons))
			must(t, s.CatchUp(t.Context(), aLog(t, 20).log, nil))
			if len(reasons) != 0 {
				t.Fatalf("wiped at first: %q", reasons)
			}
			other := write(t)
			must(t, s.CatchUp(t.Context(), other.log, nil))
			if len(reasons) != 1 || !strings.Contains(reasons[0], "not in this log") {
				t.Errorf("the resets are %q, want one", reasons)
			}
			checkDump(t, path, rebuiltDump(t, other))
		})
	}
}

// TestAFileOfAnotherVersionIsWiped when it is opened, also one whose tables this
// release cannot read.
func TestAFileOfAnotherVersionIsWiped(t *testing.T) {
	w := aLog(t, 20)
	path := filepath.Join(t.TempDir(), "models.db")
	s := openAt(t, path)
	must(t, s.CatchUp(t.Context(), w.log, nil))
	must(t, s.Close())
	execute(t, path, "PRAGMA user_version = 77; DROP TABLE duplicates; ALTER TABLE checkpoints RENAME TO progress")

	var reasons []string
	s = openWith(t, path, resets(&reasons))
	if len(reasons) != 1 || !strings.Contains(reasons[0], "version 77") {
		t.Errorf("the resets are %q, want one that names version 77", reasons)
	}
	must(t, s.CatchUp(t.Context(), w.log, nil))
	must(t, s.Close())
	checkDump(t, path, rebuiltDump(t, w))
}

// TestAFeederStopsWhenAnotherReleaseTookTheFile, and does not take it back.
func TestAFeederStopsWhenAnotherReleaseTookTheFile(t *testing.T) {
	w := aLog(t, 3)
	path := filepath.Join(t.TempDir(), "models.db")
	s := openAt(t, path)
	must(t, s.CatchUp(t.Context(), w.log, nil))
	execute(t, path, "PRAGMA user_version = 77")
	w.receive(t, message(7, 100, "text"))
	if err := s.CatchUp(t.Context(), w.log, nil); !errors.Is(err, projections.ErrOtherVersion) {
		t.Errorf("catching up gave %v, want %v", err, projections.ErrOtherVersion)
	}
	if err := s.CatchUp(t.Context(), memory.New(), nil); !errors.Is(err, projections.ErrOtherVersion) {
		t.Errorf("wiping gave %v, want %v", err, projections.ErrOtherVersion)
	}
	if err := s.Rebuild(t.Context(), w.log, nil); !errors.Is(err, projections.ErrOtherVersion) {
		t.Errorf("rebuilding gave %v, want %v", err, projections.ErrOtherVersion)
	}
}

// TestATypeThatBecameKnownWipes: the jobs that stopped at it go on.
func TestATypeThatBecameKnownWipes(t *testing.T) {
	w := aLog(t, 3)
	w.append(t, w.jobs[1].key.Stream(), "LeadGuessed.v1", []byte(`{}`))
	path := filepath.Join(t.TempDir(), "models.db")
	var reasons []string
	s := openWith(t, path, resets(&reasons))
	must(t, s.CatchUp(t.Context(), w.log, nil))
	must(t, s.CatchUp(t.Context(), w.log, nil))
	if len(reasons) != 0 {
		t.Fatalf("wiped for a type that is still unknown: %q", reasons)
	}
	execute(t, path, "UPDATE jobs SET stopped_type = 'LeadAbsent.v1' WHERE stopped_unknown")
	must(t, s.CatchUp(t.Context(), w.log, nil))
	if len(reasons) != 1 || !strings.Contains(reasons[0], "LeadAbsent.v1") {
		t.Errorf("the resets are %q, want one that names the type", reasons)
	}
	checkDump(t, path, rebuiltDump(t, w))
}

// TestADamagedFileNamesTheMend, and the mend works.
func TestADamagedFileNamesTheMend(t *testing.T) {
	w := aLog(t, 300)
	for name, damage := range map[string]func([]byte) []byte{
		"no database": func([]byte) []byte { return []byte(strings.Repeat("This is no database. ", 100)) },
		"broken page": func(raw []byte) []byte { copy(raw[len(raw)/2:], strings.Repeat("x", len(raw)/4)); return raw },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "models.db")
			s := openAt(t, path)
			must(t, s.CatchUp(t.Context(), w.log, nil))
			must(t, s.Close())
			raw, err := os.ReadFile(path)
			must(t, err)
			broken := damage(raw)
			must(t, os.WriteFile(path, broken, 0o600))

			err = readEverything(t, path)
			if !errors.Is(err, projections.ErrDamaged) || !strings.Contains(err.Error(), "leadonce projections rebuild") ||
				!strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("a damaged file gives %v, want one line that names it and the mend", err)
			}
			var reasons []string
			opts := resets(&reasons)
			opts.SetAside = true
			s = openWith(t, path, opts)
			must(t, s.Rebuild(t.Context(), w.log, nil))
			must(t, s.Close())
			checkDump(t, path, rebuiltDump(t, w))
			if kept, err := os.ReadFile(path + ".damaged"); err != nil || string(kept) != string(broken) {
				t.Errorf("the damaged file is not kept as it was: %v", err)
			}
			if len(reasons) != 1 {
				t.Errorf("the resets are %q, want one", reasons)
			}
		})
	}
}

func readEverything(t *testing.T, path string) error {
	s, err := projections.Open(t.Context(), path, projections.Options{})
	if err != nil {
		return err
	}
	_, err = s.Jobs(t.Context(), projections.Filter{Text: "no such", Limit: 1000})
	return errors.Join(err, s.Close())
}

// TestASoundFileIsNotSetAside.
func TestASoundFileIsNotSetAside(t *testing.T) {
	w := aLog(t, 3)
	path := filepath.Join(t.TempDir(), "models.db")
	s := openAt(t, path)
	must(t, s.CatchUp(t.Context(), w.log, nil))
	must(t, s.Close())
	s = openWith(t, path, projections.Options{SetAside: true})
	must(t, s.Close())
	checkDump(t, path, rebuiltDump(t, w))
	if _, err := os.Stat(path + ".damaged"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a sound file was set aside (%v)", err)
	}
}

// TestADatabaseOfAnotherApplicationIsLeftAlone.
func TestADatabaseOfAnotherApplicationIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	execute(t, path, "CREATE TABLE jobs (a); INSERT INTO jobs VALUES (1)")
	before, err := os.ReadFile(path)
	must(t, err)
	_, err = projections.Open(t.Context(), path, projections.Options{SetAside: true})
	if err == nil || errors.Is(err, projections.ErrDamaged) || !strings.Contains(err.Error(), "another application") {
		t.Errorf("opening it gave %v, want a refusal", err)
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if string(before) != string(after) {
		t.Error("the other application's file has changed")
	}
}

func execute(t *testing.T, path, script string) {
	t.Helper()
	db := sqlOpen(t, path)
	_, err := db.Exec(script)
	must(t, errors.Join(err, db.Close()))
}
