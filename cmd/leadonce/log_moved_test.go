package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A running system moves to another log as MIGRATION.md says, and back, while
// updates are delivered as Telegram does: none is lost, and none is doubled.
func TestMovedToAnotherLog(t *testing.T) {
	t.Parallel()
	exe := buildLogServer(t)
	for _, c := range []struct{ class, backend string }{{"idempotency_key", logSQLite}, {"lookup", logKurrentDB}} {
		t.Run(c.backend, func(t *testing.T) {
			t.Parallel()
			const updates = 60
			s := newSite(t, c.class, brief, "--faults", "0.2")
			here, there := home{"sqlite:data", []string{"--data-dir", "data"}}, home{"sqlite:moved", []string{"--data-dir", "moved"}}
			if c.backend == logKurrentDB {
				there = newLogServer(s, exe).home()
			}
			var base atomic.Value
			v := s.serve()
			base.Store(v.url)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			delivered := deliverAll(ctx, &base, updates)
			for _, move := range [][2]home{{here, there}, {there, here}} {
				c := s.launch("log", "copy", "--from", move[0].log, "--to", move[1].log, "--follow")
				s.await(c, `at the source's tail`)
				pause(ctx, 200*time.Millisecond)
				s.terminate(v.program)
				s.terminate(c)
				s.sameAudit(move[0], move[1])
				v = s.serve(move[1].flags...)
				base.Store(v.url)
			}
			delivered()
			if ctx.Err() != nil {
				t.Fatal("the updates are not accepted")
			}
			s.account(updates)
			s.terminate(v.program)
		})
	}
}

// home is where a system lives: its log as `log copy` names it, and the flags of the
// other commands.
type home struct {
	log   string
	flags []string
}

// sameAudit demands that nothing is wrong with either log, and that both have
// the same in them.
func (s *site) sameAudit(from, to home) {
	s.t.Helper()
	reports := map[string]string{}
	for _, h := range []home{from, to} {
		status, out, failure := s.run(append([]string{"audit", "verify"}, h.flags...)...)
		if status != 0 || !strings.Contains(out, "nothing is wrong") {
			s.t.Errorf("audit of %s: status %d\n%s%s", h.log, status, out, failure)
		}
		reports[out] = h.log
	}
	if len(reports) != 1 {
		s.t.Error(fmt.Sprint("the audits differ: ", reports))
	}
}
