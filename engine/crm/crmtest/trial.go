package crmtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// trial tries one class of one connector, or of one of its steps.
type trial struct {
	ctx       context.Context
	candidate Candidate
	line      *tap
	class     crm.Class
	step      string
	connector crm.Connector
	about     crm.Description
	made      map[string]string

	efforts []*effort
	last    time.Time // when the newest create had ended
	blind   bool      // the lookup has failed
	shutOut bool      // the CRM refuses whoever sends
	probes  []Probe
	leads   []Lead
}

func newTrial(ctx context.Context, c Candidate, line *tap, class crm.Class, step crm.Step, made map[string]string) *trial {
	return &trial{
		ctx: ctx, candidate: c, line: line, class: class, step: step.Name, connector: step.Connector,
		about: step.Connector.Describe(), made: maps.Clone(made),
	}
}

// effort is one operation, and what is known of its leads.
type effort struct {
	key    string
	fields map[string]string
	began  time.Time
	ids    []string // that creates answered, each once
	found  []string // by the lookup, in the end
	looked bool     // the lookup answered
	most   int      // leads that it may have; normally 1
	failed *crm.Error
	told   *crm.Error // the newest failure that the CRM had a part in, since a receipt
	held   bool       // the connector did not even ask the CRM in the newest create
	status int        // of the CRM's newest answer in it; 0 without one
	unread *crm.Error // a create that the CRM answered 2xx gave no receipt
}

// newKey has the form of the keys that the engine makes, UUIDs of version 5.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// effort begins an operation. Each has a text of its own, for some CRMs refuse a lead
// that looks like another; the key is not in it.
func (t *trial) effort() *effort {
	e := &effort{key: newKey(), fields: maps.Clone(t.candidate.Fields), most: 1}
	e.fields["text"] += " " + rand.Text()
	t.efforts = append(t.efforts, e)
	return e
}

func (t *trial) saw(name string, v Verdict, format string, args ...any) {
	t.probes = append(t.probes, Probe{name, v, fmt.Sprintf(format, args...)})
}

func (t *trial) progress(format string, args ...any) {
	about := "class " + string(t.class)
	if t.step != "" {
		about += ", step " + t.step
	}
	t.candidate.Progress(about + ": " + fmt.Sprintf(format, args...))
}

// note keeps what a create showed. The caller has no other create of e under way.
func (t *trial) note(e *effort, receipt crm.Receipt, err error) {
	t.last = time.Now()
	e.failed, e.held = nil, false
	switch {
	case err != nil:
		e.fail(crm.Classify(err))
	case receipt.CRMID == "":
		e.fail(&crm.Error{Reason: "success without the lead's id"})
	default:
		e.told = nil
		if !slices.Contains(e.ids, receipt.CRMID) {
			e.ids = append(e.ids, receipt.CRMID)
		}
	}
}

// fail notes a failure. That the connector held a create back says nothing about the
// lead, and only that something failed before: so that is told too, and counts.
func (e *effort) fail(f *crm.Error) {
	e.held = f.Outcome == crm.NotSent && e.status == 0
	switch {
	case !e.held:
		e.told, e.failed = f, f
	case e.told == nil:
		e.failed = f
	default:
		e.failed = &crm.Error{Outcome: e.told.Outcome, Reason: e.told.Reason + "; then " + f.Error(), RetryAfter: f.RetryAfter}
	}
}

// send makes one create.
func (t *trial) send(e *effort) (crm.Receipt, error) {
	deadline := time.Now().Add(t.candidate.Patience)
	ctx, cancel := context.WithDeadline(t.ctx, deadline.Add(time.Second))
	defer cancel()
	return t.connector.Create(ctx, crm.Operation{ID: e.key, Fields: e.fields, Deadline: deadline, Made: t.made})
}

// create makes one create whose request meets the reaction, and returns what was on
// the wire.
func (t *trial) create(e *effort, r reaction) (requests []string) {
	if e.began.IsZero() {
		e.began = time.Now()
	}
	t.line.begin(e.key, r)
	receipt, err := t.send(e)
	requests = t.line.end()
	e.status = t.line.status()
	t.note(e, receipt, err)
	return requests
}

