//go:build unix

package poll_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// The child that is killed gets its log and its Bot API in the environment, and
// whether it dies before or behind the append.
const (
	doomedLog    = "LEADONCE_TEST_DOOMED_LOG"
	doomedAPI    = "LEADONCE_TEST_DOOMED_API"
	doomedBefore = "LEADONCE_TEST_DOOMED_BEFORE"
)

// T21 for those without a webhook: the process dies between the append and the
// offset that confirms, and right before an append. Nothing is lost, nothing doubled.
func TestT21_KilledBetweenAppendAndConfirmation(t *testing.T) {
	if path := os.Getenv(doomedLog); path != "" {
		dieAtTheThird(t, path)
		return
	}
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprintf("before the append %t", before), func(t *testing.T) {
			api, err := botapitest.New(token, botapitest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(api.Close)
			s := sceneOn(t, openSQLite(t, logFile(t)), api)
			var ids []int64
			for range 5 {
				ids = append(ids, s.push(77)) // one chat: they are stored in their order
			}
			path := logFile(t)
			kill(t, path, api.URL, before)
			if n := len(api.Pending()); n != 5 {
				t.Fatalf("%d updates wait, want all 5: none was confirmed", n)
			}
			s = sceneOn(t, openSQLite(t, path), api)
			known := 3
			if before {
				known = 2
			}
			s.wantStored(ids[:known]...)
			s.start()
			s.awaitConfirmed()
			s.stop()
			s.wantStored(ids...)
			if d, n := s.count(telegram.Duplicate), s.count(telegram.Stored); d != known || n != 5-known {
				t.Errorf("%d duplicates and %d new, want %d and %d", d, n, known, 5-known)
			}
			s.work()
			s.crm.want(t, 5)
		})
	}
}

func kill(t *testing.T, path, api string, before bool) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestT21_", "-test.count=1")
	child.Env = append(os.Environ(), doomedLog+"="+path, doomedAPI+"="+api)
	if before {
		child.Env = append(child.Env, doomedBefore+"=1")
	}
	output, err := child.CombinedOutput()
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v, want SIGKILL; it said: %s", err, output)
	}
}

// dieAtTheThird is the child: it polls, and kills itself at its third update.
func dieAtTheThird(t *testing.T, path string) {
	s := sceneOn(t, openSQLite(t, path), &botapitest.Server{URL: os.Getenv(doomedAPI)})
	var appends atomic.Int64
	die := func(stream string) error {
		if !strings.HasPrefix(stream, "update-") || appends.Add(1) < 3 {
			return nil
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			panic(err)
		}
		select {} // until the signal is there
	}
	if os.Getenv(doomedBefore) != "" {
		s.log.set(die, nil)
	} else {
		s.log.set(nil, die)
	}
	s.start()
	s.await("the end", func() bool { return false })
}
