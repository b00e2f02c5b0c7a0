package crmtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// scene is what a case acts on: a connector of its own on a wire of its own.
type scene struct {
	ctx       context.Context
	subject   Subject
	name      string
	wire      *wire
	connector crm.Connector

	mu       sync.Mutex // guards findings
	findings []Finding
}

func (s *scene) open() (err error) {
	if s.wire, err = openWire(s.subject); err != nil {
		return err
	}
	s.connector, err = s.subject.Connect(s.wire.url())
	return err
}

func (s *scene) close() {
	if s.wire != nil {
		s.wire.close()
	}
}

func (s *scene) found(rule Rule, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings = append(s.findings, Finding{rule, s.name, fmt.Sprintf(format, args...)})
}

// newID is an operation id that no other case or run has.
func newID() string { return "crmtest-" + rand.Text() }

// create makes one create and holds its result against what always holds.
func (s *scene) create(id string, within time.Duration) (crm.Receipt, error) {
	began := s.wire.creates()
	receipt, err := s.send(id, within)
	if n := s.wire.creates() - began; n > 1 {
		s.found(C1, "one Create put %d requests on the wire", n)
	}
	return receipt, err
}

// send is create without counting, for creates at the same time.
func (s *scene) send(id string, within time.Duration) (crm.Receipt, error) {
	ctx, cancel := context.WithTimeout(s.ctx, max(within, 0)+s.subject.Patience)
	defer cancel()
	op := crm.Operation{ID: id, Fields: s.subject.Fields, Made: s.subject.Made, Deadline: time.Now().Add(within)}
	receipt, err := s.connector.Create(ctx, op)
	if ctx.Err() != nil {
		s.found(C2, "Create was still busy %s after its deadline", s.subject.Patience)
	}
	s.checkError(err)
	if err == nil && receipt.CRMID == "" {
		s.found(C3, "Create answered success without the lead's id")
	}
	var classified *crm.Error
	if err != nil && !errors.As(err, &classified) {
		s.found(C3, "Create failed without a *crm.Error: %T", err)
	}
	return receipt, err
}

func (s *scene) find(id string) ([]crm.Receipt, error) {
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.subject.Patience)
	defer cancel()
	receipts, err := s.connector.Find(ctx, id, time.Now().Add(s.subject.Patience))
	s.checkError(err)
	for _, r := range receipts {
		if r.CRMID == "" {
			s.found(C5, "Find answered a lead without an id")
		}
	}
	return receipts, err
}

// checkError looks for what no error may hold.
func (s *scene) checkError(err error) {
	if err == nil {
		return
	}
	for _, secret := range s.subject.Secrets {
		if secret != "" && strings.Contains(err.Error(), secret) {
			s.found(C6, "an error holds a secret")
		}
	}
	for name, value := range s.subject.Fields {
		if value != "" && strings.Contains(err.Error(), value) {
			s.found(C6, "an error holds the lead's field %s", name)
		}
	}
}

// wantOutcome holds a create's error against the outcome that is proven.
func (s *scene) wantOutcome(want crm.Outcome, receipt crm.Receipt, err error) {
	if err == nil {
		s.found(C3, "the create was taken for done, lead %q; want the outcome %q", receipt.CRMID, want)
		return
	}
	if got := crm.Classify(err); got.Outcome != want {
		s.found(C3, "the outcome is %q (%s), want %q", got.Outcome, got.Reason, want)
	}
}

// leads are the operation's, as the sandbox has them.
func (s *scene) leads(id string) []string {
	ctx, cancel := context.WithTimeout(s.ctx, s.subject.Patience)
	defer cancel()
	leads, err := s.subject.Sandbox.Leads(ctx, id)
	if err != nil {
		s.found(CLASS, "the sandbox cannot be read: %v", err)
	}
	return leads
}
