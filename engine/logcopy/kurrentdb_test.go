package logcopy_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb"
	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

func openKurrentDB(t *testing.T, server *kurrentdbtest.Server) eventlog.Log {
	t.Helper()
	log, err := kurrentdb.Open(t.Context(), kurrentdb.Config{Connection: server.ConnectionString(), SettleTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// From SQLite to KurrentDB, on with events of its own, and back to where they
// came from, while requests and answers get lost.
func TestThereAndBack(t *testing.T) {
	server := kurrentdbtest.Start(t, kurrentdbtest.Options{}) // 1 MiB an append
	old, cluster := openSQLite(t), openKurrentDB(t, server)
	for i := range 120 {
		e := event(i)
		if i%20 == 0 {
			e.Data = bytes.Repeat([]byte("x"), 300<<10)
		}
		must(t, old, fmt.Sprintf("update-1-%d", i/4%9), e)
	}
	for _, p := range []kurrentdbtest.Point{
		kurrentdbtest.AppendLost, kurrentdbtest.AppendCut, kurrentdbtest.AppendNotReady, kurrentdbtest.ReadCut, kurrentdbtest.ReadUnavailable,
	} {
		server.Inject(kurrentdbtest.Fault{Point: p, Probability: 0.05, After: 3})
	}
	if _, err := copyAll(t.Context(), old, cluster); err != nil {
		t.Fatal(err)
	}
	server.ClearFaults()
	equal(t, old, cluster)

	must(t, cluster, "update-1-0", event(500))
	must(t, cluster, "operation-x", event(501))
	must(t, cluster, "reply-1-0", event(502))
	must(t, cluster, "bot-1", event(503))
	server.Inject(kurrentdbtest.Fault{Point: kurrentdbtest.ReadCut, Probability: 0.3, After: 40})
	counts, err := copyAll(t.Context(), cluster, old)
	if err != nil || counts.Events != 124 || counts.Found != 120 {
		t.Errorf("counts %+v, error %v; want 124 events, 120 of them found", counts, err)
	}
	server.ClearFaults()
	equal(t, cluster, old)
	if counts, err := copyAll(t.Context(), cluster, memory.New()); err != nil || counts.Events != 124 {
		t.Errorf("counts %+v, error %v", counts, err)
	}
}
