package crmtest

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

func describesItself(s *scene) {
	d := s.connector.Describe()
	if _, err := crm.ParseClass(string(d.Class)); err != nil {
		s.found(CLASS, "the description's %v", err)
	}
	if (d.KeyValidity > 0) != (d.Class == crm.IdempotencyKey) {
		s.found(CLASS, "class %s with a key validity of %s", d.Class, d.KeyValidity)
	}
	if d.CanFind && d.Settle <= 0 {
		s.found(CLASS, "leads can be found, but the settle time is %s", d.Settle)
	}
	if !d.CanFind && d.Class == crm.Lookup {
		s.found(CLASS, "class lookup without a lookup")
	}
}

func leadCarriesID(s *scene) {
	id := newID()
	receipt, err := s.create(id, s.subject.Patience)
	if err != nil {
		s.found(C4, "a create that nothing disturbs fails: %v", err)
		return
	}
	if leads := s.leads(id); !slices.Equal(leads, []string{receipt.CRMID}) {
		s.found(C4, "the leads with the operation id are %q, the receipt says %q", leads, receipt.CRMID)
	}
	if n := s.wire.creates(); n != 1 {
		s.found(C1, "a create put %d requests on the wire", n)
	}
}

// vendorIsDescribed refuses a subject that says nothing of its vendor: the cases
// that would catch a wrong classification would be missing, and all be green.
func vendorIsDescribed(s *scene) {
	if len(s.subject.Answers) == 0 {
		s.found("C3", "Subject.Answers is empty: give the vendor's documented answers to a create")
	}
	c, err := s.subject.Connect("http://127.0.0.1:1")
	if err == nil && c.Describe().CanFind && len(s.subject.Searches) == 0 {
		s.found("C5", "Subject.Searches is empty: give the vendor's documented answers to a lookup")
	}
}

// findAnswersWhatExists asks until the settle time is over: an index may lag.
func findAnswersWhatExists(s *scene) {
	d := s.connector.Describe()
	if !d.CanFind {
		return
	}
	if got, err := s.find(newID()); err != nil || len(got) > 0 {
		s.found(C5, "an operation that was never sent: found %d leads, error %v", len(got), err)
	}
	id := newID()
	receipt, err := s.create(id, s.subject.Patience)
	if err != nil {
		s.found(C4, "a create that nothing disturbs fails: %v", err)
		return
	}
	settled := time.Now().Add(d.Settle)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		got, err := s.find(id)
		if err == nil && len(got) == 1 && got[0].CRMID == receipt.CRMID {
			return
		}
		if err != nil || len(got) > 0 || time.Now().After(settled) {
			s.found(C5, "the lead %s: found %v, error %v", receipt.CRMID, got, err)
			return
		}
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
	}
}

func deadlineIsOver(s *scene) {
	id := newID()
	receipt, err := s.create(id, -time.Millisecond)
	s.wantOutcome(crm.NotSent, receipt, err)
	if s.wire.creates() > 0 {
		s.found(C2, "a request left after its deadline")
	}
}

func contextIsOver(s *scene) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	op := crm.Operation{ID: newID(), Fields: s.subject.Fields, Made: s.subject.Made, Deadline: time.Now().Add(s.subject.Patience)}
	receipt, err := s.connector.Create(ctx, op)
	if s.wire.creates() == 0 {
		s.wantOutcome(crm.NotSent, receipt, err)
	}
}

func nothingListens(s *scene) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.found(CLASS, "the case cannot start: %v", err)
		return
	}
	_ = listener.Close()
	if s.connector, err = s.subject.Connect("http://" + listener.Addr().String()); err != nil {
		s.found(CLASS, "connect: %v", err)
		return
	}
	receipt, err := s.create(newID(), s.subject.Patience)
	s.wantOutcome(crm.NotSent, receipt, err)
}

// keptConnection is the trap of HTTP clients that keep connections: the CRM
// closes an idle one just as a create goes out on it, and the client, which
// cannot know that the create had its effect, sends it again.
func keptConnection(s *scene) {
	s.wire.react(closesKept, closesKept)
	for range 3 {
		id := newID()
		receipt, err := s.create(id, s.subject.Patience)
		if err != nil {
			s.wantOutcome(crm.Unknown, receipt, err)
		}
		if leads := s.leads(id); len(leads) > 1 {
			s.found(C1, "one Create made %d leads", len(leads))
		}
	}
}

