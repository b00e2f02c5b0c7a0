package crmtest

import (
	"fmt"
	"slices"

	"github.com/leadonce/leadonce/engine/crm"
)

// count looks every operation up and holds what is found against what was answered.
// It is called when all of it must be visible.
func (t *trial) count() {
	if !t.about.CanFind || t.blind {
		return
	}
	t.progress("counting the leads of %d operations", len(t.efforts))
	operations, leads := 0, 0
	for _, e := range t.efforts {
		if e.began.IsZero() {
			continue
		}
		ids, err := t.find(e.key)
		if err != nil {
			t.lookupFails(probeCount, err)
			return
		}
		e.found, e.looked = ids, true
		operations, leads = operations+1, leads+len(ids)
	}
	for _, e := range t.efforts {
		if problem := t.miscounted(e); problem != "" {
			t.saw(probeCount, Broken, "%s", problem)
			return
		}
	}
	t.saw(probeCount, Held, "the lookup finds %s of %s, and each that a create answered", plural(leads, "lead"), plural(operations, "operation"))
}

// miscounted is what is wrong with the leads of an operation; "" when nothing is.
func (t *trial) miscounted(e *effort) string {
	about := fmt.Sprintf("of operation %s the creates answered %s, the lookup finds %s", e.key, listed(e.ids), listed(e.found))
	switch {
	case !e.looked:
		return ""
	case len(e.found) > e.most:
		return about + ": more leads than creates that may make one"
	case e.most > 1:
		return "" // that is for judgeDoubled
	case len(e.ids) > 0 && !slices.Equal(e.ids, e.found):
		return about
	case len(e.found) > 0 && e.failed != nil && e.failed.Outcome != crm.Unknown:
		return fmt.Sprintf("%s, and the outcome was %q (%s)", about, e.failed.Outcome, e.failed.Reason)
	}
	return ""
}

func listed(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return these(ids)
}

func (t *trial) judgeRefused(e *effort) {
	switch {
	case e.failed == nil:
		t.saw(probeRefused, Seen, "this CRM makes a lead of the fields that it should refuse; name others to see a refusal")
	case e.failed.Outcome != crm.Refused:
		t.saw(probeRefused, Seen, "the create is not refused but %v", e.failed)
	case !e.looked:
		t.saw(probeRefused, Seen, "%s; nothing can tell whether a lead was made", e.failed.Reason)
	case len(e.found) > 0:
		t.saw(probeRefused, Broken, "%s, and yet it made %s", e.failed.Reason, these(e.found))
	default:
		t.saw(probeRefused, Held, "%s, and no lead was made", e.failed.Reason)
	}
}

// judgeLost: a lead whose create was not answered is found once it has settled.
func (t *trial) judgeLost(e *effort) {
	switch {
	case e == nil || !e.looked:
	case len(e.found) == 1:
		t.saw(probeLost, Held, "the answer to a create was cut; after the settle time the lookup finds its lead, %s", these(e.found))
	case len(e.found) == 0 && len(e.ids) == 0:
		t.saw(probeLost, NotShown, "the answer to a create was cut, and no lead is found; what was cut does not say that there is one: %v", e.failed)
	default:
		t.saw(probeLost, Broken, "the answer to a create was cut; after the settle time the lookup finds %d leads", len(e.found))
	}
}

// judgeDoubled: a lookup that hides one of two leads cannot show that one was doubled.
func (t *trial) judgeDoubled(e *effort) {
	switch {
	case e == nil || !e.looked:
	case len(e.ids) < 2:
		t.saw(probeDoubles, Seen, "two creates with one key were answered %s", plural(len(e.ids), "lead"))
	case len(e.found) == len(e.ids):
		t.saw(probeDoubles, Held, "two creates with one key made %s, and the lookup finds both", these(e.ids))
	default:
		t.saw(probeDoubles, Broken, "two creates with one key made %s; the lookup finds %s", these(e.ids), listed(e.found))
	}
}
