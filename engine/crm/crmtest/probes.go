package crmtest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
)

// The probes, by the names that reports have.
const (
	probeCreate     = "two operations"
	probeKey        = "key in the create"
	probeLookup     = "lookup"
	probeRefused    = "refused create"
	probeCut        = "answer cut, create repeated"
	probeLost       = "answer cut, looked up"
	probeConcurrent = "creates at once"
	probeBody       = "key with another body"
	probeLate       = "repeated after the settle time"
	probeExpiry     = "end of the key's validity"
	probeDoubles    = "two leads with one key"
	probeCount      = "leads counted"
)

// run tries everything that the class promises, and what must hold in any class.
func (t *trial) run() {
	if t.about.Class != crm.None && !t.about.CanFind {
		t.saw(probeLookup, NotShown, "the connector has no lookup: nothing can count the leads")
	}
	if !t.twoOperations() {
		if !t.shutOut && t.settle() {
			t.count()
		}
		return
	}
	refused := t.refusedCreate()
	var lost, doubled *effort
	switch {
	case t.about.Class.Repeatable():
		t.untilDecided(t.cutAndRepeated, t.createsAtOnce, t.anotherBody, func() { t.settle() }, t.repeatedLate, t.keyExpires)
	case t.about.Class == crm.Lookup:
		t.progress("a create whose answer is cut")
		lost, doubled = t.cut(probeLost), t.twoLeads()
	}
	if t.settle() {
		t.count()
		t.judgeRefused(refused)
		t.judgeLost(lost)
		t.judgeDoubled(doubled)
	}
}

// untilDecided runs the probes in order. What comes after one that did not hold would
// only make more leads.
func (t *trial) untilDecided(probes ...func()) {
	broken := func(p Probe) bool { return p.Verdict == Broken }
	for _, probe := range probes {
		if t.ctx.Err() != nil || slices.ContainsFunc(t.probes, broken) {
			return
		}
		before := len(t.probes)
		probe()
		if n := len(t.probes); n > before && t.probes[n-1].Verdict == NotShown {
			return
		}
	}
}

// twoOperations makes the leads of two operations that say the same: they are two.
// Their keys differ in the last character. false: nothing more can be tried.
func (t *trial) twoOperations() bool {
	t.progress("two operations that say the same")
	a, b := t.effort(), t.effort()
	b.key, b.fields = a.key[:len(a.key)-1]+otherDigit(a.key), a.fields
	first := t.createSurely(a)
	if t.shutOut {
		t.saw(probeCreate, NotShown, "no create gave a receipt: %v; %s", a.failed, letIn)
		return false
	}
	if a.failed != nil && (a.failed.Outcome != crm.Unknown || t.about.Class != crm.Lookup) {
		t.saw(probeCreate, NotShown, "no create gave a receipt: %v", a.failed)
		return false
	}
	if !t.lookup(a) || t.ctx.Err() != nil {
		return false
	}
	second, alike := t.createSurely(b), "two operations that say the same"
	t.keyInTheCreate(first, second)
	if a.unread != nil && b.unread != nil && t.about.Class.Repeatable() {
		t.saw(probeCreate, NotShown, "creates that the CRM carries out give no receipt: %v; look at id and is under create.outcome in the description", a.unread)
		return false
	}
	if b.failed != nil && b.failed.Outcome == crm.Refused {
		t.saw(probeCreate, Seen, "a lead that says the same as another is refused: %v", b.failed)
		b.fields = maps.Clone(b.fields)
		b.fields["text"] += " (the second)"
		t.createSurely(b)
		alike = "two operations"
	}
	switch {
	case b.failed != nil && (b.failed.Outcome != crm.Unknown || t.about.Class != crm.Lookup):
		t.saw(probeCreate, NotShown, "the second create gave no receipt: %v", b.failed)
	case b.failed != nil || len(a.ids) == 0:
		t.saw(probeCreate, Seen, "creates give no receipt here: %v", b.failed)
	case slices.Equal(a.ids, b.ids) && t.made[crm.LeadStep] != "":
		t.saw(probeCreate, Seen, "two operations about one lead were answered the same, %s: it joins what the steps before it made", these(a.ids))
	case slices.Equal(a.ids, b.ids):
		t.saw(probeCreate, Broken, "the create of one operation was answered with the lead of another, %s, which says the same", these(b.ids))
	default:
		t.saw(probeCreate, Held, "%s were answered two leads: %s and %s", alike, these(a.ids), these(b.ids))
	}
	return true
}

