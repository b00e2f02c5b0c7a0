package main

import (
	"net/http"
	"strings"
	"testing"
)

// One process accepts and makes no leads, another makes leads and accepts nothing,
// over one log.
func TestEachRoleDoesItsHalf(t *testing.T) {
	t.Parallel()
	const updates = 5
	s := newSite(t, "lookup", brief)
	intake := s.serve("--role", "ingress")
	for id := int64(1); id <= updates; id++ {
		s.deliver(intake, id)
	}
	s.terminate(intake.program) // whatever it would have had in hand is finished
	for id, j := range s.jobs() {
		if j.Phase != "pending" {
			t.Errorf("update %d is %s, and only the ingress runs", id, j.Phase)
		}
	}
	worker := s.serve("--role", "worker")
	if status, err := post(worker.url, secret, message(9)); err != nil || status != http.StatusNotFound {
		t.Errorf("a worker answers a delivery with %d (%v), want 404", status, err)
	}
	if _, body, err := get(worker.url + "/telegram/700000001"); err != nil || !strings.Contains(body, "role ingress") {
		t.Errorf("a worker answers a delivery with %q (%v), and not where to send it", body, err)
	}
	s.account(updates)
	intake = s.serve("--role", "ingress")
	s.deliver(intake, updates+1)
	s.account(updates + 1)
	if text, _ := intake.output(); strings.Contains(text, "JobClaimed") {
		t.Error("the ingress has claimed a job")
	}
	s.terminate(intake.program)
	s.terminate(worker.program)
}
