package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// kurrentFaults is the weather on the way to the log: the share of appends, reads and
// subscriptions that lose their answer, do not arrive, arrive late, are told to come
// again, break off, or fall silent.
const kurrentFaults = "appendlost=0.03,appendcut=0.02,appendnotindexed=0.02:300ms,appendnotready=0.01,appendhang=0.003,appendlate=0.005:200ms," +
	"readcut=0.01,readunavailable=0.01,readhang=0.001,subscribestall=0.1,subscribedrop=0.1,subscribecut=0.1,subscribecheckpoint=0.1"

// chaos is how much of it there is: for each class of CRM, updates and SIGKILLs. A run
// lasts 12 s at least, in which the kills are spread.
type chaos struct {
	classes        []string
	updates, kills int
	restarts       int // of the log's server
}

// TestManyProcessesOverKurrentDB: two processes that accept and two that make leads
// over one log server, which breaks off, is killed and comes back, while they are
// killed themselves. The account is the CRM's journal. LEADONCE_CHAOS=all does it
// with every class, and 600 updates and a kill every 200 ms for each.
func TestManyProcessesOverKurrentDB(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	c := chaos{[]string{"lookup"}, 60, 20, 1}
	if os.Getenv("LEADONCE_CHAOS") == "all" {
		c = chaos{[]string{"idempotency_key", "upsert", "unique_create", "lookup", "none"}, 600, 60, 2}
	} else {
		t.Parallel()
	}
	exe := buildLogServer(t)
	for _, class := range c.classes {
		t.Run(class, func(t *testing.T) { c.run(t, exe, class) })
	}
}

func (c chaos) run(t *testing.T, exe, class string) {
	s := &site{t: t, dir: t.TempDir()}
	log := newLogServer(s, exe)
	s.env = []string{"LEADONCE_LOG=kurrentdb", "LEADONCE_KURRENTDB_CONNECTION=esdb://" + log.address + "?tls=false"}
	ctx, cancel := context.WithCancel(t.Context())
	restarted := make(chan error, 1)
	go func() { restarted <- log.restart(ctx, c.restarts) }()
	status, out, failure := s.run("demo", "--class", class, "--processes", "2",
		"--updates", strconv.Itoa(c.updates), "--kills", strconv.Itoa(c.kills))
	cancel()
	if err := <-restarted; err != nil {
		t.Errorf("the log's server was not restarted as it should: %v", err)
	}
	if status != 0 {
		t.Fatalf("exit status %d\n%s%s", status, out, failure)
	}
	row := regexp.MustCompile(`(?m)^ +` + class + ` +(\d+) +(\d+) +\d+ +\d+ +(\d+) +\d+ +\d+ +(\d+) +0 +0$`).FindStringSubmatch(out)
	if row == nil || row[1] != strconv.Itoa(c.updates) || row[2] != row[1] || row[3] == "0" || row[4] != strconv.Itoa(c.kills) {
		t.Errorf("the account is not that of %d updates, %d kills and no loss:\n%s", c.updates, c.kills, out)
	}
	t.Logf("%s", row)
}

func buildLogServer(t testing.TB) (exe string) {
	t.Helper()
	exe = filepath.Join(t.TempDir(), "kurrentdbtest")
	build := exec.Command("go", "build", "-o", exe, "github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest/cmd/kurrentdbtest")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return exe
}

// logServer is the double of KurrentDB as a process, and those that follow it.
type logServer struct {
	exe, dir, address string
	process           *program
}

func newLogServer(s *site, exe string) *logServer {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	server := &logServer{exe: exe, dir: s.dir, address: address}
	if err := server.start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { server.process.kill() })
	return server
}

// home is a log on the server.
func (l *logServer) home() home {
	connection := "esdb://" + l.address + "?tls=false"
	return home{"kurrentdb:moved@" + connection, []string{
		"--log", logKurrentDB, "--kurrentdb-connection", connection, "--kurrentdb-namespace", "moved", "--data-dir", "moved",
	}}
}

func (l *logServer) start() (err error) {
	l.process, err = launch(l.dir, own(), l.exe, "--listen", l.address, "--data", "log.jsonl", "--faults", kurrentFaults, "--commit-timeout", "300ms")
	if err == nil {
		_, err = l.process.await(regexp.QuoteMeta(l.address))
	}
	return err
}

// restart kills the server that often, each time some seconds after it came up.
func (l *logServer) restart(ctx context.Context, times int) error {
	for n := range times {
		pause(ctx, 4*time.Second)
		if ctx.Err() != nil {
			return fmt.Errorf("after %d of %d times it was over", n, times)
		}
		l.process.kill()
		pause(ctx, 500*time.Millisecond)
		if err := l.start(); err != nil {
			return err
		}
	}
	return nil
}