// letIn is the mend where a CRM refuses whoever sends.
const letIn = "no more is tried: look at auth in the description, and at the secrets that it names"

func otherDigit(key string) string {
	if strings.HasSuffix(key, "0") {
		return "1"
	}
	return "0"
}

// keyInTheCreate holds the requests of two operations that say the same against each
// other: only what comes from the key can tell them apart.
func (t *trial) keyInTheCreate(first, second []string) {
	if len(first) == 0 || len(second) == 0 {
		t.saw(probeKey, NotShown, "no create was seen on the wire")
		return
	}
	a, b := first[len(first)-1], second[len(second)-1]
	switch {
	case t.line.bearsKey():
		t.saw(probeKey, Held, "every create bears the operation's key as it is")
	case a != b:
		t.saw(probeKey, Held, "creates of two operations that say the same differ, so they bear what is made of the key")
	default:
		t.saw(probeKey, Broken, "the creates of two operations are the same request: nothing in them comes from the key")
	}
}

// lookup looks for what cannot be there, and then for the lead of e until it is
// visible. It tells the lag. false: nothing more can be tried.
func (t *trial) lookup(e *effort) bool {
	if !t.about.CanFind {
		return true
	}
	for _, absent := range []struct{ key, what string }{
		{newKey(), "an operation that was never sent"},
		{e.key[:len(e.key)-1], "a key that begins like one that exists"},
	} {
		ids, err := t.find(absent.key)
		if err != nil {
			t.lookupFails(probeLookup, err)
			return false
		}
		if len(ids) > 0 {
			t.saw(probeLookup, Broken, "%s is answered with %s: %s", absent.what, plural(len(ids), "lead"), these(ids))
			return true
		}
	}
	t.progress("waiting until the lookup finds a lead, at most %s", t.longestLag())
	t.waitVisible(e)
	return true
}

// lookupFails ends the looking: a CRM or a connector that has failed a few times may
// want to be left alone.
func (t *trial) lookupFails(probe string, err error) {
	t.blind = true
	t.saw(probe, NotShown, "the lookup fails: %v", crm.Classify(err))
}

// longestLag is how long a lead is waited for, to tell by how much the settle time
// is too short.
func (t *trial) longestLag() time.Duration {
	return t.about.Settle + min(2*t.about.Settle, time.Minute)
}

func (t *trial) waitVisible(e *effort) {
	made := t.last
	missed := time.Duration(-1) // the age at which it was not found last
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		age := time.Since(made)
		ids, err := t.find(e.key)
		switch {
		case err != nil:
			t.lookupFails(probeLookup, err)
			return
		case len(ids) > 0:
			t.judgeLag(e, ids, time.Since(made), missed)
			return
		case age > t.longestLag() && len(e.ids) == 0:
			t.saw(probeLookup, NotShown, "the create gave no receipt (%v), and no lead is found within %s", e.failed, round(age))
			return
		case age > t.longestLag():
			t.saw(probeLookup, Broken, "the lead %s was not found within %s of its create; the settle time is %s",
				these(e.ids), round(age), t.about.Settle)
			return
		}
		missed = age
		if left := t.about.Settle - time.Since(made); left > 0 {
			pause = min(pause, left) // one look just as the settle time is over
		}
		if !t.sleep(pause) {
			return
		}
	}
}

func (t *trial) judgeLag(e *effort, ids []string, age, missed time.Duration) {
	immediately := "found by the first look"
	if missed >= 0 {
		immediately = "not found immediately"
	}
	switch {
	case len(e.ids) > 0 && !slices.Equal(ids, e.ids):
		t.saw(probeLookup, Broken, "the create answered %s, the lookup finds %s", these(e.ids), these(ids))
	case missed >= t.about.Settle:
		t.saw(probeLookup, Broken, "%s, found %s after the create; the settle time of %s is too short", immediately, round(age), t.about.Settle)
	default:
		t.saw(probeLookup, Held, "%s, found %s after the create; the settle time is %s; neither a key never sent nor the beginning of a key is found",
			immediately, round(age), t.about.Settle)
	}
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// refusedCreate asks for a lead that the CRM refuses.
func (t *trial) refusedCreate() *effort {
	t.progress("a create that is refused")
	e := t.effort()
	maps.Copy(e.fields, t.candidate.Refused)
	t.createSurely(e)
	return e
}
