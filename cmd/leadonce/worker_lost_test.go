package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// T82: all workers die holding claims, and a process that knows nothing of them
// goes on by the lease's time.
func TestT82AllWorkersDieHoldingClaims(t *testing.T) {
	t.Parallel()
	const updates = 6
	s := newSite(t, "idempotency_key", 2*time.Second)
	s.suspend(s.crm) // it answers when both are dead
	first, second := s.serve(), s.serve()
	for id := int64(1); id <= updates; id += 2 {
		s.deliver(first, id)
		s.deliver(second, id+1)
	}
	eventually(t, func() error {
		text, _ := first.output()
		more, _ := second.output()
		if got := strings.Count(text+more, "msg=JobClaimed"); got != updates {
			return fmt.Errorf("%d claims, want %d", got, updates)
		}
		return nil
	})
	first.kill()
	second.kill()
	for id, j := range s.jobs() {
		if j.Phase != "claimed" {
			t.Fatalf("update %d is %s before its claim could expire", id, j.Phase)
		}
	}
	s.crm.signal(resumed)
	third := s.serve()
	s.account(updates)
	for id, j := range s.jobs() {
		if j.Attempts != 2 {
			t.Errorf("update %d took %d attempts, want 2", id, j.Attempts)
		}
	}
	s.terminate(third.program)
}

// T80: a worker is paused in the middle of its call for longer than its lease.
func TestT80PausedInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	s := newSite(t, "lookup", time.Second)
	s.script("hang_then_apply")
	paused := s.serve()
	s.deliver(paused, 1)
	eventually(t, func() error { return s.requested(1) })
	s.suspend(paused.program)
	other := s.serve()
	s.await(other.program, "LeadConfirmed.*update_id=1 ")
	paused.signal(resumed)
	s.deliver(paused, 2) // it works again
	s.account(2)
	s.terminate(paused.program)
	s.terminate(other.program)
}

// T80, with the answer in hand: another process has given the claim up for lost
// when the worker comes to record its lead. The receipt is kept.
func TestT80PausedWithTheReceiptInHand(t *testing.T) {
	t.Parallel()
	s := newSite(t, "none", 2*time.Second)
	paused := s.serve()
	s.suspend(s.crm) // until the log is locked
	s.deliver(paused, 1)
	s.await(paused.program, "JobClaimed")
	release := s.lock()
	s.crm.signal(resumed)
	s.await(paused.program, "CRM called.*outcome=answered")
	s.suspend(paused.program)
	release()
	other := s.serve()
	s.await(other.program, "ReconciliationNeeded.*update_id=1 ")
	paused.signal(resumed)
	s.await(paused.program, "LeadConfirmed.*update_id=1 ")
	s.account(1)
	if j := s.jobs()[1]; j.How != "late response" {
		t.Errorf("the lead is known by %q, want the late response", j.How)
	}
	s.terminate(paused.program)
	s.terminate(other.program)
}

// lock holds the log's write lock until release.
func (s *site) lock() (release func()) {
	s.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(s.dir, "data", logFile))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err == nil {
		_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return func() {
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		conn.Close()
		db.Close()
		if err != nil {
			s.t.Error(err)
		}
	}
}

// requested is an error unless the CRM has had n requests, answered or not.
func (s *site) requested(n int) error {
	var stats struct{ Requests int }
	_, body, err := get(s.crmURL + "/oracle/stats")
	if err == nil {
		err = json.Unmarshal([]byte(body), &stats)
	}
	if err == nil && stats.Requests < n {
		err = fmt.Errorf("%d requests, want %d", stats.Requests, n)
	}
	return err
}

// T02 and T06: two processes serve one log. The same updates come to both at the
// same moment, and one of the two goes away in the middle.
func TestT06TwoProcessesOnOneLog(t *testing.T) {
	t.Parallel()
	const updates = 30
	s := newSite(t, "none", brief)
	stays, goes := s.serve(), s.serve()
	for id := range int64(updates) {
		if id == updates/2 {
			s.terminate(goes.program)
		}
		var both sync.WaitGroup
		for _, v := range []server{stays, goes} {
			both.Go(func() {
				status, err := post(v.url, secret, message(id+1))
				if v == stays && (err != nil || status != http.StatusOK) {
					t.Errorf("update %d: status %d, %v", id+1, status, err)
				}
			})
		}
		both.Wait()
	}
	s.account(updates)
	for id, j := range s.jobs() {
		if want := 1; id <= updates/2 && j.Repeats != want {
			t.Errorf("update %d was noted as repeated %d times, want %d", id, j.Repeats, want)
		}
	}
	s.terminate(stays.program)
}
