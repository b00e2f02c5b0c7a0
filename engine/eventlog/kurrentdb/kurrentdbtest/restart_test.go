package kurrentdbtest

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

func TestRestartOnTheSamePort(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		s := Start(t, Options{StatsEvery: -1})
		address := s.Address()
		mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(3)...)
		if err := s.Restart(keeps); err != nil {
			t.Fatal(err)
		}
		want := 0
		if keeps {
			want = 3
		}
		if n := lengthOf(s, "order-1"); s.Address() != address || n != want {
			t.Errorf("kept %v: at %s with %d events, want %s with %d", keeps, s.Address(), n, address, want)
		}
	}
}

func TestStopAndStart(t *testing.T) {
	s := Start(t, Options{})
	mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(1)...)
	s.Stop()
	s.Stop() // does nothing
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil {
		t.Error("a running server started again")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); err == nil {
		t.Error("a running server served on a second listener")
	}
	mustAppend(t, connect(t, s), "order-1", esdb.Revision(0), ids(1)...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil {
		t.Error("a closed server started")
	}
}

// reopen makes another server of the data file, as another process would.
func reopen(t *testing.T, path string) *Server {
	t.Helper()
	return Start(t, Options{DataFile: path, StatsEvery: -1})
}

func TestTheDataFileKeepsTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s := reopen(t, path)
	c := connect(t, s)
	list := ids(3)
	mustAppend(t, c, "order-1", esdb.NoStream{}, list...)
	mustAppend(t, c, "order-2", esdb.NoStream{}, ids(2)...)
	remove(t, c, "order-2")
	if _, err := c.TombstoneStream(soon(t), "order-3", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.NoStream{}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Scavenge(); err != nil {
		t.Fatal(err)
	}
	want, err := readAll(t, c, esdb.ReadAllOptions{From: esdb.Start{}}, 99)
	if err != nil {
		t.Fatal(err)
	}
	// No Stop before: the first process was killed.
	s = reopen(t, path)
	c = connect(t, s)
	got, err := readAll(t, c, esdb.ReadAllOptions{From: esdb.Start{}}, 99)
	if err != nil || toJSON(t, got) != toJSON(t, want) {
		t.Errorf("read %s, %v, want %s", toJSON(t, got), err, toJSON(t, want))
	}
	if w := mustAppend(t, c, "order-1", esdb.NoStream{}, list...); w.NextExpectedVersion != 2 {
		t.Errorf("a repeat answers %d", w.NextExpectedVersion)
	}
	if w := mustAppend(t, c, "order-1", esdb.Revision(2), ids(1)...); w.CommitPosition <= want[len(want)-1].Position.Commit {
		t.Errorf("a new event is at %d, behind the tail", w.CommitPosition)
	}
	if _, err := append1(t, c, "order-3", esdb.Any{}, ids(1)...); codeOf(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("the tombstone answers %v", err)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheDataFileForgetsWhatWasLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s := Start(t, Options{DataFile: path, CommitTimeout: within, StatsEvery: -1})
	c := connect(t, s)
	mustAppend(t, c, "order-1", esdb.NoStream{}, ids(1)...)
	s.Inject(Fault{Point: AppendNotIndexed, Delay: 1 << 40})
	if _, err := append1(t, c, "order-1", esdb.Any{}, ids(2)...); codeOf(err) != esdb.ErrorAborted {
		t.Fatalf("answered %v", err)
	}
	if n, err := s.LoseUnindexed(); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if n := lengthOf(reopen(t, path), "order-1"); n != 1 {
		t.Errorf("%d events came back, want 1", n)
	}
}

func TestATornLineIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s := reopen(t, path)
	mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(1)...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, `{"records":[{"pos":`...), 0o600); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path)
	mustAppend(t, connect(t, s), "order-1", esdb.Revision(0), ids(1)...)
	if n := lengthOf(reopen(t, path), "order-1"); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

func TestADamagedFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("no log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{DataFile: path}); err == nil {
		t.Error("it was taken")
	}
}

func TestRestartWithoutDataEmptiesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s := reopen(t, path)
	mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(5)...)
	if err := s.Restart(false); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, connect(t, s), "order-1", esdb.NoStream{}, ids(1)...)
	want := s.Events()
	if got := reopen(t, path).Events(); len(got) != 1 || !slices.EqualFunc(got, want, func(a, b Event) bool { return a.ID == b.ID && a.Position == b.Position }) {
		t.Errorf("reopened to %v, want %v", got, want)
	}
}
