package crmtest

import (
	"maps"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// cut makes a create whose answer is cut once the CRM has given it. What was cut is
// then given late, and by that the lead is known that this create made. In bad weather
// the answer may have been none: then another operation is tried. nil: no create got
// as far as an answer, or the connector took the cut for one; which is told.
func (t *trial) cut(probe string) *effort {
	var reached, e *effort
	for range 5 {
		e = t.effort()
		answer := &kept{}
		t.create(e, once(answer.cut))
		switch f := e.failed; {
		case f == nil:
			t.saw(probe, Broken, "a create whose answer was cut was taken for done, lead %s", these(e.ids))
			return nil
		case !answer.isThere():
			if !t.sleep(min(f.RetryAfter, t.candidate.Patience)) {
				return nil
			}
			continue
		case f.Outcome != crm.Unknown:
			t.saw(probe, Broken, "a create whose answer was cut was taken for %q", f.Outcome)
			return nil
		}
		if reached = e; t.firstID() == "" {
			return e // in this CRM no answer tells of a lead
		}
		if t.create(e, once(answer.late)); e.failed == nil {
			return e
		}
	}
	if reached == nil {
		t.saw(probe, NotShown, "no create was answered by the CRM: %v", e.failed)
	}
	return reached
}

// cutAndRepeated is what a class that can be repeated lives by: after an answer that
// was lost, the same create answers the same lead.
func (t *trial) cutAndRepeated() {
	t.progress("a create whose answer is cut, and repeated")
	e := t.cut(probeCut)
	if e == nil {
		return
	}
	says := "what it says, and "
	if len(e.ids) == 0 {
		says = ""
	}
	for range 2 {
		t.createSurely(e)
		switch {
		case len(e.ids) > 1:
			t.saw(probeCut, Broken, "the answer to a create was cut; it and repeated ones made %d leads: %s", len(e.ids), these(e.ids))
			return
		case e.failed != nil:
			t.saw(probeCut, unanswered(e), "the answer to a create was cut; a repeated one is not answered with its lead: %v", e.failed)
			return
		}
	}
	t.saw(probeCut, Held, "the answer to a create was cut; %stwo repeated ones name one lead, %s", says, these(e.ids))
}

// unanswered is what a repeated create without a receipt shows: a refusal is no answer
// to it, and after the others nothing is known.
func unanswered(e *effort) Verdict {
	if e.failed.Outcome == crm.Refused {
		return Broken
	}
	return NotShown
}

// rounds of creates at the same time: a race shows itself sometimes.
const rounds = 3

func (t *trial) createsAtOnce() {
	t.progress("%d creates at once with one key, %d times", together, rounds)
	arrived := 0
	var leads []string
	for range rounds {
		e := t.effort()
		n := t.createTogether(e)
		arrived += n
		if t.createSurely(e); e.failed != nil && len(e.ids) == 0 {
			t.saw(probeConcurrent, unanswered(e), "%d creates at once with one key, and none is answered with a lead: %v", n, e.failed)
			return
		}
		if len(e.ids) > 1 {
			t.saw(probeConcurrent, Broken, "%d creates at once with one key were answered %d leads: %s", n, len(e.ids), these(e.ids))
			return
		}
		leads = append(leads, e.ids...)
	}
	if arrived < 2*rounds {
		t.saw(probeConcurrent, NotShown, "only %d of %d creates reached the CRM together in %d rounds; a limit holds them back", arrived, together*rounds, rounds)
		return
	}
	t.saw(probeConcurrent, Held, "%d creates reached the CRM in %d rounds of up to %d together with one key; one lead in each: %s", arrived, rounds, together, these(leads))
}

// anotherBody sends the key of a lead with other fields, as a job goes on after its
// rules have changed.
func (t *trial) anotherBody() {
	t.progress("a key with another body")
	e := t.effort()
	t.createSurely(e)
	if e.failed != nil {
		t.saw(probeBody, NotShown, "the first create gave no receipt: %v", e.failed)
		return
	}
	e.fields = maps.Clone(e.fields)
	e.fields["text"] = strings.Replace(e.fields["text"], "Please", "Now please", 1) + " (changed)"
	t.create(e, pass)
	switch {
	case len(e.ids) > 1:
		t.saw(probeBody, Broken, "a key that came again with another body made a second lead: %s", these(e.ids))
	case e.failed != nil:
		t.saw(probeBody, Held, "a key that came again with another body is not carried out: %v", e.failed)
	default:
		t.saw(probeBody, Held, "a key that came again with another body is answered with its lead, %s", these(e.ids))
	}
	e.failed = nil
}

// repeatedLate repeats the first create once the settle time is over, and Soak.
func (t *trial) repeatedLate() {
	e := t.efforts[0]
	if wait := t.candidate.Soak - time.Since(e.began); wait > 0 {
		t.progress("waiting %s, to repeat the first create when it is old", round(wait))
		if !t.sleep(wait) {
			return
		}
	}
	age := time.Since(e.began)
	if t.about.Class == crm.IdempotencyKey && age >= t.about.KeyValidity {
		return // it may be forgotten by now; keyExpires knows when
	}
	t.progress("the first create again")
	t.createSurely(e)
	switch {
	case len(e.ids) > 1:
		t.saw(probeLate, Broken, "repeated after %s, a create made a second lead: %s", round(age), these(e.ids))
	case e.failed != nil:
		t.saw(probeLate, unanswered(e), "repeated after %s, a create is not answered with its lead: %v", round(age), e.failed)
	default:
		t.saw(probeLate, Held, "repeated after %s, a create is answered with its lead, %s", round(age), these(e.ids))
	}
}

// expiryWait is the longest validity of a key whose end is waited for unasked.
const expiryWait = time.Minute

// keyExpires repeats a create just before its key may be forgotten, when it must not
// be, and then after, when nothing is promised.
func (t *trial) keyExpires() {
	validity := t.about.KeyValidity
	if t.about.Class != crm.IdempotencyKey {
		return
	}
	if validity > expiryWait && !t.candidate.WaitExpiry {
		t.saw(probeExpiry, NotShown, "the validity of %s was not waited for: try again with one that can be, and with --wait-expiry; the oldest key that was still known is that of %q", validity, probeLate)
		return
	}
	t.progress("waiting for the end of a key's validity, %s", validity)
	e := t.effort()
	t.createSurely(e)
	if e.failed != nil || !t.sleep(validity*9/10-time.Since(e.began)) {
		t.saw(probeExpiry, NotShown, "the create gave no receipt: %v", e.failed)
		return
	}
	age := time.Since(e.began)
	t.createSurely(e)
	if len(e.ids) > 1 {
		t.saw(probeExpiry, Broken, "a key was forgotten within %s, its validity is said to be %s; leads: %s", round(age), validity, these(e.ids))
		return
	}
	if e.failed != nil {
		t.saw(probeExpiry, unanswered(e), "repeated after %s, a create is not answered with its lead: %v", round(age), e.failed)
		return
	}
	if !t.sleep(validity*11/10 - time.Since(e.began)) {
		return
	}
	late := time.Since(e.began)
	e.most = 2
	t.createSurely(e)
	after := "it was still known after " + round(late).String()
	if len(e.ids) > 1 {
		after = "it was forgotten after " + round(late).String() + ", and made a second lead"
	} else if e.failed != nil {
		after = "after " + round(late).String() + " it was answered: " + e.failed.Error()
	}
	t.saw(probeExpiry, Held, "a key was known after %s, its validity is said to be %s; %s", round(age), validity, after)
}

// twoLeads makes two leads with one key, which the lookup has to show: a person must
// see a lead that is doubled.
func (t *trial) twoLeads() *effort {
	t.progress("two leads with one key")
	e := t.effort()
	e.most = 2
	if t.createSurely(e); e.failed != nil {
		return nil // and a second one would not be told from the first
	}
	t.createSurely(e)
	return e
}
