//go:build unix

package telegram_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/ingress/telegram"
)

// doomedLog names the log file of the process that T21 kills.
const doomedLog = "LEADONCE_TEST_DOOMED_LOG"

func TestT21_KilledBetweenAppendAndAnswer(t *testing.T) {
	if path := os.Getenv(doomedLog); path != "" {
		dieAfterAppend(t, path)
		return
	}
	path := logFile(t)
	child := exec.Command(os.Args[0], "-test.run=^TestT21_", "-test.count=1")
	child.Env = append(os.Environ(), doomedLog+"="+path)
	output, err := child.CombinedOutput()
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v, want SIGKILL; it said: %s", err, output)
	}
	if strings.Contains(string(output), "answered") {
		t.Fatalf("the child answered: %s", output)
	}
	log := openSQLite(t, path)
	defer log.Close()
	s := newScene(t, setup{log: log})
	s.wantEvents(key(bot, 9021), "UpdateReceived")
	s.want(200, s.deliver(message(9021, text)))
	s.wantResults(telegram.Duplicate)
	s.wantEvents(key(bot, 9021), "UpdateReceived", "DeliveryRepeated")
	s.work()
	s.crm.wantLeads(t, 1)
}

// dieAfterAppend is the child: it delivers to itself and kills itself once the
// append has returned.
func dieAfterAppend(t *testing.T, path string) {
	log, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hooked := &hookedLog{Log: log}
	s := newScene(t, setup{log: hooked})
	hooked.set(nil, func(string) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			panic(err)
		}
		select {} // until the signal is there
	})
	r, err := s.request(http.MethodPost, fmt.Sprintf("/telegram/%d", bot), strings.NewReader(message(9021, text)))
	s.must(err)
	r.Header.Set(telegram.SecretHeader, secret)
	answer, err := client.Do(r)
	fmt.Println("answered", answer, err)
}
