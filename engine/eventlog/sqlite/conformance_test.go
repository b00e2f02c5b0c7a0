package sqlite

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
)

// broken is a log on a disk that can fail.
type broken struct {
	*Log
	disk *disk

	mu   sync.Mutex
	lost error // the answer to the next COMMIT, once
}

func (b *broken) loseAck() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.lost
	b.lost = nil
	return err
}

func openBroken(t testing.TB, path string) *broken {
	b := &broken{disk: newDisk(t)}
	b.Log = open(t, path, Options{vfs: b.disk.name, loseAck: b.loseAck, PollInterval: 5 * time.Millisecond})
	return b
}

func TestConformance(t *testing.T) {
	eventlogtest.Run(t, eventlogtest.Backend{
		Open: func(t testing.TB) eventlog.Log {
			return openBroken(t, filepath.Join(t.TempDir(), "log.db"))
		},
		Reopen: func(t testing.TB, log eventlog.Log) eventlog.Log {
			b := log.(*broken)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			return openBroken(t, b.path)
		},
		Second: func(t testing.TB, log eventlog.Log) eventlog.Log {
			return openBroken(t, log.(*broken).path)
		},
		Crash: openIn,
		LoseAck: func(t testing.TB, log eventlog.Log, loss eventlogtest.Loss) {
			b := log.(*broken)
			if loss == eventlogtest.BeforeCommit {
				b.disk.walSyncFailsOnce.Store(sqlite3.SQLITE_IOERR_FSYNC)
				return
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.lost = errors.New("the answer to COMMIT was lost")
		},
		CutRead: func(t testing.TB, log eventlog.Log, after int) {
			// A page is read in one go, so the cut comes before its first event.
			log.(*broken).disk.lockFailsOnce.Store(sqlite3.SQLITE_IOERR_SHMLOCK)
		},
	})
}
