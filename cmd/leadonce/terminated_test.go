package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// SIGTERM while the CRM is being called and a delivery is half sent: the call
// is waited for and its lead recorded, the delivery is answered, no job is begun
// any more, and nothing is left ambiguous.
func TestTerminatedInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newSite(t, "none", 2*time.Second)
	s.script("hang_then_apply")
	v := s.serve("--workers", "4")
	s.deliver(v, 1)
	eventually(t, func() error { return s.requested(1) })
	half, finish := s.halfSent(v, 2)
	v.signal(term)
	s.await(v.program, "stopping")
	eventually(t, func() error { return refusesConnections(v) })
	finish()
	answer, err := io.ReadAll(half)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
		t.Errorf("the half-sent delivery is answered %q, %v", answer, err)
	}
	s.ended(v.program)
	if j := s.jobs()[1]; j.Phase != "done" || j.Attempts != 1 {
		t.Errorf("the job in hand is %s behind %d attempts, want done behind 1", j.Phase, j.Attempts)
	}
	if j := s.jobs()[2]; j.Phase != "pending" || j.Attempts != 0 {
		t.Errorf("the job that came last is %s behind %d attempts, want pending behind none", j.Phase, j.Attempts)
	}
	next := s.serve()
	s.account(2)
	s.terminate(next.program)
}

// A delivery that never ends holds up the end no longer than the grace, and the
// call in hand is not cut for it.
func TestTerminatedBesideAStalledDelivery(t *testing.T) {
	t.Parallel()
	s := newSite(t, "none", time.Second)
	s.script("hang_then_apply")
	v := s.serve()
	_, _ = s.halfSent(v, 2)
	s.deliver(v, 1)
	eventually(t, func() error { return s.requested(1) })
	v.signal(term)
	s.ended(v.program)
	jobs := s.jobs()
	if j := jobs[1]; j.Phase != "done" {
		t.Errorf("the job in hand is %s, want done", j.Phase)
	}
	if len(jobs) != 1 {
		t.Errorf("%d jobs, want 1: the other update was never whole", len(jobs))
	}
}

// A second signal ends a process that waits.
func TestTerminatedTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t, "idempotency_key", 1500*time.Millisecond)
	s.script("hang_then_apply")
	v := s.serve()
	s.deliver(v, 1)
	eventually(t, func() error { return s.requested(1) })
	v.signal(term)
	s.await(v.program, "stopping")
	eventually(t, func() error {
		v.signal(term) // the first one may still be at work
		return v.gone()
	})
	if status, err := v.exit(); err != nil || status == 0 {
		t.Errorf("exit status %d, %v; want a signal's", status, err)
	}
	next := s.serve()
	s.account(1)
	s.terminate(next.program)
}

// halfSent sends a delivery but for its last byte, which finish sends.
func (s *site) halfSent(v server, id int64) (net.Conn, func()) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	body := message(id)
	_, err = fmt.Fprintf(conn, "POST /telegram/700000001 HTTP/1.1\r\nHost: x\r\nX-Telegram-Bot-Api-Secret-Token: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n%s",
		secret, len(body), body[:len(body)-1])
	if err != nil {
		s.t.Fatal(err)
	}
	// It comes once the body is being read: from then on the request is under way.
	const underWay = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(underWay))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != underWay {
		s.t.Fatalf("answered %q, %v", got, err)
	}
	return conn, func() {
		if _, err := conn.Write(body[len(body)-1:]); err != nil {
			s.t.Fatal(err)
		}
	}
}

func refusesConnections(v server) error {
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	if err != nil {
		return nil
	}
	return errors.Join(errors.New("it still takes connections"), conn.Close())
}