// createSurely creates until the outcome is more than "not now": what is not sent or
// not applied is tried again, and what is unknown too where the class allows it.
// e.failed is nil in the end when the lead was answered.
func (t *trial) createSurely(e *effort) (requests []string) {
	patience := time.Now().Add(2 * t.candidate.Patience)
	for unknown, denied := 0, 0; ; {
		requests = t.create(e, pass)
		f := e.failed
		switch {
		case f == nil:
			return requests
		case e.held:
		case f.Outcome == crm.Refused:
			return requests
		case f.Outcome == crm.Unknown:
			if e.status/100 == 2 {
				e.unread = f
			}
			if unknown++; unknown == 3 || !t.about.Class.Repeatable() {
				return requests
			}
		case slices.Contains(denials, e.status):
			if denied++; denied == maxDenied {
				t.shutOut = true
				return requests
			}
		}
		pause := max(f.RetryAfter, 100*time.Millisecond)
		if time.Now().Add(pause).After(patience) || !t.sleep(pause) {
			t.shutOut = denied > 0
			return requests
		}
	}
}

// denials are what a CRM answers to whoever it does not let in, be it to a login or to
// the create, and maxDenied how often that is tried: some lock the account.
var denials = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}

const maxDenied = 3

// createTogether makes creates of one operation whose requests reach the CRM at the
// same moment, and returns how many did.
func (t *trial) createTogether(e *effort) int {
	e.began = time.Now()
	g := newGathering(together)
	t.line.begin(e.key, g.pass)
	receipts := make([]crm.Receipt, together)
	errs := make([]error, together)
	var group sync.WaitGroup
	for i := range together {
		group.Go(func() { receipts[i], errs[i] = t.send(e) })
	}
	group.Wait()
	t.line.end()
	e.status = 0
	for i := range together {
		t.note(e, receipts[i], errs[i])
	}
	return g.end()
}

// find looks an operation up. A failure is tried again a few times.
func (t *trial) find(key string) (ids []string, err error) {
	patience := time.Now().Add(2 * t.candidate.Patience)
	for attempt := 1; ; attempt++ {
		if ids, err = t.findOnce(key); err == nil {
			return ids, nil
		}
		pause := max(crm.Classify(err).RetryAfter, 100*time.Millisecond)
		if attempt == 3 || time.Now().Add(pause).After(patience) || !t.sleep(pause) {
			return nil, err
		}
	}
}

func (t *trial) findOnce(key string) (ids []string, err error) {
	deadline := time.Now().Add(t.candidate.Patience)
	ctx, cancel := context.WithDeadline(t.ctx, deadline.Add(time.Second))
	defer cancel()
	receipts, err := t.connector.Find(ctx, key, deadline)
	for _, r := range receipts {
		if !slices.Contains(ids, r.CRMID) {
			ids = append(ids, r.CRMID)
		}
	}
	return ids, err
}

// sleep waits; false says that the trial is over.
func (t *trial) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// settle waits until what was sent must be visible.
func (t *trial) settle() bool {
	wait := time.Until(t.last.Add(t.about.Settle))
	if wait <= 0 || !t.about.CanFind {
		return t.ctx.Err() == nil
	}
	t.progress("waiting %s for the CRM to settle", wait.Round(10*time.Millisecond))
	return t.sleep(wait)
}

// firstID is a lead that was made.
func (t *trial) firstID() string {
	for _, e := range t.efforts {
		for _, id := range slices.Concat(e.ids, e.found) {
			return id
		}
	}
	return ""
}

// cleanUp removes the leads if the connector can, and lists all of them. It also
// runs when the trial was interrupted.
func (t *trial) cleanUp() {
	remover, _ := t.connector.(Remover)
	can := remover != nil && remover.CanRemove()
	if can {
		t.progress("removing the leads")
	}
	ctx := context.WithoutCancel(t.ctx)
	until := time.Now().Add(4 * t.candidate.Patience) // of all of them
	for _, e := range t.efforts {
		if e.began.IsZero() {
			continue
		}
		ids := slices.Clone(e.ids)
		for _, id := range e.found {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			removed := can && time.Now().Before(until) && t.remove(ctx, remover, id) == nil
			t.leads = append(t.leads, Lead{e.key, id, removed})
		}
		if len(ids) == 0 && !e.looked && e.failed != nil && e.failed.Outcome == crm.Unknown {
			t.leads = append(t.leads, Lead{Operation: e.key})
		}
	}
}

// remove waits twice at most when the CRM or the connector asks to be left alone.
func (t *trial) remove(ctx context.Context, r Remover, id string) error {
	for attempt := 1; ; attempt++ {
		err := r.Remove(ctx, id, time.Now().Add(t.candidate.Patience))
		if err == nil {
			return nil
		}
		rest := crm.Classify(err).RetryAfter
		if rest == 0 || rest > t.candidate.Patience || attempt == 3 {
			return err
		}
		time.Sleep(rest)
	}
}
