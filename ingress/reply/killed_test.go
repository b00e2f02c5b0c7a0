//go:build unix

package reply_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/sqlite"
	"github.com/leadonce/leadonce/engine/job"
	"github.com/leadonce/leadonce/ingress/botapi/botapitest"
	"github.com/leadonce/leadonce/ingress/reply"
)

// The child that is killed gets its log, its Bot API and the place of its death in the
// environment.
const (
	doomedAPI = "LEADONCE_TEST_DOOMED_API"
	doomedAt  = "LEADONCE_TEST_DOOMED_AT"
)

// The places: around the claim, and between the message and its record.
const (
	beforeClaim  = "before the claim"
	behindClaim  = "behind the claim"
	beforeRecord = "before the record"
	behindRecord = "behind the record"
)

// SIGKILL at each place, and another process that goes on: one message at most, and
// none is lost for nothing.
func TestKilledBetweenClaimAndAnswer(t *testing.T) {
	if path := os.Getenv(doomedLog); path != "" {
		replyAndDie(t, path)
		return
	}
	for place, c := range map[string]struct {
		before, messages int
		phase            job.ReplyPhase
	}{
		beforeClaim:  {0, 1, job.ReplyIsSent},
		behindClaim:  {0, 0, job.ReplyIsClaimed},
		beforeRecord: {1, 1, job.ReplyIsClaimed},
		behindRecord: {1, 1, job.ReplyIsSent},
	} {
		t.Run(place, func(t *testing.T) {
			w := newWorld(t)
			w.clock.now = time.Now()
			path := filepath.Join(t.TempDir(), "log.db")
			log := openSQLite(t, path)
			w.log = log
			w.done(1)
			kill(t, path, w.api.URL, place)
			if n := len(w.api.Messages()); n != c.before {
				t.Fatalf("the killed process sent %d messages, want %d", n, c.before)
			}
			for range 2 { // the process that goes on, and its next start
				w.run(w.config())
				w.kept = nil
			}
			if n := len(w.api.Messages()); n != c.messages {
				t.Errorf("%d messages, want %d", n, c.messages)
			}
			w.wantPhase(1, c.phase)
		})
	}
}

func kill(t *testing.T, path, api, place string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKilledBetweenClaimAndAnswer$", "-test.count=1")
	child.Env = append(os.Environ(), doomedLog+"="+path, doomedAPI+"="+api, doomedAt+"="+place)
	output, err := child.CombinedOutput()
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v, want SIGKILL; it said: %s", err, output)
	}
}

// replyAndDie is the child.
func replyAndDie(t *testing.T, path string) {
	everyID.n.Store(1 << 32) // none of those of the parent
	w := &world{T: t, log: openSQLite(t, path), api: &botapitest.Server{URL: os.Getenv(doomedAPI)}, clock: &clock{now: time.Now()}, texts: texts(t, job.LeadMade)}
	c := w.config()
	c.Log = &deadly{Log: w.log, place: os.Getenv(doomedAt)}
	if err := reply.Run(t.Context(), t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// deadly kills its process at an append to a reply.
type deadly struct {
	eventlog.Log
	place   string
	appends int
}

func (l *deadly) Append(ctx context.Context, stream string, expected eventlog.Expected, events ...eventlog.Proposed) (eventlog.Appended, error) {
	if !strings.HasPrefix(stream, job.ReplyStreams) {
		return l.Log.Append(ctx, stream, expected, events...)
	}
	l.appends++
	if l.place == map[int]string{1: beforeClaim, 2: beforeRecord}[l.appends] {
		die()
	}
	appended, err := l.Log.Append(ctx, stream, expected, events...)
	if l.place == map[int]string{1: behindClaim, 2: behindRecord}[l.appends] {
		die()
	}
	return appended, err
}

func die() {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // until the signal is there
}

func openSQLite(t *testing.T, path string) *sqlite.Log {
	t.Helper()
	log, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}
