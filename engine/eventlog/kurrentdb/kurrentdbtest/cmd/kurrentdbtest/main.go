// Command kurrentdbtest serves the test double of KurrentDB for tests with
// several processes. It is no database.
//
// It prints one line, its address, when it is ready. SIGTERM ends it; SIGKILL
// loses nothing that was answered, if --data is given.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog/kurrentdb/kurrentdbtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kurrentdbtest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("kurrentdbtest", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:2113", "address to serve on; it must be of the loopback interface")
	data := flags.String("data", "", "file that keeps the log; empty: in memory only")
	faults := flags.String("faults", "", "points and probabilities, as in appendlost=0.01,appendnotindexed=0.02:300ms")
	seed := flags.Uint64("seed", 1, "seed of the probabilities")
	commitTimeout := flags.Duration("commit-timeout", 2*time.Second, "how long an append waits to be indexed")
	maxAppend := flags.Int("max-append-size", 8<<20, "bytes that one append may have")
	if err := flags.Parse(args); err != nil {
		return err
	}
	list, err := kurrentdbtest.ParseFaults(*faults)
	if err != nil {
		return err
	}
	l, err := listenOnLoopback(*listen)
	if err != nil {
		return err
	}
	server, err := kurrentdbtest.New(kurrentdbtest.Options{DataFile: *data, Seed: *seed, CommitTimeout: *commitTimeout, MaxAppendSize: *maxAppend})
	if err != nil {
		return err
	}
	for _, f := range list {
		server.Inject(f)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Fprintln(out, l.Addr())
	select {
	case err := <-served:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
		err := server.Close()
		<-served // it fails when it was told to stop before it began
		return err
	}
}

// listenOnLoopback refuses other interfaces: nothing guards this server.
func listenOnLoopback(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		_ = l.Close()
		return nil, fmt.Errorf("listen on %s: a test double serves on loopback only, such as 127.0.0.1:2113", address)
	}
	return l, nil
}