// ambiguousCreates meet what proves nothing. That each of them had its effect is
// what makes an other outcome than Unknown a lie.
func ambiguousCreates() []testCase {
	var cases []testCase
	for _, x := range everywhere {
		cases = append(cases, testCase{"create_" + x.name, func(s *scene) {
			s.wire.react(after(x.reaction), pass)
			within := s.subject.Patience
			if x.name == "no_answer" {
				within = s.subject.Short
			}
			receipt, err := s.create(newID(), within)
			s.wantOutcome(crm.Unknown, receipt, err)
		}})
	}
	return cases
}

func vendorCreates(list []Answer) []testCase {
	var cases []testCase
	for _, a := range list {
		cases = append(cases, testCase{"create_" + a.Name, func(s *scene) {
			react := func(_ *wire, out http.ResponseWriter, _ *http.Request) {
				for name, value := range a.Header {
					out.Header().Set(name, value)
				}
				out.WriteHeader(a.Status)
				_, _ = out.Write([]byte(a.Body))
			}
			if a.Applied {
				react = after(react)
			}
			s.wire.react(react, pass)
			receipt, err := s.create(newID(), s.subject.Patience)
			s.wantOutcome(a.Want, receipt, err)
		}})
	}
	return cases
}

func unreadableSearches() []testCase {
	var cases []testCase
	for _, x := range everywhere {
		cases = append(cases, testCase{"find_" + x.name, func(s *scene) {
			if !s.connector.Describe().CanFind {
				return
			}
			s.wire.react(pass, x.reaction)
			deadline := time.Now().Add(s.subject.Patience)
			if x.name == "no_answer" {
				deadline = time.Now().Add(s.subject.Short)
			}
			got, err := s.connector.Find(s.ctx, newID(), deadline)
			s.checkError(err)
			if err == nil {
				s.found(C5, "what is no answer was taken for a list of %d leads", len(got))
			}
		}})
	}
	return cases
}

func vendorSearches(list []Search) []testCase {
	var cases []testCase
	for _, x := range list {
		cases = append(cases, testCase{"find_" + x.Name, func(s *scene) {
			if !s.connector.Describe().CanFind {
				return
			}
			id := newID()
			s.wire.react(pass, answers(x.Status, "application/json", x.Body(id)))
			got, err := s.find(id)
			var ids []string
			for _, r := range got {
				ids = append(ids, r.CRMID)
			}
			if (err != nil) != x.Fails || !slices.Equal(ids, x.Want) {
				s.found(C5, "found %q, error %v; want %q, an error: %t", ids, err, x.Want, x.Fails)
			}
		}})
	}
	return cases
}

// repeatAfterCut is the promise that a class lives by: the same create again,
// after an answer that was lost, makes no second lead.
func repeatAfterCut(s *scene) {
	if !s.connector.Describe().Class.Repeatable() {
		return
	}
	id := newID()
	s.wire.react(after(cut), pass)
	receipt, err := s.create(id, s.subject.Patience)
	s.wantOutcome(crm.Unknown, receipt, err)
	s.wire.react(pass, pass)
	for range 2 {
		receipt, err = s.create(id, s.subject.Patience)
		leads := s.leads(id)
		switch {
		case len(leads) != 1:
			s.found(CLASS, "a create repeated after a cut answer made %d leads: the CRM does not keep what class %s promises",
				len(leads), s.connector.Describe().Class)
			return
		case err != nil:
			s.found(CLASS, "a create repeated after a cut answer fails: %v", err)
		case receipt.CRMID != leads[0]:
			s.found(C3, "a repeated create answered the lead %s, but it is %s", receipt.CRMID, leads[0])
		}
	}
}

const together = 8 // creates at the same time

func concurrentCreates(s *scene) {
	if !s.connector.Describe().Class.Repeatable() {
		return
	}
	id := newID()
	receipts := make([]crm.Receipt, together)
	errs := make([]error, together)
	var group sync.WaitGroup
	for i := range together {
		group.Go(func() { receipts[i], errs[i] = s.send(id, s.subject.Patience) })
	}
	group.Wait()
	if n := s.wire.creates(); n > together {
		s.found(C1, "%d creates put %d requests on the wire", together, n)
	}
	leads := s.leads(id)
	if len(leads) != 1 {
		s.found(CLASS, "%d concurrent creates of one operation made %d leads: the CRM does not keep what class %s promises",
			together, len(leads), s.connector.Describe().Class)
		return
	}
	for i, err := range errs {
		switch failure := crm.Classify(err); {
		case err == nil && receipts[i].CRMID != leads[0]:
			s.found(C3, "a concurrent create answered the lead %s, but it is %s", receipts[i].CRMID, leads[0])
		case err != nil && failure.Outcome != crm.Unknown && failure.Outcome != crm.NotApplied:
			s.found(C3, "a concurrent create of a lead that exists has the outcome %q (%s)", failure.Outcome, failure.Reason)
		}
	}
}
