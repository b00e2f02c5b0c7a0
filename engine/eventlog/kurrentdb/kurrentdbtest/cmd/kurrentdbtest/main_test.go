package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
)

// asCommand tells the test's own program to be the command.
const asCommand = "KURRENTDBTEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the command and returns its address.
func start(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(address)
}

func connect(t *testing.T, address string) *esdb.Client {
	t.Helper()
	config, err := esdb.ParseConnectionString("esdb://" + address + "?tls=false")
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = esdb.NoopLogging()
	c, err := esdb.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func add(t *testing.T, c *esdb.Client, n uint64) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var expected esdb.ExpectedRevision = esdb.NoStream{}
	if n > 0 {
		expected = esdb.Revision(n - 1)
	}
	_, err := c.AppendToStream(ctx, "order-1", esdb.AppendToStreamOptions{ExpectedRevision: expected},
		esdb.EventData{EventID: uuid.New(), EventType: "Happened", ContentType: esdb.ContentTypeJson, Data: []byte("{}")})
	return err
}

func TestKilledItLosesNothingThatWasAnswered(t *testing.T) {
	data := filepath.Join(t.TempDir(), "log")
	listen := "127.0.0.1:0"
	var n uint64
	for range 3 {
		cmd, address := start(t, "--listen", listen, "--data", data)
		listen = address
		c := connect(t, address)
		for range 20 {
			if err := add(t, c, n); err != nil {
				t.Fatalf("event %d: %v", n, err)
			}
			n++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
}

func TestTerminatedItEndsWell(t *testing.T) {
	cmd, address := start(t, "--listen", "127.0.0.1:0")
	if err := add(t, connect(t, address), 0); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestFaultsAreInjected(t *testing.T) {
	_, address := start(t, "--listen", "127.0.0.1:0", "--faults", "appenddenied=1")
	if err := add(t, connect(t, address), 0); err == nil {
		t.Error("the append was taken")
	}
}

func TestMistakesAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--faults", "none=1"},
		{"--listen", "0.0.0.0:0"},
		{"--listen", "127.0.0.1:0", "--data", "/"},
	} {
		if err := run(context.Background(), args, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
